"""The renderer of the local service: what its PNG and MP4 files must be, measured from outside."""

# The stubs of av leave the keywords of to_image, and what it returns, unknown.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import av
import pytest
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image, ImageChops, ImageStat

from muybridge.local.drawing.caption import drawable
from muybridge.local.drawing.horse import FOOTFALLS, MOMENTS, STRIDE, Outline, silhouette
from muybridge.local.drawing.image import Picture, render_png
from muybridge.local.drawing.look import Backdrop
from muybridge.local.drawing.photograph import Scene
from muybridge.local.drawing.soundtrack import Soundtrack
from muybridge.local.drawing.video import Film, render_mp4
from muybridge_protocol.families import FAMILIES

WEIRD_PROMPTS = {
    "empty": "",
    "spaces": " \t\n ",
    "newlines": "first\nsecond\r\n\r\nthird\u2028fourth",
    "emoji": "\U0001f40e\U0001f3fd\u200d\u2642\ufe0f runs \U0001f1eb\U0001f1f7",
    "right to left": "حصان يعدو \u05e1\u05d5\u05e1 \u202e\u05d3\u05d5\u05d4\u05e8",
    "chinese": "一匹奔跑的马" * 40,
    "controls": "a\x00b\x07c\x1b[31m",
    "lone surrogate": "a\ud83db",
    "accents": "Zürich, où l'été naît - ﬁne",
    "stacked accents": "z" + "\u0301" * 400,
    "no spaces": "w" * 5_000,
    "long": "a horse in motion " * 278,
}


def picture(
    width: int = 320,
    height: int = 240,
    *,
    prompt: str = "A horse at full gallop",
    family: str = "imgb",
    model: str = "imgb-2",
    settings: tuple[tuple[str, str], ...] = (("resolution", "1k"), ("ratio", "4:3")),
    seed: int = 7,
) -> Picture:
    return Picture(
        width=width,
        height=height,
        prompt=prompt,
        family=family,
        model=model,
        settings=settings,
        seed=seed,
    )


def film(
    width: int = 256,
    height: int = 144,
    *,
    duration: float = 4,
    sound: bool = False,
    prompt: str = "A horse at full gallop",
    seed: int = 7,
) -> Film:
    shown = picture(width, height, prompt=prompt, seed=seed)
    return Film(picture=shown, duration=duration, sound=sound)


def png(shown: Picture, folder: Path) -> bytes:
    path = folder / f"{shown.seed}.png"
    render_png(shown, path)
    return path.read_bytes()


def opened(path: Path) -> Image.Image:
    with Image.open(path) as image:
        image.verify()
    with Image.open(path) as image:
        image.load()
        return image


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the root mean square of the difference between two pictures' shades."""
    grey = ImageChops.difference(one.convert("L"), other.convert("L"))
    return ImageStat.Stat(grey).rms[0]


def frames(path: Path, numbers: Sequence[int]) -> list[Image.Image]:
    with av.open(str(path)) as container:
        decoded = enumerate(container.decode(video=0))
        return [frame.to_image() for number, frame in decoded if number in numbers]


def boxes(path: Path) -> list[str]:
    """Return the types of an MP4 file's outermost boxes, in order."""
    content = path.read_bytes()
    types: list[str] = []
    start = 0
    while start < len(content):
        size = int.from_bytes(content[start : start + 4], "big")
        types.append(content[start + 4 : start + 8].decode("ascii"))
        assert size >= 8
        start += size
    assert start == len(content)
    return types


@pytest.mark.parametrize(
    ("width", "height"),
    [(1024, 576), (333, 999), (999, 333), (256, 256), (257, 601), (256, 86), (86, 256), (64, 22)],
)
def test_a_png_has_the_exact_size_asked_for(tmp_path: Path, width: int, height: int):
    """A PNG is a valid RGB file of exactly the asked size, odd and extreme sizes included."""
    path = tmp_path / "plate.png"
    render_png(picture(width, height), path)
    image = opened(path)
    assert (image.format, image.size, image.mode) == ("PNG", (width, height), "RGB")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plate.png"]


