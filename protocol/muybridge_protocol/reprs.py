"""The repr of the attrs classes that every program loads, written once.

attrs would generate and compile one for each of them, which takes 10 ms of every start.
"""

from __future__ import annotations

from typing import Any

import attrs


def repr_of_fields(self: Any) -> str:
    """Return the repr that attrs would generate for the class of *self*.

    A class that assigns it to `__repr__`, and each subclass made with `repr=False`, uses it.
    """
    kind: type[attrs.AttrsInstance] = self.__class__
    shown: list[str] = []
    for field in attrs.fields(kind):
        if field.repr:
            show = field.repr if callable(field.repr) else repr
            shown.append(f"{field.name}={show(getattr(self, field.name))}")
    return f"{kind.__name__}({', '.join(shown)})"
