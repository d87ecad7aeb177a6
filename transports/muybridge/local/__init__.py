"""The whole service on this machine: the emulator over HTTP, with real images and videos.

    with LocalService(speed=20) as service:
        client = Client(service.api_key, service.base_url)

It needs the extra `local`, and loads what that installs only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muybridge.extras import obtainable

if TYPE_CHECKING:
    from muybridge.local.service import LocalService, serve

__all__ = ["LocalService", "serve"]
_NAMES: Final[list[str]] = globals().pop("__all__")  # as in `muybridge`

_EXTRA: Final = ("PIL", "av", "hypercorn", "trio")
_NEEDS: Final = {"LocalService": _EXTRA, "serve": _EXTRA}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return obtainable(_NAMES, _NEEDS)
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from muybridge.local import service  # noqa: PLC0415  loaded on first use
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        raise ImportError(
            f'muybridge.local needs {error.name}: pip install "muybridge[local]"',
            name=error.name,
        ) from error
    return getattr(service, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *obtainable(_NAMES, _NEEDS)})