def test_a_png_shows_a_dark_horse_on_light_sepia(tmp_path: Path):
    """A plate is neither blank nor grey: it has dark and light parts, and red outweighs blue."""
    path = tmp_path / "plate.png"
    render_png(picture(800, 600), path)
    image = opened(path)
    darkest, lightest = image.convert("L").getextrema()
    assert isinstance(darkest, int)
    assert isinstance(lightest, int)
    assert darkest < 60
    assert lightest > 210
    red, _, blue = ImageStat.Stat(image).mean
    assert red > blue + 15


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path):
    """A picture depends on its arguments alone, and another seed gives another picture."""
    assert png(picture(seed=1), tmp_path) == png(picture(seed=1), tmp_path)
    several = {png(picture(seed=seed), tmp_path) for seed in (0, 1, 2, -3, 2**64)}
    assert len(several) == 5


@pytest.mark.parametrize(
    "other",
    [
        picture(prompt="Another prompt"),
        picture(model="imgb-2-r"),
        picture(settings=(("resolution", "2k"),)),
    ],
    ids=["prompt", "model", "settings"],
)
def test_the_caption_shows_what_was_asked_for(tmp_path: Path, other: Picture):
    """Prompt, model and settings each change what can be read below the photographs."""
    assert png(other, tmp_path) != png(picture(), tmp_path)


@pytest.mark.parametrize("prompt", WEIRD_PROMPTS.values(), ids=WEIRD_PROMPTS.keys())
def test_any_prompt_can_be_drawn(tmp_path: Path, prompt: str):
    """Whatever characters and however many a prompt has, a whole picture comes of it."""
    path = tmp_path / "plate.png"
    shown = picture(260, 200, prompt=prompt, model=prompt, settings=((prompt, prompt),))
    render_png(shown, path)
    assert opened(path).size == (260, 200)


def test_a_long_prompt_leaves_room_for_the_horse(tmp_path: Path):
    """A prompt is cut short: the photographs are where they are for any other long prompt."""
    sizes = [
        picture(600, 400, prompt="a horse in motion " * repeats, model="m", settings=())
        for repeats in (40, 400)
    ]
    one, other = (png(shown, tmp_path) for shown in sizes)
    assert one == other


def test_drawable_text_is_one_line_of_plain_characters():
    """Accents fall away, white space becomes one space, and control characters vanish."""
    assert drawable("  Zürich\n\tété \x00 ﬁne \ud83d ") == "Zurich ete fine"


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("一匹奔跑的马", "[CJK XXXX]"),
        ("حصان يعدو", "[Arabic XXXX]"),
        ("달리는 말", "[Hangul XXXX]"),
        ("the word 马 and \U0001f40e\U0001f3fd runs", "the word [CJK XXXX] and [horse] runs"),
        ("\U0001f40e\U0001f3fd\u200d\u2642\ufe0f", "[horse]"),
        ("лошадь, a horse", "[Cyrillic XXXX], a horse"),
        ("100 % [?] of A-Z", "100 % [?] of A-Z"),
    ],
)
def test_a_text_in_another_script_is_not_drawn_as_boxes(text: str, drawn: str):
    """A stretch of characters that the font lacks becomes the name of its script or symbol."""
    assert re.sub(r"(?<= )[0-9a-f]{4}(?=\])", "XXXX", drawable(text)) == drawn


def test_two_texts_in_a_script_that_the_font_lacks_can_be_told_apart():
    """The hint at another script has a digest of the words that it stands for."""
    assert drawable("一匹奔跑的马") != drawable("一匹站着的马")


def test_each_family_looks_different(tmp_path: Path):
    """The colours of a picture alone show its family, whatever the seed."""
    colours: list[list[float]] = []
    for number, family in enumerate(FAMILIES):
        render_png(picture(160, 120, family=family, seed=number), tmp_path / family)
        colours.append(ImageStat.Stat(opened(tmp_path / family)).mean)
    for one, other in combinations(colours, 2):
        assert math.dist(one, other) > 20


@pytest.mark.parametrize("backdrop", Backdrop)
def test_the_backdrop_repeats_itself_after_a_stride(backdrop: Backdrop):
    """A film's wall passes without a jump where the next stride begins."""
    scene = Scene(width=300, height=200, coat=30, backdrop=backdrop)
    step = difference(scene.photograph(0.5), scene.photograph(0.51))
    assert difference(scene.photograph(0.9999), scene.photograph(0.0)) < step / 2


@pytest.mark.parametrize("backdrop", Backdrop)
def test_a_backdrop_can_be_drawn_in_any_size(backdrop: Backdrop):
    """Photographs of a single pixel, and of sizes where lines are one pixel wide, can be taken."""
    for width in (1, 2, 3, 8, *range(36, 46), 97):
        scene = Scene(width=width, height=width, coat=30, backdrop=backdrop)
        assert scene.photograph(0.3).size == (width, width)


