"""The server for agents: a program that acts for a person makes pictures, videos and text here.

It speaks the Model Context Protocol through the official SDK, and does what the command does: its
tools present the functions in `muybridge.verbs`. What it adds is that nothing is paid twice, and
nothing without leave:

- **Content and number are the key.** Each request is bought under a name in the store, which is
  made of its fields and its number (`again`). Whoever repeats a call, replays it, or restarts the
  server gets the same task.
- **Leave before the first byte.** Either a person consents to this very request, when the host asks
  them, or a budget was given when the server was started. The budget is the store's, so a restart
  does not renew it.
- **Nothing waits for long.** A create returns a token, and `wait` returns within 45 seconds.
- **Texts of the service are data.** They are truncated and marked, and the key is in no answer.

It needs the extra `mcp`, and loads what that installs only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.lazy_names import Home, LazyNames

if TYPE_CHECKING:
    from muybridge.mcp.buyer import Setup
    from muybridge.mcp.folder import Folder
    from muybridge.mcp.server import make_server, serve_stdio

__all__ = ["Folder", "Setup", "make_server", "serve_stdio"]
_EXTRA: Final = {"extra": "mcp", "needs": "mcp", "user": "muybridge mcp"}
# As in `muybridge.local`: everything here needs the extra.
_LAZY: Final = LazyNames(
    __name__,
    {
        "muybridge.mcp.buyer": Home("Setup", **_EXTRA),
        "muybridge.mcp.folder": Home("Folder", **_EXTRA),
        "muybridge.mcp.server": Home("make_server serve_stdio", **_EXTRA),
    },
    globals().pop("__all__"),
)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        return _LAZY.get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY.offered()})
