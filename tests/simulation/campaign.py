"""Many worlds: what each plan makes, and what all of them have seen.

A kind of world is a function that lives one: it starts the programs of the plan, lets the world run
until they have ended, and has the judges look at what the service charged and what the users were
told. It raises `judges.Verdict` if something is wrong.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest.mock import patch

from . import batches, names
from .disk import Disk
from .judges import Verdict
from .machine import Machine
from .plan import Plan
from .world import World

Live = Callable[[Plan, World, Machine, Path], None]

KINDS: Final[dict[str, Live]] = {
    "names": names.live,
    "servers": names.live_on_server,
    "batches": batches.live,
    "workers": batches.live_on_server,
}
"""How each kind of world is lived, in a folder of its own."""

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it


def run(plan: Plan, *, story: list[str] | None = None) -> World:
    """Run the world of *plan*, and judge it.

    Args:
        plan: What it is like.
        story: Where to tell what happens, or None.

    Raises:
        Verdict: A judge has found something wrong.
        Stuck: The world never ends.
    """
    world = World(plan.seed)
    world.story = story
    root = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    machine = Machine(world, Disk(world, root), plan.disk)
    try:
        state = {"XDG_STATE_HOME": str(root / "state")}
        with machine.running(), patch.dict(os.environ, state):
            try:
                KINDS[plan.kind](plan, world, machine, root)
            except AssertionError:
                raise
            except Exception as error:
                raise Verdict("errors known", repr(error)) from error
            finally:
                world.close()
    finally:
        shutil.rmtree(root)
        if story is not None:  # where it was on this machine is no part of it
            story[:] = [line.replace(str(root), "FOLDER") for line in story]
    return world
