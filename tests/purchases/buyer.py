"""Buy once from a store, and print what came of it: `python -m purchases.buyer PLACE WORLD`.

WORLD is JSON: the id of the user who buys, as `user`; and a system call whose locks the system
refuses, with the error, as `refuses`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import struct
import sys

from muybridge.purchases import StoreUnusable, open_store
from muybridge_protocol.purchases import Measure

from .racer import order_of

_NO_NEW_PRIVILEGES, _FILTER = 38, 22  # of prctl
_CALLS = {"x86_64": {"fcntl": 72, "flock": 73}, "aarch64": {"fcntl": 25, "flock": 32}}
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06


def can_refuse() -> bool:
    """Whether `refuse` knows this machine."""
    return sys.platform == "linux" and platform.machine() in _CALLS


def refuse(call: str, error: str) -> None:
    """Let the system answer each *call* for a lock with *error*, in this process."""
    to_lock = [(_LOAD, 0, 0, 24), (_EQUAL, 1, 0, fcntl.F_SETLK)] if call == "fcntl" else []
    steps = [
        (_LOAD, 0, 0, 0),  # the number of the call; then its second argument
        (_EQUAL, 0 if to_lock else 1, len(to_lock), _CALLS[platform.machine()][call]),
        *to_lock,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | getattr(errno, error)),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    )
    system = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_FILTER, 2, program, 0, 0)):
        if system.prctl(*arguments):
            raise SystemExit(77)


def main(place: str, world: str = "{}") -> None:
    """Arm, and print "armed" and what is spent, or why not."""
    told = json.loads(world)
    with open_store(place) as store:  # which imports what another user perhaps may not read
        if "user" in told:
            os.setgroups([])
            os.setgid(told["user"])
            os.setuid(told["user"])
        if "refuses" in told:
            refuse(*told["refuses"])
        try:
            store.arm(order_of())
        except StoreUnusable as error:
            print(error)  # noqa: T201  the test reads it
        else:
            print("armed,", store.spent()[Measure.CREATES], "spent")  # noqa: T201  the test reads it


if __name__ == "__main__":
    main(*sys.argv[1:])
