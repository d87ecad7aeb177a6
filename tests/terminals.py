"""A command that a test has started on a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

from processes import interrupt


class Terminal:
    """The command on a terminal of its own.

    Args:
        process: It.
        device: The other end of its terminal.
    """

    def __init__(self, process: subprocess.Popen[str], device: int) -> None:
        self._process = process
        self._device = device
        self.shown = b""

    def read_until(self, said: bytes) -> None:
        """Read what is shown up to *said*."""
        while said not in self.shown:
            data = os.read(self._device, 65536)
            assert data
            self.shown += data

    def answer(self, text: bytes) -> None:
        """Type *text*."""
        os.write(self._device, text)

    def interrupt(self, number: signal.Signals) -> None:
        """Send a signal once the command waits for input."""
        interrupt(self._process, number)

    def end(self) -> tuple[int, str]:
        """Return the exit code, and what was printed on stdout."""
        with contextlib.suppress(OSError):  # which is how a terminal ends on Linux
            while data := os.read(self._device, 65536):
                self.shown += data
        stdout, _ = self._process.communicate(timeout=30)
        return self._process.returncode, stdout