def test_a_family_without_a_look_of_its_own_has_one(tmp_path: Path):
    """A family that was added without a look gets one of the others."""
    path = tmp_path / "plate.png"
    render_png(picture(family="vidx"), path)
    assert opened(path).size == (320, 240)


@pytest.mark.parametrize(
    ("width", "height", "duration", "count"),
    [(256, 144, 4, 96), (256, 144, 3.5, 84), (144, 430, 4, 96), (430, 144, 5.0, 120)],
)
def test_a_film_is_a_playable_mp4(
    tmp_path: Path, width: int, height: int, duration: float, count: int
):
    """A film is H.264 in yuv420p, has exactly its size, frames and duration, and no audio."""
    path = tmp_path / "film.mp4"
    render_mp4(film(width, height, duration=duration), path)
    with av.open(str(path)) as container:
        assert [stream.type for stream in container.streams] == ["video"]
        video = container.streams.video[0]
        assert "mp4" in container.format.name
        assert video.codec_context.name == "h264"
        assert video.codec_context.pix_fmt == "yuv420p"
        assert video.codec_context.colorspace == Colorspace.ITU709
        assert video.codec_context.color_range == ColorRange.MPEG
        assert (video.width, video.height) == (width, height)
        assert video.average_rate == 24
        assert video.duration is not None
        assert video.time_base is not None
        assert video.duration * video.time_base == duration
        assert container.duration == duration * 1_000_000
        times = [frame.time for frame in container.decode(video=0)]
    assert times == pytest.approx([number / 24 for number in range(count)])
    assert [entry.name for entry in tmp_path.iterdir()] == ["film.mp4"]


def test_a_film_can_play_before_it_has_arrived(tmp_path: Path):
    """The index of a film comes before its data, with sound and without."""
    for sound in (False, True):
        path = tmp_path / f"{sound}.mp4"
        render_mp4(film(sound=sound), path)
        order = boxes(path)
        assert order[0] == "ftyp"
        assert order.index("moov") < order.index("mdat")


def test_a_large_film_has_fewer_frames_per_second(tmp_path: Path):
    """A film in 4K is as long as asked for, of 12 frames per second."""
    path = tmp_path / "film.mp4"
    render_mp4(film(3840, 2160, duration=0.5), path)
    with av.open(str(path)) as container:
        assert container.duration == 500_000
        assert container.streams.video[0].average_rate == 12
        assert sum(1 for _ in container.decode(video=0)) == 6


def test_the_horse_moves(tmp_path: Path):
    """Successive frames differ all over, and a stride later only the counter does."""
    path = tmp_path / "film.mp4"
    render_mp4(film(480, 270), path)
    first, second, eighth, stride_later = frames(path, (0, 1, 8, 16))
    assert difference(first, second) > 8
    assert difference(first, eighth) > 12
    assert difference(first, stride_later) < 4


def test_every_frame_has_a_number_of_its_own(tmp_path: Path):
    """Below the horse, at the right, is a counter that changes from stride to stride."""
    path = tmp_path / "film.mp4"
    render_mp4(film(640, 360), path)
    corners = [frame.crop((500, 330, 640, 355)) for frame in frames(path, (0, 16, 32, 48, 64, 80))]
    for one, other in pairwise(corners):
        assert difference(one, other) > 4
    for corner in corners:
        assert ImageStat.Stat(corner.convert("L")).stddev[0] > 8


def test_a_film_with_sound_can_be_heard(tmp_path: Path):
    """A film with sound has AAC as long as its pictures, loud throughout and never clipped."""
    path = tmp_path / "film.mp4"
    render_mp4(film(duration=4.5, sound=True), path)
    sound = array("f")
    with av.open(str(path)) as container:
        assert sorted(stream.type for stream in container.streams) == ["audio", "video"]
        audio = container.streams.audio[0]
        assert audio.codec_context.name == "aac"
        assert audio.duration is not None
        assert audio.time_base is not None
        assert float(audio.duration * audio.time_base) == pytest.approx(4.5, abs=0.03)
        assert container.streams.video[0].frames == 108
        assert container.duration is not None
        assert container.duration / 1_000_000 == pytest.approx(4.5, abs=0.03)
        for frame in container.decode(audio=0):
            sound.frombytes(bytes(frame.planes[0])[: 4 * frame.samples])
    assert len(sound) / 48_000 == pytest.approx(4.5, abs=0.05)
    assert 0.2 < max(map(abs, sound)) <= 1.0
    for start in range(0, 4 * 48_000, 24_000):
        half_second = sound[start : start + 24_000]
        assert math.hypot(*half_second) / math.sqrt(len(half_second)) > 0.02


