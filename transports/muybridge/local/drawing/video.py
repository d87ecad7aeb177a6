"""Renders the local emulator's videos: a film of a galloping horse.

A gallop repeats itself, so only one stride is drawn; its pictures are shown again and again, with a
new frame number and time written into each.
"""

# av's stubs leave packets' contents and the keywords of add_stream untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import attrs
import av
from av.container import OutputContainer
from av.video.frame import VideoFrame
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from av.video.stream import VideoStream
from PIL import Image, ImageDraw

from muybridge.local.drawing.card import FAINT_INK, Mount
from muybridge.local.drawing.image import Likeness, Picture, written_whole
from muybridge.local.drawing.photograph import Scene
from muybridge.local.drawing.soundtrack import Soundtrack

STRIDE_SECONDS = Fraction(2, 3)
"""How long one stride takes: slower than life, so that the eye can follow the legs."""

_FRAME_RATES = ((2560 * 1440, 24), (4096 * 2304, 12))
"""Numbers of pixels, and frames per second of films that have no more pixels than that."""

_LOWEST_FRAME_RATE = 9
"""Frames per second of larger films. At every rate a stride takes a whole number of frames."""

_FINE = {"preset": "superfast", "bf": "0", "crf": "23"}
"""Options of the encoder for pictures that are soon encoded."""

_COARSE = {"preset": "ultrafast", "tune": "zerolatency", "crf": "26"}
"""Options of the encoder for larger pictures, to save time and memory."""

_MOST_PIXELS_FINE = 1920 * 1088

_TALLEST = 0.9
"""Height of the moving picture for its width, beyond which it would show little but wall."""


@attrs.frozen(kw_only=True)
class Film:
    """A film to show.

    Args:
        picture: What to show. Its width and height must be even.
        duration: Length in seconds.
        sound: Whether there is an audio stream: a tone, and the beats of the hooves.
    """

    picture: Picture
    duration: float
    sound: bool

    @property
    def fps(self) -> int:
        """Frames per second: fewer where encoding them all would take too long."""
        pixels = self.picture.width * self.picture.height
        return next((fps for most, fps in _FRAME_RATES if pixels <= most), _LOWEST_FRAME_RATE)

    @property
    def frame_count(self) -> int:
        """How many frames the whole film has."""
        return round(self.duration * self.fps)


def render_mp4(film: Film, path: Path) -> None:
    """Write *film* as an MP4 file: H.264, and AAC if it has sound.

    Args:
        film: What to show.
        path: Where to write it. It appears only when it is complete.

    Raises:
        ValueError: Width or height is odd, or the film is too short to have a frame.
    """
    width, height = film.picture.width, film.picture.height
    if width % 2 or height % 2:
        raise ValueError(f"a film's width and height must be even, not {width}x{height}")
    if film.frame_count < 1:
        raise ValueError(f"a film of {film.duration} s has no frame")
    with (
        written_whole(path) as unfinished,
        av.open(
            str(unfinished), "w", format="mp4", options={"movflags": "+faststart"}
        ) as container,
    ):
        _encode(film, container)


def _encode(film: Film, container: OutputContainer) -> None:
    likeness = Likeness.from_seed(film.picture.seed)
    video = _video_stream(film, container)
    soundtrack = None
    if film.sound:
        soundtrack = Soundtrack(container, STRIDE_SECONDS, likeness.start)
    for number, frame in enumerate(_frames(film, likeness)):
        if soundtrack:
            soundtrack.play_until(Fraction(number + 1, film.fps))
        frame.pts, frame.time_base = number, Fraction(1, film.fps)
        container.mux(video.encode(frame))
    container.mux(video.encode(None))
    if soundtrack:
        soundtrack.end()


def _video_stream(film: Film, container: OutputContainer) -> VideoStream:
    options = _FINE if film.picture.width * film.picture.height <= _MOST_PIXELS_FINE else _COARSE
    stream = container.add_stream("libx264", rate=film.fps, options=options)
    stream.width, stream.height = film.picture.width, film.picture.height
    stream.pix_fmt = "yuv420p"
    # A whole picture every two seconds, to which players can jump.
    stream.gop_size = 2 * film.fps
    stream.color_range = ColorRange.MPEG
    stream.colorspace = Colorspace.ITU709
    stream.color_primaries = ColorPrimaries.BT709
    stream.color_trc = ColorTrc.BT709
    return stream


def _frames(film: Film, likeness: Likeness) -> Iterator[VideoFrame]:
    """Yield every frame."""
    mount = Mount(
        width=film.picture.width,
        height=film.picture.height,
        prompt=film.picture.prompt,
        details=film.picture.details,
        aside=_counter(film, film.frame_count),
    )
    width, height = mount.room
    block = (width, min(height, round(_TALLEST * width)))
    card, (left, upper) = mount.card(block)
    gutter = mount.gutter
    look = film.picture.look
    scene = Scene(
        width=block[0] - 2 * gutter,
        height=block[1] - 2 * gutter,
        coat=likeness.coat,
        backdrop=look.backdrop,
    )
    stride: list[Image.Image] = []
    for part in range(int(STRIDE_SECONDS * film.fps)):
        phase = likeness.start + part / int(STRIDE_SECONDS * film.fps)
        card.paste(scene.photograph(phase), (left + gutter, upper + gutter))
        stride.append(look.toned(card))
    aside = mount.aside_place(block)
    blank = card.crop(aside)
    for number in range(film.frame_count):
        counter = blank.copy()
        ImageDraw.Draw(counter).text(
            (counter.width, 0),
            _counter(film, number + 1),
            fill=FAINT_INK,
            font=mount.small_font,
            anchor="ra",
        )
        image = stride[number % len(stride)]
        image.paste(look.toned(counter), aside[:2])
        frame = VideoFrame.from_image(image)  # type: ignore[no-untyped-call]  # in av's stubs
        yield frame.reformat(
            format="yuv420p", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG
        )


def _counter(film: Film, number: int) -> str:
    return f"No. {number:03}   {number / film.fps:05.2f} s"
