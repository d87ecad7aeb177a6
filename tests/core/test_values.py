"""Values of this package behave as attrs classes do."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import NotSent, Refused
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Call, Create, DeleteAsset, Download, Operation, Poll
from muybridge_protocol.operations.download import Part
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.values import evolve, frozen


def _shouted(text: str) -> str:
    return text.upper()


@frozen
class Ours:
    text: str = attrs.field(repr=_shouted)
    number: int = 1
    hidden: str = attrs.field(default="h", repr=False)
    ignored: list[int] = attrs.field(factory=list[int], eq=False)
    unhashed: tuple[object, ...] = attrs.field(default=(), hash=False)


@attrs.frozen
class Theirs:
    text: str = attrs.field(repr=_shouted)
    number: int = 1
    hidden: str = attrs.field(default="h", repr=False)
    ignored: list[int] = attrs.field(factory=list[int], eq=False)
    unhashed: tuple[object, ...] = attrs.field(default=(), hash=False)


class Below(Ours):
    """Not an attrs class of its own."""


ARGUMENTS: list[dict[str, Any]] = [
    {"text": "a"},
    {"text": "b"},
    {"text": "a", "number": 2},
    {"text": "a", "number": 1.0},
    {"text": "a", "hidden": "other"},
    {"text": "a", "ignored": [1]},
    {"text": "a", "unhashed": (1,)},
    {"text": "a", "number": float("nan")},
]


@pytest.mark.parametrize("one", ARGUMENTS, ids=str)
@pytest.mark.parametrize("other", ARGUMENTS, ids=str)
def test_equality(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two values are equal, and hash alike, exactly where those that attrs makes do."""
    ours, theirs = (Ours(**one), Ours(**other)), (Theirs(**one), Theirs(**other))
    assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])
    assert (ours[0] != ours[1]) is (theirs[0] != theirs[1])
    assert (hash(ours[0]) == hash(ours[1])) is (hash(theirs[0]) == hash(theirs[1]))


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_repr(arguments: dict[str, Any]) -> None:
    """A value is shown as attrs shows it: without hidden fields, and with a field's own repr."""
    assert repr(Ours(**arguments)) == repr(Theirs(**arguments)).replace("Theirs", "Ours", 1)


def test_values_of_other_classes() -> None:
    """A value equals nothing of another class, be it of a subclass."""
    assert Ours("a") != Theirs("a")
    assert Ours("a") != Below("a")
    assert Ours("a") != "a"
    assert Below("a") == Below("a")
    assert repr(Below("a")).startswith("Below(text=A, ")
    assert hash(Ours("a")) != hash(Below("a"))


def test_own_methods() -> None:
    """What a class says of itself counts, and what attrs offers besides is there."""

    @frozen(kw_only=True)
    class Odd:
        number: int

        def __repr__(self) -> str:
            return "odd"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd)

        def __hash__(self) -> int:
            return 7

    assert (repr(Odd(number=1)), hash(Odd(number=1))) == ("odd", 7)
    assert Odd(number=1) == Odd(number=2)
    assert attrs.asdict(attrs.evolve(Odd(number=1), number=3)) == {"number": 3}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Odd(number=1).number = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  that is it
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Odd(number=1).other = 2  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  that is it


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_changes(arguments: dict[str, Any]) -> None:
    """A changed value is what attrs makes of it, and leaves the one that it comes from alone."""
    ours = Ours(**arguments)
    before = repr(ours)
    changed = evolve(ours, number=7, hidden="new")
    assert changed == attrs.evolve(ours, number=7, hidden="new")
    assert type(changed) is Ours
    assert (changed.number, changed.hidden, changed.text) == (7, "new", ours.text)
    assert repr(ours) == before
    assert evolve(ours) is not ours
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        changed.number = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  that is it


@attrs.frozen(kw_only=True)
class Slotted(Ours):
    """A subclass of somebody who knows of no other classes than those of attrs."""

    more: str = "more"


class Under(Slotted):
    """A subclass that has nothing more."""


@frozen(kw_only=True)
class Mended(Slotted):
    other: str = "other"


@frozen(kw_only=True)
class Further(Ours):
    more: str = "more"


@pytest.mark.parametrize("kind", [Slotted, Under, Mended, Further])
def test_changes_of_a_subclass(kind: type[Slotted]) -> None:
    """A changed value of a subclass, with slots or without, has lost nothing."""
    value = kind(number=1, text="a", more="b")
    changed = evolve(value, number=2)
    assert type(changed) is kind
    assert changed == attrs.evolve(value, number=2)
    assert (value.number, changed.number, changed.text, changed.more) == (1, 2, "a", "b")


@pytest.mark.parametrize(
    "kind", [Operation, Call, Create, DeleteAsset, Download, OpenStream, Part, Poll, TextCall]
)
def test_what_changes_is_plain(kind: type) -> None:
    """Nothing is converted or worked out where an operation changes, and only its start checks."""
    checks = vars(Operation)["__attrs_post_init__"]  # the clock, the timeout and the seed
    assert getattr(kind, "__attrs_post_init__", checks) is checks
    assert not any("__slots__" in vars(base) for base in kind.__mro__ if attrs.has(base))
    for field in attrs.fields(kind):
        assert (field.validator, field.converter, field.init) == (None, None, True)


def test_copies() -> None:
    """A copy of a value, pickled or not, equals it."""
    request = HttpRequest(method="GET", url="https://a.test/x?secret")
    for made in (copy.copy(request), copy.deepcopy(request), pickle.loads(pickle.dumps(request))):  # noqa: S301  our own
        assert made == request
        assert made is not request
    assert "secret" not in repr(request)


def test_errors_show_their_fields() -> None:
    """An error shows what it carries, but for the bodies of replies, and equals itself alone."""
    failure = TransportFailure(phase=Phase.SEND, sent=True, reason=Reason.RESET)
    error = NotSent(failure=failure, attempts=2)
    assert repr(error) == f"NotSent(task=None, failure={failure!r}, attempts=2)"
    assert error != NotSent(failure=failure, attempts=2)
    assert error.args == (None, failure, 2)
    refused = Refused(status=400, body=b"x")
    assert repr(refused) == "Refused(task=None, status=400, message='')"
    assert refused.args == (None, 400, "")
    assert copy.copy(refused).body == b"x"
