"""Rules about the media themselves: what a reference must be, beyond its address.

Each family states them once, as data. From them come the sentences of the documentation, and the
check of pictures, videos and sounds against their facts, before they are paid for. A rule applies
the conditions of `rules.media_conditions` to each medium of a field, or adds up what all of them
have. `judge_media` reports for each rule and each medium whether it is kept, broken or undecided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import attrs

from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.remedies import Face, Remedy, advice, as_sentence, in_python
from muybridge_protocol.rules.media_conditions import (
    KEPT,
    Body,
    Condition,
    Judgement,
    OfKind,
    Verdict,
    judge_bytes,
)
from muybridge_protocol.rules.values import both


def place_of(field: str, index: int | None) -> str:
    """Return a field and the place in its array, such as `referenceVideos[0]`."""
    return field if index is None else f"{field}[{index}]"


@attrs.frozen(kw_only=True)
class Medium:
    """A picture, video or sound of a request.

    Args:
        field: The field, by its name on the wire.
        index: Its place in the field's array, or None if the field has only one.
        kind: What the field takes.
        source: Where it is, for people: a URL without its query, a path, or a size.
        facts: What is known about it.
    """

    field: str
    index: int | None
    kind: MediaKind
    source: str
    facts: MediaFacts

    @property
    def place(self) -> str:
        """The field, and the place in its array."""
        return place_of(self.field, self.index)


@attrs.frozen(kw_only=True)
class Finding:
    """Whether one rule is kept by one medium, or by all of a field.

    Args:
        field: The field, by its name on the wire.
        index: The place of the medium in the field's array, or None.
        clause: The rule, as a clause.
        verdict: Whether it is kept.
        why: What breaks it, or why it is undecided; "" if it is kept.
        remedies: What to do so that it can be decided.
    """

    field: str
    index: int | None
    clause: str
    verdict: Verdict
    why: str = ""
    remedies: tuple[Remedy, ...] = ()

    def __str__(self) -> str:
        return f"{self.place}: {self.reason() or self.verdict}. {self.rule}"

    @property
    def rule(self) -> str:
        """The rule, as a sentence."""
        return as_sentence(self.clause)

    def reason(self, face: Face = in_python) -> str:
        """Return why, and what to do about it in the words of *face*."""
        return "; ".join(filter(None, (self.why, advice(self.remedies, face))))

    @property
    def place(self) -> str:
        """The field, and the place in its array."""
        return place_of(self.field, self.index)


class MediaRule(Protocol):
    """A rule of a family about the media themselves."""

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        ...

    def findings(self, media: Sequence[Medium], body: Body) -> Iterator[Finding]:
        """Yield whether *media* of a request with *body* keep it."""
        ...


@attrs.frozen
class Each:
    """Each medium of *fields* fulfils *conditions*.

    Args:
        subject: What they are, such as `each reference image`.
        fields: The fields, by their names on the wire.
        conditions: What each of them must fulfil.
    """

    subject: str
    fields: tuple[str, ...]
    conditions: tuple[Condition, ...]

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        return as_sentence(self._clause(self.conditions))

    def findings(self, media: Sequence[Medium], body: Body) -> Iterator[Finding]:
        """Yield whether *media* of a request with *body* keep it."""
        for medium in media:
            if medium.field not in self.fields:
                continue
            for condition in self.conditions:
                judgement = condition.judge(medium.facts, body)
                yield _finding(medium, self._clause((condition,)), judgement)

    def _clause(self, conditions: Sequence[Condition]) -> str:
        return f"{self.subject} {both([condition.words for condition in conditions])}"


@attrs.frozen(kw_only=True)
class Together:
    """All media of *field* together last at most so long, or have at most so many megabytes.

    Args:
        subject: What they are, in the plural.
        field: The field, by its name on the wire.
        seconds: How long they last at most, or None.
        megabytes: How many megabytes they have at most, or None.
    """

    subject: str
    field: str
    seconds: int | None = None
    megabytes: int | None = None

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        return as_sentence(self._clause(*filter(None, (self._length(), self._size()))))

    def findings(self, media: Sequence[Medium], body: Body) -> Iterator[Finding]:  # noqa: ARG002  holds for all
        """Yield whether *media* keep it."""
        facts = [medium.facts for medium in media if medium.field == self.field]
        if not facts:
            return
        if self.seconds is not None:
            lengths = [one.seconds for one in facts]
            yield self._finding(self._length(), self._judge_length(lengths, self.seconds))
        if self.megabytes is not None:
            sizes = [one.bytes for one in facts]
            yield self._finding(self._size(), self._judge_size(sizes, self.megabytes))

    def _judge_length(self, lengths: Sequence[float | None], most: int) -> Judgement:
        measured = [length for length in lengths if length is not None]
        what = f"they last {sum(measured):.6g} s together"
        # Broken even if the service rounds each of them down, and whatever the others have.
        if sum(map(math.floor, measured)) > most:
            return Judgement(Verdict.BROKEN, what)
        if len(measured) < len(lengths):
            return Judgement(Verdict.UNDECIDED, "how long some of them last is not known")
        if sum(measured) <= most:
            return KEPT
        return Judgement(Verdict.UNDECIDED, f"{what}: it depends on how the service rounds")

    def _judge_size(self, sizes: Sequence[int | None], most: int) -> Judgement:
        measured = [size for size in sizes if size is not None]
        judgement = judge_bytes(sum(measured), most)
        if judgement.verdict is Verdict.BROKEN:
            return Judgement(Verdict.BROKEN, f"together, they have {sum(measured):,} bytes")
        if len(measured) < len(sizes):
            return Judgement(Verdict.UNDECIDED, "the size of some of them is not known")
        return judgement

    def _length(self) -> str:
        return "" if self.seconds is None else f"last at most {self.seconds} s"

    def _size(self) -> str:
        return "" if self.megabytes is None else f"have at most {self.megabytes} MB"

    def _clause(self, *parts: str) -> str:
        return f"all {self.subject} together {both(parts)}"

    def _finding(self, part: str, judgement: Judgement) -> Finding:
        return Finding(
            field=self.field,
            index=None,
            clause=self._clause(part),
            verdict=judgement.verdict,
            why=judgement.why,
        )


@attrs.frozen
class Unseen:
    """A rule that only the service can decide, about media of *fields*; a remark has none."""

    clause: str
    fields: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The rule as a sentence."""
        return as_sentence(self.clause)

    def findings(self, media: Sequence[Medium], body: Body) -> Iterator[Finding]:  # noqa: ARG002  holds for all
        """Yield that it is undecided, for each of *media* that it is about."""
        for medium in media:
            if medium.field in self.fields:
                judgement = Judgement(Verdict.UNDECIDED, "only the service can tell")
                yield _finding(medium, self.clause, judgement)


