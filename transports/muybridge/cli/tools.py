"""`--schema` and `--tool` of `text`: JSON from a file or from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from muybridge_protocol.records.json import InvalidJson, JsonObject, as_object, read_json

_DECLARATIONS = "functionDeclarations"
_OF_A_FUNCTION = frozenset({"name", "description", "parameters", "type", "properties"})
"""Fields of a function's declaration, or of the schema of its parameters."""


def read_schema(given: str | None) -> dict[str, Any]:
    """Return the settings that ask for JSON by the schema in *given*, a file or the JSON itself.

    Raises:
        click.UsageError: It cannot be read, or is not an object.
    """
    if given is None:
        return {}
    schema = as_object(_read("--schema", given))
    if schema is None:
        raise _wrong("--schema", given, "it is not a JSON object")
    return {"responseMimeType": "application/json", "responseSchema": schema}


def read_tools(given: Iterable[str]) -> list[JsonObject]:
    """Return the tools in *given*: files, or the JSON itself.

    Each is the declaration of a function, several of them in an array, or a tool as it is sent.

    Raises:
        click.UsageError: One cannot be read, or is none of these.
    """
    functions: list[JsonObject] = []
    others: list[JsonObject] = []
    for one in given:
        value = _read("--tool", one)
        for item in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]  of anything
            tool = as_object(item)
            if not tool:
                raise _wrong("--tool", one, "it is not a JSON object, or an array of them")
            if tool.get("type") == "function":  # as other protocols wrap a declaration
                tool = as_object(tool.get("function")) or tool
            if isinstance(tool.get("name"), str):
                functions.append(tool)
            elif not _OF_A_FUNCTION.isdisjoint(tool):
                raise _wrong("--tool", one, "a function has no name")
            else:
                others.append(tool)
    return [*([{_DECLARATIONS: functions}] if functions else []), *others]


def _read(option: str, given: str) -> Any:
    try:
        inline = given.lstrip().startswith(("{", "["))
        return read_json(given if inline else Path(given).read_bytes())
    except OSError as error:
        raise _wrong(option, given, error.strerror or str(error)) from None
    except ValueError as error:
        reason = error if isinstance(error, InvalidJson) else f"it is not JSON: {error}"
        raise _wrong(option, given, str(reason)) from None


def _wrong(option: str, given: str, reason: str) -> click.UsageError:
    shown = given if len(given) <= 80 else f"{given[:77]}..."  # noqa: PLR2004  a line of a terminal
    return click.UsageError(f"{option} {shown}: {reason}. Nothing was sent.")
