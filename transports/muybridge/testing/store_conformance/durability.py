"""Whether what was committed is kept: by kills, by the order of syncs, and in older copies."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from muybridge.purchases import Store, StoreUnusable
from muybridge.testing.conformance.lessons import promises
from muybridge.testing.store_conformance.checks import StoreChecks, accepted, order
from muybridge.testing.store_conformance.lessons import (
    DURABLE,
    FRESH,
    SYNCED,
    UNDONE,
    StoreCapabilities,
)
from muybridge_protocol.purchases import Budget, Measure, State

_SENT: Final = b"here it is sent"
_CALLS: Final = (
    "open", "openat", "creat", "write", "writev", "pwrite64", "pwritev", "pwritev2", "ftruncate",
    "fallocate", "fsync", "fdatasync", "msync", "rename", "renameat", "renameat2", "link", "linkat",
    "unlink", "unlinkat",
)  # fmt: skip
# From `write` to `fallocate`: what changes the content of a file.
_WRITES: Final = frozenset(_CALLS[3:10])
_BEGUN: Final = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>")
_RESUMED: Final = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_CALL: Final = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (\d+)(?:<(.*)>)?.*")
_ANY_TRACER: Final = (0x59616D61, -1)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY


class Durability(StoreChecks):
    """Checks of what is kept."""

    def test_a_killed_process_has_recorded_what_it_was_about_to_send(self) -> None:
        """What a process has armed, every later one finds."""
        database, store = self._made()

        def act() -> None:
            mine = Store(self.reopen(database))
            mine.arm(order("once killed"), key="killed")
            mine.conclude("killed", accepted("T"))
            mine.arm(order(), key="sending")

        self._killed_after(act)
        for user in (store, self._reopened(database)):
            found = {one.key: one.state for one in user.purchases()}
            DURABLE.equal(found, {"killed": State.ACCEPTED, "sending": State.ARMED})
            named = user.named("a", "once killed")
            DURABLE.require(named and named.task == "T", "the name leads to task T", named)

    def test_a_process_killed_within_a_transaction_leaves_nothing(self) -> None:
        """Neither rows nor locks."""
        database, store = self._made()
        bought = store.arm(order("once x"))
        store.limit("", Budget(creates=2))
        unfinished: list[object] = []

        def act() -> None:
            transaction = self.reopen(database).transaction()
            rows = transaction.__enter__()
            rows.hold([""])
            rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=bought.key)
            # The context does not end: the process is killed within it.
            unfinished.append(transaction)

        self._killed_after(act)
        try:
            store.arm(order())
        except StoreUnusable as error:
            UNDONE.refuse("the locks of a dead process are free", error)
        UNDONE.equal(len([*store.purchases()]), 2, "2 purchases")
        UNDONE.equal(store.spent()[Measure.CREATES], 2, "2 spent")

    @promises("shows_syncs", of=StoreCapabilities)
    def test_a_purchase_is_on_the_disk_before_it_is_sent(self) -> None:
        """Each file that was written is synced, and each folder in which names have changed."""
        database, store = self._made()
        store.arm(order())
        files = [Path(os.path.realpath(file)) for file in self.files(database)]
        SYNCED.require(files, "files that `strace` can watch (`files`)", "none")

        def act() -> None:
            Store(self.reopen(database)).arm(order())

        written, unsynced = _read(_traced(act), files)
        SYNCED.require(written, f"writes to one of {[*map(str, files)]}", "none")
        SYNCED.require(not unsynced, "everything is synced before it is sent", sorted(unsynced))

    def test_an_older_copy_is_noticed(self) -> None:
        """It lacks the last purchase that this process has committed. So is another store."""
        database, store = self._made()
        store.arm(order())
        restore = self.backup(database)
        store.arm(order("once x"))
        restore()
        _must_refuse(store, "an older copy")
        database, store = self._made()
        store.arm(order())
        with self.reopen(database).transaction() as rows:
            rows.run("UPDATE muybridge_store SET salt = :salt", salt="another")
        _must_refuse(store, "another store")

    @promises("notices_copies_later", of=StoreCapabilities)
    def test_an_older_copy_is_noticed_by_a_later_process(self) -> None:
        """On the machine that has used the newer one."""
        database, store = self._made()
        store.arm(order())
        restore = self.backup(database)
        store.arm(order("once x"))
        restore()
        _must_refuse(self._reopened(database), "an older copy")


def _must_refuse(store: Store, what: str) -> None:
    uses: tuple[tuple[str, Callable[[], object]], ...] = (
        ("arm", lambda: store.arm(order())),
        ("spent", store.spent),
    )
    for name, use in uses:
        try:
            use()
        except StoreUnusable:
            continue
        FRESH.refuse(f"StoreUnusable for {what}", f"{name} works")


def _traced(act: Callable[[], object]) -> str:
    """Return what `strace` sees of a forked process that calls *act*, and then sends something."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("not shown: there is no strace")
    ready_reading, ready_writing = os.pipe()
    go_reading, go_writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if sys.platform == "linux":
                # Many systems let a process be traced by its ancestors alone, and strace is its
                # sibling.
                ctypes.CDLL(None).prctl(*_ANY_TRACER, 0, 0, 0)
            os.write(ready_writing, b".")
            os.read(go_reading, 1)
            act()
            os.write(ready_writing, _SENT)
        finally:
            os._exit(0)
    os.read(ready_reading, 1)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        # With a question mark, strace ignores a call that this processor does not have.
        calls = ",".join(f"?{call}" for call in _CALLS)
        tracer = subprocess.Popen(  # noqa: S603  what is installed
            [strace, "-f", "-y", "-s", "64", "-e", f"trace={calls}", "-o", str(log),
             "-p", str(child)],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert tracer.stderr is not None  # noqa: S101  for type checkers
        line = tracer.stderr.readline()
        if "attached" not in line:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            tracer.communicate()
            pytest.skip(f"not shown: strace may not trace here ({line.strip()})")
        os.write(go_writing, b".")
        os.waitpid(child, 0)
        tracer.communicate()
        for end in (ready_reading, ready_writing, go_reading, go_writing):
            os.close(end)
        return log.read_text(errors="replace")


def _read(log: str, files: Iterable[Path]) -> tuple[bool, set[str]]:
    """Return whether any of *files* was written, and what was not synced when it was sent."""
    names = {str(file) for file in files}
    there = {name for name in names if Path(name).exists()}
    written, unsynced, synchronous = False, set[str](), set[str]()
    for call, arguments, path in _calls_in(log):
        if call == "write" and _SENT.decode() in arguments:
            return written, unsynced
        folders = {str(Path(name).parent) for name in names if f'"{name}"' in arguments}
        if call in ("fsync", "fdatasync", "msync"):
            unsynced.discard(path)
        elif call in ("open", "openat", "creat"):
            if path in names and re.search(r"O_D?SYNC", arguments):
                synchronous.add(path)
            if path in names - there and (call == "creat" or "O_CREAT" in arguments):
                there.add(path)
                unsynced.add(str(Path(path).parent))
        elif call in _WRITES:
            if path in names:
                written = True
                if path not in synchronous:
                    unsynced.add(path)
        elif folders:  # names have changed
            unsynced |= folders
            gone = {name for name in names if f'"{name}"' in arguments}
            there -= gone
            unsynced -= gone
    return SYNCED.refuse("what is sent", "the process has failed: see what it has printed")


def _calls_in(log: str) -> Iterator[tuple[str, str, str]]:
    """Yield each call with its arguments and the path that it concerns."""
    begun: dict[str, str] = {}
    for line in log.splitlines():
        whole = line
        if first := _BEGUN.fullmatch(line):
            begun[first[1]] = f"{first[1]} {first[2]}"
            continue
        if rest := _RESUMED.fullmatch(line):
            whole = begun.pop(rest[1], "") + rest[2]
        if call := _CALL.fullmatch(whole):
            handle = re.match(r"\d+<([^>]*)>", call[2])
            opened = call[1] in ("open", "openat", "creat")
            yield call[1], call[2], (call[4] or "") if opened else (handle[1] if handle else "")
