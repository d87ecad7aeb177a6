"""Progress on stderr: a spinner on a terminal, a plain line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muybridge.cli.terminal import is_live, message_console, say
from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.events import (
    DownloadProgress,
    Polled,
    ServiceSilent,
    Submitted,
    Throttled,
    WillRetry,
)
from muybridge_protocol.observations import CallBegan, Expected
from muybridge_protocol.records.json import readable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner

    from muybridge_protocol.observations import AnyEvent

_MEBIBYTE = 1024 * 1024
_LONG_WAIT = 5.0
"""Seconds of silence that need a word."""


class Progress:
    """Reports each change as a plain line."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._has_task = False
        self._has_shown_wait = False
        self._download_began: float | None = None

    @property
    def elapsed(self) -> str:
        """The time since the beginning, for people: whole seconds, for tenths would flicker."""
        return shown_seconds(round(time.monotonic() - self._began))

    def say(self, line: str) -> None:
        """Print *line* on stderr."""
        say(line)

    def event(self, event: AnyEvent) -> None:
        """Say what a person waits for: changes of the status, retries and long downloads."""
        match event:
            case CallBegan(call=call) if call.kind == "download":
                self._downloading()
            case Submitted():
                self._began = time.monotonic()
                self._has_task = True
            case Polled(result, changed=True):
                self._has_task = True
                self.say(f"{readable(result.status, 40)} after {self.elapsed}")
            case WillRetry() | ServiceSilent() | Throttled():
                self.say(event.sentence())
            case Expected():
                self._expect(event)
            case DownloadProgress():
                self._downloaded(event)
            case _:
                pass

    def _expect(self, event: Expected) -> None:
        """Say how long such tasks usually take."""
        self.say(event.sentence())

    def _downloading(self) -> None:
        """Note that a download begins. The first long one is reported while it goes on."""
        self._download_began = time.monotonic()

    def _downloaded(self, event: DownloadProgress) -> None:
        began = self._download_began
        if began is not None and time.monotonic() - began >= _LONG_WAIT:
            self._download_began = None
            self.say(_shown(event))

    def waiting(self, seconds: float) -> None:
        """Note that nothing happens for *seconds*. The first long wait for a task is reported."""
        if self._has_task and not self._has_shown_wait and seconds >= _LONG_WAIT:
            self._has_shown_wait = True
            self.say(f"next query in {shown_seconds(seconds)} (--poll-interval sets the pace)")


class LiveProgress(Progress):
    """Shows a spinner with the time, the status and the next poll, as well as the plain lines."""

    def __init__(self) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        super().__init__()
        utf8 = (sys.stderr.encoding or "").lower().startswith("utf")
        self._status = "sending"
        self._next: float | None = None
        self._expected: tuple[Expected, float] | None = None
        self._spinner: Spinner = Spinner("dots" if utf8 else "line")
        self.live: Live = Live(
            get_renderable=self._rendered,
            console=message_console(),
            transient=True,
            # Data goes to stdout, and nothing of it through the spinner.
            redirect_stdout=False,
        )

    def event(self, event: AnyEvent) -> None:
        """Show the status beside the spinner, and say the same lines."""
        match event:
            case Submitted(task):
                self._status = readable(task.status or "queued", 40)
            case Polled(result):
                self._status = readable(result.status, 40)
            case DownloadProgress():
                self._status = _shown(event)
            case _:
                pass
        self._next = None
        super().event(event)

    def _expect(self, event: Expected) -> None:
        """Show it as long as the wait lasts."""
        self._expected = event, time.monotonic()

    def _downloading(self) -> None:
        """Show that a download begins: its first byte may take a while."""
        self._status = "downloading"

    def _downloaded(self, event: DownloadProgress) -> None:
        """Do nothing: the spinner shows it."""

    def waiting(self, seconds: float) -> None:
        """Show when the wait ends."""
        self._next = time.monotonic() + seconds

    def _rendered(self) -> Spinner:
        from rich.text import Text

        parts = [self._status, self.elapsed]
        if self._expected is not None:
            expected, told_at = self._expected
            parts[1] = expected.sentence(time.monotonic() - told_at)
        if self._next is not None:
            left = max(0.0, self._next - time.monotonic())
            parts.append(f"next query in {shown_seconds(round(left))}")
        # A Text is shown as it is: what the service says is no markup.
        self._spinner.update(text=Text(", ".join(parts)))
        return self._spinner


def _shown(event: DownloadProgress) -> str:
    whole = "" if event.total is None else f" of {event.total / _MEBIBYTE:.1f}"
    return f"downloading {event.received / _MEBIBYTE:.1f}{whole} MiB"


@contextmanager
def showing_progress(*, spinner: bool) -> Generator[Progress, None, None]:
    """Yield the progress that suits stderr. Without *spinner*, a terminal gets plain lines too."""
    if spinner and is_live():
        progress = LiveProgress()
        with progress.live:
            yield progress
    else:
        yield Progress()
