"""The whole service on this machine: the emulator over HTTP, with real images and videos.

    with LocalService(speed=20) as service:
        client = Client(service.api_key, service.base_url)

It needs the extra `local`, and loads what that installs only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muybridge.local.service import LocalService, serve

__all__ = ["LocalService", "serve"]

_EXTRA = frozenset({"PIL", "av", "hypercorn", "trio"})


def __getattr__(name: str) -> object:
    if name not in __all__:
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
