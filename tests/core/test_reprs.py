"""A repr that is written once for many attrs classes."""

from __future__ import annotations

import attrs

from muybridge_protocol.events import WillRetry
from muybridge_protocol.reprs import repr_of_fields
from muybridge_protocol.rules.values import Between, ModelName


def test_it_is_that_of_attrs() -> None:
    """It equals the repr that attrs generates, with hidden fields and with reprs of fields."""

    class Base:
        shown: object = ("a", 1)
        hidden: str = attrs.field(default="b", repr=False)
        sized: bytes = attrs.field(default=b"c", repr=lambda body: f"<{len(body)} bytes>")
        _private: float = 0.5

    generated = attrs.frozen(type("Value", (), {**vars(Base)}))
    written = attrs.frozen(type("Value", (), {**vars(Base), "__repr__": repr_of_fields}))
    assert repr(written()) == repr(generated())
    assert repr(written()) == "Value(shown=('a', 1), sized=<1 bytes>, _private=0.5)"


def test_who_uses_it() -> None:
    """Rules and events show their fields, but not the call that an event belongs to."""
    assert repr(Between(2, 6)) == "Between(low=2, high=6, also=(), unit='s')"
    assert repr(ModelName()) == "ModelName()"
    event = WillRetry("poll", "reset", 1.5, 1, cause="x")
    assert repr(event) == "WillRetry(what='poll', reason='reset', delay=1.5, attempt=1)"
