"""Renders the results of tasks: each once, on its first download, in threads of its own."""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import trio

from muybridge.local.drawing.dimensions import dimensions
from muybridge.local.drawing.image import Picture, render_png
from muybridge.local.drawing.video import Film, render_mp4
from muybridge_protocol.emulator import EmulatedTask
from muybridge_protocol.emulator.responses import media_name

_THREADS = 2


class ResultFiles:
    """Keeps rendered files in a temporary folder until it is closed.

    It renders in a pool of its own: trio's worker threads would outlive the service.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="muybridge-")
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="muybridge-rendering")
        self._renderings: dict[str, Future[Path]] = {}

    def close(self) -> None:
        """Delete the files."""
        # Wait for renderings that have started: a thread cannot be stopped.
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    async def file(self, task: EmulatedTask) -> Path:
        """Return the file that shows the task's result, once it is rendered.

        Raises:
            OSError: It could not be written.
        """
        rendering = self._renderings.get(task.id)
        if rendering is None:
            path = Path(self._folder.name, media_name(task))
            rendering = self._pool.submit(_render, task, path)
            self._renderings[task.id] = rendering
        await _wait_for(rendering)
        try:
            return rendering.result()
        except BaseException:
            self._renderings.pop(task.id, None)  # the next request retries
            raise


async def _wait_for(rendering: Future[Path]) -> None:
    ended = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def wake(_: Future[Path]) -> None:
        with contextlib.suppress(trio.RunFinishedError):  # the service has stopped
            token.run_sync_soon(ended.set)

    rendering.add_done_callback(wake)
    await ended.wait()


def _render(task: EmulatedTask, path: Path) -> Path:
    size = dimensions(task.family, task.body)
    picture = Picture(
        width=size.width,
        height=size.height,
        prompt=task.prompt,
        family=task.family.name,
        model=task.model,
        settings=task.settings,
        seed=zlib.crc32(task.id.encode()),
    )
    if size.seconds is None:
        render_png(picture, path)
    else:
        render_mp4(Film(picture=picture, duration=size.seconds, sound=size.sound), path)
    return path
