"""An emulated task, and its life over time.

A task never changes by itself: its status is a function of the task and of the time, so that
polling costs nothing and thousands of tasks wait without a timer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import StrEnum

import attrs

from muybridge_protocol.emulator.assets import referenced_assets
from muybridge_protocol.emulator.lengths import video_seconds
from muybridge_protocol.emulator.markers import read_fate
from muybridge_protocol.families import Family, Media
from muybridge_protocol.families.family import DAY
from muybridge_protocol.records.json import read_object, truncated
from muybridge_protocol.records.tasks import Status, is_terminal
from muybridge_protocol.rules.values import is_array

ASSUMED_RETENTION = DAY
"""Seconds that results are kept in families whose retention the specification does not give."""

_SHOWN_SETTING = 80
"""Most characters of a setting that `EmulatedTask.settings` shows."""


@attrs.frozen(kw_only=True)
class Timing:
    """How long tasks take, and how fast text streams.

    Args:
        speed: What all times are divided by.
        image_queued: Seconds that an image task waits.
        image_processing: Seconds that an image takes to generate.
        video_queued: Seconds that a video task waits.
        video_processing: Seconds that a video takes to generate.
        text_interval: Seconds between two pieces of a streamed text.

    Raises:
        ValueError: The speed is not a positive number, or a time is negative.
    """

    speed: float = 1.0
    image_queued: float = 1.0
    image_processing: float = 4.0
    video_queued: float = 4.0
    video_processing: float = 26.0
    text_interval: float = 0.05

    def __attrs_post_init__(self) -> None:
        if not (math.isfinite(self.speed) and self.speed > 0):
            raise ValueError(f"{self.speed!r} is not a speed; use a number above 0")
        times = (
            self.image_queued,
            self.image_processing,
            self.video_queued,
            self.video_processing,
            self.text_interval,
        )
        if not all(math.isfinite(time) and time >= 0 for time in times):
            raise ValueError("a task, or a piece of text, takes a finite time of 0 s or more")

    def queued(self, media: Media) -> float:
        """Return the seconds that a task of *media* waits."""
        return (self.image_queued if media is Media.IMAGE else self.video_queued) / self.speed

    def processing(self, media: Media, seconds: float | None = None) -> float:
        """Return the seconds that *media* takes to generate: the usual, or *seconds* at speed 1."""
        if seconds is None:
            seconds = self.image_processing if media is Media.IMAGE else self.video_processing
        return seconds / self.speed

    def between_pieces(self) -> float:
        """Return the seconds between two pieces of a streamed text."""
        return self.text_interval / self.speed


class MediaState(StrEnum):
    """Whether a task's image or video can be downloaded."""

    AVAILABLE = "available"
    NOT_YET = "not yet"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
    """There is no such task, or it makes no image or video."""


@attrs.frozen(kw_only=True)
class EmulatedTask:
    """A task that the emulator has accepted, or an `imgb` task that it has rejected.

    Args:
        id: Its identifier.
        family: The family that it was created in.
        model: The model that was asked for; the family's name where none was.
        prompt: What it shows, or "".
        sent: The request's JSON as it came.
        created: When it was created, Unix seconds.
        starts_at: When it is picked up, Unix seconds.
        ends_at: When it ends, Unix seconds.
        ending: The status that it ends with.
        error: Why it fails, or None.
        seconds: The length of its video, or None for an image.
        assets: The assets that it uses.
    """

    id: str
    family: Family = attrs.field(repr=lambda family: family.name)
    model: str
    prompt: str
    sent: bytes = attrs.field(repr=lambda sent: f"<{len(sent)} bytes>")
    created: int
    starts_at: float
    ends_at: float
    ending: Status
    error: str | None = None
    seconds: float | None = None
    assets: tuple[str, ...] = ()

    @property
    def body(self) -> Mapping[str, object]:
        """The request's fields by wire names, parsed on each access."""
        return read_object(self.sent)

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The settings of the request except model and prompt, as short texts for people."""
        return tuple(
            (name, _shown(value))
            for name, value in self.body.items()
            if name not in ("model", "prompt")
        )

    @property
    def expires_at(self) -> int:
        """When the image or video is deleted, Unix seconds, counted from its creation."""
        retention = self.family.retention.seconds
        return self.created + (ASSUMED_RETENTION if retention is None else retention)

    def status(self, now: float) -> Status:
        """Return the status at *now*, Unix seconds."""
        if now >= self.ends_at:
            return self.ending
        return Status.PROCESSING if now >= self.starts_at else Status.QUEUED

    def media(self, now: float) -> MediaState:
        """Return whether the image or video can be downloaded at *now*, Unix seconds."""
        if self.ending is not Status.COMPLETED:
            return MediaState.UNKNOWN
        if now < self.ends_at:
            return MediaState.NOT_YET
        return MediaState.EXPIRED if now >= self.expires_at else MediaState.AVAILABLE

    def is_forgotten(self, now: float) -> bool:
        """Whether the record is deleted at *now*, Unix seconds (spec, "Result retention")."""
        return self.family.retention.record_too and now >= self.expires_at

    def ended(self, now: float) -> bool:
        """Whether the task is at its end at *now*, Unix seconds."""
        return is_terminal(self.status(now))

    def cancelled(self, now: float) -> EmulatedTask:
        """Return the task after its cancellation at *now*, Unix seconds."""
        return attrs.evolve(self, ends_at=now, ending=Status.CANCELLED, error=None)

    def failing(self, error: str) -> EmulatedTask:
        """Return the task that is going to fail with *error* when its time is up."""
        return attrs.evolve(self, ending=Status.FAILED, error=error)


def accept(
    family: Family,
    body: Mapping[str, object],
    *,
    sent: bytes,
    task_id: str,
    now: float,
    timing: Timing,
) -> EmulatedTask:
    """Return the task that a request makes.

    An image task without reference images is picked up at once and so reports `processing` on
    creation; every other task is `queued` first (spec, "States and transitions").

    Args:
        family: The family that the request is for.
        body: The request's fields.
        sent: The request's JSON as it came.
        task_id: The new task's identifier.
        now: Unix seconds.
        timing: How long tasks take.
    """
    prompt = _prompt(body)
    fate = read_fate(family, prompt)
    at_once = family.starts_processing and not body.get("image_urls")
    starts_at = now if at_once else now + timing.queued(family.media)
    return EmulatedTask(
        id=task_id,
        family=family,
        model=_model(family, body),
        prompt=prompt,
        sent=sent,
        created=int(now),
        starts_at=starts_at,
        ends_at=starts_at + timing.processing(family.media, fate.processing),
        ending=fate.ending,
        error=fate.error,
        seconds=video_seconds(family, body),
        assets=referenced_assets(family, body),
    )


def reject(task: EmulatedTask, error: str) -> EmulatedTask:
    """Return *task* as failed before it began (spec, `imgb` in "States and transitions")."""
    # Its end has passed even for a clock that is set back.
    return attrs.evolve(task, ends_at=-math.inf, ending=Status.FAILED, error=error)


def _prompt(body: Mapping[str, object]) -> str:
    prompt = body.get("prompt")
    return prompt if isinstance(prompt, str) else ""


def _model(family: Family, body: Mapping[str, object]) -> str:
    model = body.get("model")
    return model if isinstance(model, str) else family.name


def _shown(value: object) -> str:
    if is_array(value):
        text = f"{len(value)} item{'' if len(value) == 1 else 's'}"
    elif isinstance(value, str):
        text = "base64" if value[:5].lower() == "data:" else value.partition("?")[0]
    else:
        text = json.dumps(value)
    return truncated(text, _SHOWN_SETTING)