@pytest.mark.parametrize("prompt", [WEIRD_PROMPTS[name] for name in ("emoji", "long", "empty")])
def test_any_prompt_can_be_filmed(tmp_path: Path, prompt: str):
    """A film's caption is cut short as a plate's is, and leaves room for the counter."""
    path = tmp_path / "film.mp4"
    render_mp4(film(256, 256, prompt=prompt, duration=0.5), path)
    (frame,) = frames(path, [0])
    assert frame.size == (256, 256)


@pytest.mark.parametrize(("width", "height"), [(257, 144), (256, 145)])
def test_a_film_of_odd_size_is_refused(tmp_path: Path, width: int, height: int):
    """An odd width or height, which yuv420p cannot have, is an error and writes nothing."""
    with pytest.raises(ValueError, match="must be even"):
        render_mp4(film(width, height), tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_a_film_without_frames_is_refused(tmp_path: Path):
    """A duration too short for a single frame is an error and writes nothing."""
    with pytest.raises(ValueError, match="no frame"):
        render_mp4(film(duration=0.01), tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("reason", [OSError, KeyboardInterrupt])
def test_a_png_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
):
    """A write that ends half way leaves no file, and an earlier file as it was."""

    def save(_: Image.Image, path: Path, **__: object) -> None:
        path.write_bytes(b"\x89PNG half")
        raise reason

    earlier = tmp_path / "earlier.png"
    earlier.write_bytes(b"whole")
    monkeypatch.setattr(Image.Image, "save", save)
    for path in (tmp_path / "plate.png", earlier):
        with pytest.raises(reason):
            render_png(picture(), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["earlier.png"]
    assert earlier.read_bytes() == b"whole"


@pytest.mark.parametrize("reason", [OSError, KeyboardInterrupt])
def test_a_film_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
):
    """An encoding that ends half way leaves no file, and an earlier file as it was."""
    play_until = Soundtrack.play_until

    def interrupted(soundtrack: Soundtrack, time: Fraction) -> None:
        if time > 1:
            raise reason
        play_until(soundtrack, time)

    earlier = tmp_path / "earlier.mp4"
    earlier.write_bytes(b"whole")
    monkeypatch.setattr(Soundtrack, "play_until", interrupted)
    for path in (tmp_path / "film.mp4", earlier):
        with pytest.raises(reason):
            render_mp4(film(sound=True), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["earlier.mp4"]
    assert earlier.read_bytes() == b"whole"


STANCE = 0.24
"""The part of a stride for which each hoof is on the ground."""


def toes(outlines: Sequence[Outline]) -> list[float]:
    """Return how far forward the hooves on the ground reach, at most two, from behind."""
    grounded = sorted(point.real for outline in outlines for point in outline if point.imag < 0.005)
    ends = [one for one, next_one in pairwise(grounded) if next_one - one > 0.15]
    return [*ends, *grounded[-1:]]


def test_the_gallop_has_its_footfalls_in_order():
    """Far hind, near hind, far fore and near fore touch the ground in turn, then none does."""
    far_hind, near_hind, far_fore, near_fore = FOOTFALLS
    for moment in range(MOMENTS):
        phase = moment / MOMENTS
        horse = silhouette(phase)
        for outlines, footfalls in (
            (horse.far, (far_hind, far_fore)),
            (horse.near, (near_hind, near_fore)),
        ):
            # At the very first and last moment, only the tip of the toe touches the ground.
            sure = [one for one in footfalls if one + 0.03 < phase < one + STANCE - 0.03]
            most = [one for one in footfalls if one - 0.01 <= phase <= one + STANCE + 0.03]
            assert len(sure) <= len(toes(outlines)) <= len(most), phase
    assert near_fore + STANCE + 0.03 < 0.8


def test_a_hoof_on_the_ground_stays_where_it_is():
    """While a hoof is on the ground, it moves back under the horse as fast as the ground does."""
    for footfall, side in zip(FOOTFALLS, ("far", "near", "far", "near"), strict=True):
        first = math.ceil((footfall + 0.03) * MOMENTS)
        places = [
            max(toes(getattr(silhouette(moment / MOMENTS), side))) + moment / MOMENTS * STRIDE
            for moment in range(first, int((footfall + STANCE - 0.03) * MOMENTS) + 1)
        ]
        assert len(places) >= 8
        assert max(places) - min(places) < 0.03
