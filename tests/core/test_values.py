"""Values of this package behave as attrs classes do."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from muybridge_protocol.errors import NotSent, RateLimited, Refused
from muybridge_protocol.http import HttpRequest, Phase, Reason, TransportFailure
from muybridge_protocol.operations import Call, Create, DeleteAsset, Download, Operation, Poll
from muybridge_protocol.operations.download import Part
from muybridge_protocol.operations.text import OpenStream, TextCall


@pytest.mark.parametrize(
    "kind", [Operation, Call, Create, DeleteAsset, Download, OpenStream, Part, Poll, TextCall]
)
def test_what_changes_is_plain(kind: type) -> None:
    """Nothing is converted or worked out where an operation changes, and only its start checks."""
    checks = vars(Operation)["__attrs_post_init__"]  # the clock, the timeout and the seed
    assert getattr(kind, "__attrs_post_init__", checks) is checks
    assert "__dict__" not in dir(kind)
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
    """An error shows what it carries, but for the bodies of responses, and equals itself alone."""
    failure = TransportFailure(phase=Phase.SEND, sent=True, reason=Reason.RESET)
    error = NotSent(failure=failure, attempts=2)
    assert repr(error) == f"NotSent(task=None, failure={failure!r}, attempts=2)"
    assert error != NotSent(failure=failure, attempts=2)
    assert error.args == (None, failure, 2)
    refused = Refused(status=400, body=b"x")
    assert repr(refused) == "Refused(task=None, status=400, message='')"
    assert refused.args == (None, 400, "")
    assert copy.copy(refused).body == b"x"


def test_copies_of_errors() -> None:
    """A copy of an error, pickled or not, holds all that it carries, and its notes."""
    error = RateLimited(status=429, body=b"x", retry_after=200.0)
    error.add_note("in item 3")
    for made in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301  our own
        assert (repr(made), made.args, made.body) == (repr(error), error.args, b"x")
        assert made.__notes__ == ["in item 3"]
        assert str(made) == str(error)
