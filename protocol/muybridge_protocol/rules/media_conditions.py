"""What one picture, video or sound must fulfil: the parts of `rules.media`.

A condition can be kept, broken or undecided. It is undecided if a fact is unknown, and also where
the specification can be read in more than one way: how the service rounds 15.04 s, whether a
megabyte has 1,000,000 or 1,048,576 bytes, which edge "720 px" means. A condition is kept if the
plain reading keeps it. It is broken only if no reading keeps it, so that nothing is refused which
the service may accept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import attrs

from muybridge_protocol.media.facts import UNKNOWN_FORMAT, MediaFacts
from muybridge_protocol.media.formats import FORMATS, MP3
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.remedies import Remedy
from muybridge_protocol.rules.values import either, parse_pixel_size

Body = Mapping[str, object]
"""A request's body, by wire names."""


class Verdict(StrEnum):
    """Whether a rule is kept."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"


@attrs.frozen
class Judgement:
    """Whether a condition holds, and why it does not or cannot be decided."""

    verdict: Verdict
    why: str = ""
    remedies: tuple[Remedy, ...] = ()


KEPT = Judgement(Verdict.KEPT)


class Condition(Protocol):
    """What one medium must fulfil."""

    @property
    def words(self) -> str:
        """What it must be, as the end of a sentence."""
        ...

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:
        """Return whether a medium with *facts* fulfils it, in a request with *body*."""
        ...


@attrs.frozen
class OfKind:
    """It is an image, a video or a sound."""

    kind: MediaKind

    @property
    def words(self) -> str:
        """What it must be."""
        return f"is {self._noun}"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        if facts.defect:
            return Judgement(Verdict.BROKEN, facts.defect)
        if facts.kind is None:
            return _unknown(facts, "what it is")
        if facts.kind is not self.kind:
            what = f"is {facts.format}, which is not {self._noun}"
            if self.kind is MediaKind.VIDEO and facts.format in _MOVING:
                return Judgement(Verdict.UNDECIDED, f"{facts.format} may be accepted as a video")
            return Judgement(Verdict.BROKEN, what)
        return Judgement(Verdict.UNDECIDED, facts.doubt) if facts.doubt else KEPT

    @property
    def _noun(self) -> str:
        return f"{'an' if self.kind is MediaKind.IMAGE else 'a'} {self.kind}"


_MOVING = tuple(one.name for one in FORMATS.values() if one.moves)
_WITHOUT_MARK = (MP3.name,)
"""Formats that data may have although they begin like nothing that is known."""


@attrs.frozen
class Formats:
    """It has one of the formats *names*."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it must be."""
        return f"is {either(self.names)}"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        if facts.format in self.names:
            return KEPT
        unclear = facts.format == UNKNOWN_FORMAT and set(self.names) & {*_WITHOUT_MARK}
        if facts.format is None or unclear:
            return _unknown(facts, "its format")
        is_unknown = facts.format == UNKNOWN_FORMAT
        what = "has a format that is not recognized" if is_unknown else f"is {facts.format}"
        return Judgement(Verdict.BROKEN, what)


@attrs.frozen
class Edges:
    """Both edges have *low* to *high* pixels."""

    low: int
    high: int

    @property
    def words(self) -> str:
        """What it must be."""
        return f"has {self.low}-{self.high} px per side"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        return _by_size(facts, lambda w, h: self.low <= min(w, h) and max(w, h) <= self.high)


@attrs.frozen
class Proportion:
    """It is *low* to *high* times as wide as high; both have at most one decimal."""

    low: float
    high: float

    @property
    def words(self) -> str:
        """What it must be."""
        return f"is {self.low:g} to {self.high:g} times as wide as high"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        # In tenths, so that only whole numbers are compared: 0.4 is no exact float.
        low, high = round(10 * self.low), round(10 * self.high)
        return _by_size(facts, lambda w, h: low * h <= 10 * w <= high * h)


@attrs.frozen(kw_only=True)
class Orientation:
    """It has exactly the pixels of the orientation that the request chooses.

    Args:
        sizes: Width and height for each aspect ratio.
        ratio: The field with the aspect ratio.
        size: The field that may have `{width}x{height}` instead.
        default: The size if neither is sent.
    """

    sizes: tuple[tuple[str, tuple[int, int]], ...]
    ratio: str
    size: str
    default: tuple[int, int]

    @property
    def words(self) -> str:
        """What it must be."""
        return f"has {', and '.join(f'{w}x{h} px for {ratio}' for ratio, (w, h) in self.sizes)}"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:
        """Return whether a medium with *facts* fulfils it."""
        given = body.get(self.size)
        wanted = dict(self.sizes).get(str(body.get(self.ratio)), self.default)
        if isinstance(given, str):
            wanted = parse_pixel_size(given) or wanted
        judgement = _by_size(facts, lambda w, h: (w, h) == wanted)
        if judgement.verdict is not Verdict.BROKEN:
            return judgement
        return attrs.evolve(
            judgement, why=f"{judgement.why}, but must have {wanted[0]}x{wanted[1]} px"
        )