@attrs.frozen
class MediaReport:
    """The result of a check of a request's media.

    Args:
        media: What was looked at.
        findings: Whether each rule is kept, in the order of the media, then of the family's rules.
    """

    media: tuple[Medium, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The rules that are certainly broken: do not pay for this request."""
        return self._of(Verdict.BROKEN)

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """The rules that could not be decided, and why."""
        return self._of(Verdict.UNDECIDED)

    @property
    def decided(self) -> int:
        """How many of the rules are decided."""
        return len(self.findings) - len(self.undecided)

    @property
    def ok(self) -> bool:
        """Whether no rule is certainly broken. Some may be undecided."""
        return not self.problems

    def _of(self, verdict: Verdict) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is verdict)


def judge_media(rules: Sequence[MediaRule], media: Sequence[Medium], body: Body) -> MediaReport:
    """Return whether *media* of a request with *body* keep *rules*.

    Each of them must be of the kind that its field takes. One that certainly is not is not judged
    any further.
    """
    findings: list[Finding] = []
    good: list[Medium] = []
    for medium in media:
        judgement = OfKind(medium.kind).judge(medium.facts, body)
        findings.append(_finding(medium, f"the field takes {medium.kind}s", judgement))
        if judgement.verdict is not Verdict.BROKEN:
            good.append(medium)
    for rule in rules:
        findings += rule.findings(good, body)
    places = [(medium.field, medium.index) for medium in media]
    fields = list(dict.fromkeys(medium.field for medium in media))

    def order(finding: Finding) -> tuple[int, int]:
        place = (finding.field, finding.index)
        # A finding about a whole field follows those about its media.
        alone = places.index(place) if place in places else len(places)
        return fields.index(finding.field), alone

    return MediaReport(tuple(media), tuple(sorted(findings, key=order)))


def _finding(medium: Medium, clause: str, judgement: Judgement) -> Finding:
    return Finding(
        field=medium.field,
        index=medium.index,
        clause=clause,
        verdict=judgement.verdict,
        why=judgement.why,
        remedies=judgement.remedies,
    )
