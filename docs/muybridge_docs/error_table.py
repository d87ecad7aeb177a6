"""What each error says about money and what it carries, from the classes themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import attrs

from muybridge_docs.markdown import code, table
from muybridge_docs.public_names import public_names
from muybridge_protocol.errors import MuybridgeError, ServiceError
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Task
from muybridge_protocol.remedies import Remedy, in_python

_MODULES: Final = ("muybridge", "muybridge.purchases", "muybridge.batch")
_TASK: Final = Task(id="ID")
_FAILURE: Final = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
_VALUES: Final = {
    "failure": _FAILURE,
    "result": Result(id="ID", status="failed"),
    "status": 400,
    "candidate_id": None,
}
"""Values of fields that decide what an error says; all others are texts."""
_COMMON: Final = ("task", "advice", "raw", "body")
"""Fields that every error has, or that hold responses."""


def errors() -> str:
    """Return the table of all public errors."""
    rows = map(_row, sorted(_kinds(), key=lambda kind: kind.__name__))
    return table(("Error", "Charged", "On it", "Remedies"), rows)


def _kinds() -> Iterator[type[MuybridgeError]]:
    """Yield each public error that is raised."""
    met: set[object] = set()
    for name in _MODULES:
        module = import_module(name)
        for public in public_names(module):
            kind = getattr(module, public)
            if not inspect.isclass(kind) or not issubclass(kind, MuybridgeError) or kind in met:
                continue
            met.add(kind)
            if _is_raised(kind):
                yield kind


def _is_raised(kind: type[MuybridgeError]) -> bool:
    """Whether *kind* itself is raised, and not only classes that derive from it."""
    return kind.__name__ not in ("MuybridgeError", "ServiceError")


def _row(kind: type[MuybridgeError]) -> tuple[str, ...]:
    if not issubclass(kind, ServiceError):
        # Such errors are made of their message; only the class says what was charged.
        return code(kind.__name__), str(kind._charged), _own(kind), "in the message"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  of the class
    alone, known = _made(kind, None), _made(kind, _TASK)
    charged = _either(alone.charged, known.charged)
    fields = [field.name for field in attrs.fields(kind) if field.name not in _COMMON]
    carried = ", ".join(code(name) for name in ("task", *fields))
    return code(kind.__name__), charged, carried, _either(_words(alone), _words(known))


def _own(kind: type[MuybridgeError]) -> str:
    """Return what an error of *kind* is made of beside its message."""
    if "__init__" not in vars(kind):
        return ""
    names = inspect.signature(kind).parameters.keys() - {"parts", "accepted", "what", "undone"}
    return ", ".join(map(code, sorted(names)))


def _made(kind: type[ServiceError], task: Task | None) -> ServiceError:
    """Return an error of *kind* with the least that it needs."""
    needed: dict[str, Any] = {
        field.name: _VALUES.get(field.name, "1") if field.name != "waited" else 1.0
        for field in attrs.fields(kind)
        if field.default is attrs.NOTHING
    }
    if "silent" in needed:
        needed["silent"] = 1.0
    return kind(task=task, **needed)


def _either(alone: str, known: str) -> str:
    return alone if alone == known else f"{alone}; with a task: {known}"


def _words(error: ServiceError) -> str:
    return ", ".join(_named(remedy) for remedy in error.remedies) or "in the message"


def _named(remedy: Remedy) -> str:
    said = in_python(remedy).removesuffix(".")
    return f"{code(remedy.kind.value)} ({said})"