@attrs.frozen
class Lines:
    """The video is one of *lines*, such as 480p or 720p.

    The specification does not say what that means for a video that is upright or square, or whose
    edges are rounded to multiples of 16. So another video is only refused if none of its edges is
    close to one of them, and if it has fewer or more pixels than any that is so called.
    """

    lines: tuple[int, ...]

    @property
    def words(self) -> str:
        """What it must be."""
        return f"is {either([f'{lines}p' for lines in self.lines])}"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        least, most = min(self.lines), max(self.lines)
        # 4:3 and 16:9, give or take a tenth.
        fewest, many = least * least * 4 / 3 * 0.9, most * most * 16 / 9 * 1.1

        def perhaps(width: int, height: int) -> bool:
            near = any(abs(edge - lines) <= 16 for edge in (width, height) for lines in self.lines)  # noqa: PLR2004  a block of a codec
            return near or fewest <= width * height <= many

        return _by_size(facts, lambda w, h: min(w, h) in self.lines, perhaps)


@attrs.frozen
class Resolution:
    """Its resolution is between *low* and *high* pixels: the short edge, or perhaps the other."""

    low: int
    high: int

    @property
    def words(self) -> str:
        """What it must be."""
        return f"has a resolution between {self.low} px and {self.high} px"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        return _by_size(
            facts,
            lambda w, h: self.low <= min(w, h) <= self.high,
            lambda w, h: any(self.low <= edge <= self.high for edge in (w, h)),
        )


@attrs.frozen
class Lasts:
    """It lasts *low* to *high* seconds."""

    low: int
    high: int

    @property
    def words(self) -> str:
        """What it must be."""
        return f"lasts {self.low}-{self.high} s"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        seconds = facts.seconds
        if seconds is None:
            return _unknown(facts, "how long it lasts")
        if self.low <= seconds <= self.high:
            return KEPT
        what = f"lasts {seconds:.6g} s"
        if self.low <= math.ceil(seconds) and math.floor(seconds) <= self.high:
            return Judgement(Verdict.UNDECIDED, f"{what}: it depends on how the service rounds")
        return Judgement(Verdict.BROKEN, what)


MEGABYTE, MEBIBYTE = 1_000_000, 1_048_576


@attrs.frozen
class Megabytes:
    """It has at most *most* megabytes, or fewer than these."""

    most: int
    fewer: bool = False

    @property
    def words(self) -> str:
        """What it must be."""
        return f"is under {self.most} MB" if self.fewer else f"has at most {self.most} MB"

    def judge(self, facts: MediaFacts, body: Body) -> Judgement:  # noqa: ARG002  holds for all
        """Return whether a medium with *facts* fulfils it."""
        if facts.bytes is None:
            return _unknown(facts, "its size")
        return judge_bytes(facts.bytes, self.most, fewer=self.fewer)


def judge_bytes(size: int, megabytes: int, *, fewer: bool = False) -> Judgement:
    """Return whether *size* bytes are at most, or fewer than, so many megabytes of either kind."""
    # Fewer than so many is at most one byte less.
    size_counted = size + 1 if fewer else size
    if size_counted <= megabytes * MEGABYTE:
        return KEPT
    what = f"has {size:,} bytes"
    if size_counted <= megabytes * MEBIBYTE:
        why = f"{what}: it depends on what the service calls a megabyte"
        return Judgement(Verdict.UNDECIDED, why)
    return Judgement(Verdict.BROKEN, what)


class _SizeTest(Protocol):
    def __call__(self, w: int, h: int, /) -> bool: ...


def _by_size(facts: MediaFacts, keeps: _SizeTest, perhaps: _SizeTest | None = None) -> Judgement:
    """Return whether the size in pixels fulfils *keeps*, the plain reading, or *perhaps* another.

    A picture may be stored in one orientation and shown in the other. Which of the two the service
    looks at is not known, so that both must agree.
    """
    if facts.width is None or facts.height is None:
        return _unknown(facts, "its size in pixels")
    stored, shown = (facts.width, facts.height), (facts.height, facts.width)
    sizes = (stored, shown) if facts.turned else (stored,)
    if all(keeps(*size) for size in sizes):
        return KEPT
    what = f"has {facts.width}x{facts.height} px"
    if any(keeps(*size) for size in sizes):
        return Judgement(Verdict.UNDECIDED, f"{what} but is rotated for display")
    if perhaps is not None and any(perhaps(*size) for size in sizes):
        why = f"{what}: it depends on how the service measures"
        return Judgement(Verdict.UNDECIDED, why)
    return Judgement(Verdict.BROKEN, what)


def _unknown(facts: MediaFacts, what: str) -> Judgement:
    if not facts.missing:
        return Judgement(Verdict.UNDECIDED, f"{what} is not in its header")
    return Judgement(Verdict.UNDECIDED, facts.missing, facts.remedies)
