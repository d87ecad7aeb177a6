"""The whole service on this machine: the emulator over HTTP, with real images and videos.

    with LocalService(speed=20) as service:
        client = Client(service.api_key, service.base_url)

It needs the extra `local`, and loads what that installs only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.lazy_names import Home, LazyNames

if TYPE_CHECKING:
    from muybridge.local.answers import load_answers
    from muybridge.local.service import LocalService, serve

__all__ = ["LocalService", "load_answers", "serve"]
# As in `muybridge.batch`: everything here needs the extra.
_LAZY: Final = LazyNames(
    __name__,
    {
        "muybridge.local.service": Home(
            "LocalService serve",
            extra="local",
            needs="PIL av hypercorn",
            user="muybridge.local",
        ),
        "muybridge.local.answers": Home("load_answers"),
    },
    globals().pop("__all__"),
)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        return _LAZY.get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY.offered()})
