"""A validator of JSON values against the document's schemas, as the standard has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from muybridge_protocol.openapi import openapi_document

DOCUMENT = openapi_document()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def _pattern(_: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001  as jsonschema calls it
    # The standard's `$` is the end of the text; Python's stands before a last line end, too.
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_Validator: Any = cast("Any", validators).extend(Draft202012Validator, {"pattern": _pattern})


@cache
def _validator(name: str) -> Any:
    return _Validator(SCHEMAS[name])


def accepts(name: str, value: object) -> bool:
    """Whether *value* satisfies the document's schema *name*."""
    return bool(_validator(name).is_valid(value))


def matches(schema: dict[str, Any], value: object) -> bool:
    """Whether *value* satisfies *schema*."""
    return bool(_Validator(schema).is_valid(value))
