"""Renders the local emulator's images: a plate of photographs of a galloping horse.

The caption below the photographs shows the request that a picture belongs to.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
from PIL import Image, ImageDraw, ImageFont, ImageOps

from muybridge.local.drawing.card import Mount
from muybridge.local.drawing.photograph import VIEW_HEIGHT, VIEW_WIDTH, Scene

Toning = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
"""The colours that black, mid-grey and white become: a warm brown, as in an albumen print."""

_TONINGS: tuple[Toning, ...] = (
    ((38, 24, 16), (152, 116, 82), (247, 236, 214)),  # sepia
    ((44, 22, 18), (158, 110, 84), (248, 232, 214)),  # red chalk
    ((32, 26, 20), (140, 122, 92), (244, 238, 218)),  # olive
    ((36, 26, 28), (146, 118, 104), (246, 236, 224)),  # selenium
)

_GRIDS = ((1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1), (2, 8), (4, 4), (8, 2))
"""Columns and rows that the photographs of a plate may stand in."""

_LEAST_LEGIBLE = 7.0
"""Height in pixels of the smallest digits that can be read."""


@attrs.frozen(kw_only=True)
class Picture:
    """The content of a picture.

    Args:
        width: Width in pixels.
        height: Height in pixels.
        prompt: The text that the picture was asked for with.
        model: The model's name.
        settings: Names and values of the request's other settings.
        seed: Varies the horse, where in its stride it is and the print's colour. The same seed
            gives the same picture.
    """

    width: int
    height: int
    prompt: str
    model: str
    settings: tuple[tuple[str, str], ...]
    seed: int

    @property
    def details(self) -> str:
        """The model and the settings on one line."""
        return "  ·  ".join([self.model, *(f"{name} {value}" for name, value in self.settings)])


@attrs.frozen(kw_only=True)
class Likeness:
    """The details that a seed decides.

    Args:
        coat: Shade of the horse's flank, 0 (black) to 255.
        start: Phase of the stride in the first photograph.
        toning: The print's colours.
    """

    coat: int
    start: float
    toning: Toning

    @classmethod
    def from_seed(cls, seed: int) -> Likeness:
        """Return the likeness that *seed* decides."""
        coat, start, toning = hashlib.shake_128(str(seed).encode()).digest(3)
        return cls(coat=24 + coat % 22, start=start / 256, toning=_TONINGS[toning % len(_TONINGS)])

    def toned(self, grey: Image.Image) -> Image.Image:
        """Return *grey* in the print's colours."""
        black, mid, white = self.toning
        return ImageOps.colorize(grey, black, white, mid)


def render_png(picture: Picture, path: Path) -> None:
    """Write *picture* as a PNG file: successive photographs of one stride.

    Args:
        picture: What to show.
        path: Where to write it. It appears only when it is complete.
    """
    likeness = Likeness.from_seed(picture.seed)
    plate = likeness.toned(_plate(picture, likeness))
    with written_whole(path) as unfinished:
        plate.save(unfinished, format="PNG", compress_level=4)


@contextmanager
def written_whole(path: Path) -> Generator[Path]:
    """Yield a path to write to, and move the file to *path* once it is complete."""
    with tempfile.TemporaryDirectory(prefix=".rendering-", dir=path.parent) as folder:
        unfinished = Path(folder, "unfinished")
        yield unfinished
        unfinished.replace(path)


def _plate(picture: Picture, likeness: Likeness) -> Image.Image:
    mount = Mount(
        width=picture.width,
        height=picture.height,
        prompt=picture.prompt,
        details=picture.details,
    )
    gutter = mount.gutter
    columns, rows, width, height = _best_grid(mount.room, gutter)
    block = (columns * (width + gutter) + gutter, rows * (height + gutter) + gutter)
    card, (left, top) = mount.card(block)
    scene = Scene(width=width, height=height, coat=likeness.coat)
    for number in range(columns * rows):
        row, column = divmod(number, columns)
        photograph = scene.photograph(likeness.start + number / (columns * rows))
        _number(photograph, number + 1)
        place = (left + gutter + column * (width + gutter), top + gutter + row * (height + gutter))
        card.paste(photograph, place)
    return card


def _best_grid(room: tuple[int, int], gutter: int) -> tuple[int, int, int, int]:
    """Return columns, rows and the photographs' width and height that make the horse largest."""

    def fit(columns: int, rows: int) -> tuple[int, int, int, int]:
        width = max(1, (room[0] - gutter) // columns - gutter)
        height = max(1, (room[1] - gutter) // rows - gutter)
        # Beyond these shapes a photograph would show little but wall.
        width, height = min(width, round(2.2 * height)), min(height, round(width / 1.05))
        return columns, rows, max(1, width), max(1, height)

    def horse_size(grid: tuple[int, int, int, int]) -> float:
        _, _, width, height = grid
        return min(width / VIEW_WIDTH, height / VIEW_HEIGHT)

    return max((fit(columns, rows) for columns, rows in _GRIDS), key=horse_size)


def _number(photograph: Image.Image, number: int) -> None:
    size = photograph.height / 11
    if size >= _LEAST_LEGIBLE:
        ImageDraw.Draw(photograph).text(
            (0.5 * size, 0.3 * size), str(number), fill=84, font=ImageFont.load_default(size)
        )
