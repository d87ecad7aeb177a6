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
from PIL import Image, ImageDraw, ImageFont

from muybridge.local.drawing.card import Mount
from muybridge.local.drawing.horse import MOMENTS
from muybridge.local.drawing.look import Look, look_of
from muybridge.local.drawing.photograph import VIEW_HEIGHT, VIEW_WIDTH, Scene

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
        family: The family's name, which decides the colours and the backdrop.
        model: The model's name.
        settings: Names and values of the request's other settings.
        seed: Varies the horse, and where in its stride it is. The same seed gives the same picture.
    """

    width: int
    height: int
    prompt: str
    family: str
    model: str
    settings: tuple[tuple[str, str], ...]
    seed: int

    @property
    def look(self) -> Look:
        """The colours and the backdrop."""
        return look_of(self.family)

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
    """

    coat: int
    start: float

    @classmethod
    def from_seed(cls, seed: int) -> Likeness:
        """Return the likeness that *seed* decides."""
        coat, start = hashlib.shake_128(str(seed).encode()).digest(2)
        return cls(coat=24 + coat % 22, start=start * MOMENTS // 256 / MOMENTS)


def render_png(picture: Picture, path: Path) -> None:
    """Write *picture* as a PNG file: successive photographs of one stride.

    Args:
        picture: What to show.
        path: Where to write it. It appears only when it is complete.
    """
    likeness = Likeness.from_seed(picture.seed)
    plate = picture.look.toned(_plate(picture, likeness))
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
    scene = Scene(width=width, height=height, coat=likeness.coat, backdrop=picture.look.backdrop)
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
