"""Beside niquests, whose urllib3-future takes urllib3's name, a client says what is in the way."""

from __future__ import annotations

import pytest

import muybridge

from .conftest import KEY


def test_it_is_refused_by_name() -> None:
    """A client is refused when it is made, before anything is opened."""
    with pytest.raises(ImportError, match="urllib3-future, which niquests installs"):
        muybridge.Client(KEY, "http://127.0.0.1:1")


def test_another_transport_works() -> None:
    """A client with another transport does not need urllib3."""

    class Unused:
        def stream(self, *_: object, **__: object) -> None:
            raise AssertionError

        def close(self) -> None:
            pass

    muybridge.Client(KEY, "http://127.0.0.1:1", transport=Unused()).close()  # type: ignore[arg-type]  # never used
