"""Values of this package behave as attrs classes do."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from muybridge_protocol.errors import NotSent, Refused
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
