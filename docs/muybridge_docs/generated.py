"""The parts of pages that are generated from the library's tables, by name.

A part is between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. The pages in the repository
contain it as plain Markdown, for readers of a clone and of code hosts. When the pages are built,
diagrams, links and docstrings replace that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from muybridge_docs import (
    commands,
    comparison,
    delivery_tables,
    error_table,
    family_tables,
    local_tables,
    machines,
)
from muybridge_docs.public_names import MODULES, module_index, module_reference

GENERATED: Mapping[str, Callable[[], str]] = {
    "families": family_tables.families,
    "models": family_tables.models,
    "pacing": family_tables.pacing,
    "retention": family_tables.retention,
    "fields": family_tables.fields,
    "text models": family_tables.text_models,
    "local results": local_tables.results,
    "commands": commands.commands,
    "exit codes": commands.exit_codes,
    "delivery": delivery_tables.delivery,
    "errors": error_table.errors,
    "tries": delivery_tables.tries,
    "task states": machines.task_states,
    "create machine": machines.create_machine,
    "poll machine": machines.poll_machine,
    "comparison": comparison.comparison,
    **{f"module {name}": partial(module_reference, name) for name in MODULES},
}
"""The function that generates each part."""

PLAIN: Mapping[str, Callable[[], str]] = {
    **GENERATED,
    "task states": machines.task_table,
    "create machine": machines.create_table,
    "poll machine": machines.poll_table,
    **{f"module {name}": partial(module_index, name) for name in MODULES},
}
"""The function that writes each part as plain Markdown."""

_PART = re.compile(
    r"^<!-- generated: (?P<name>[^\n]+?) -->$(?:\n.*?^<!-- end of (?P=name) -->$)?",
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r"\{py:\w+\}`([^`<]+?)(?: <[^`]+>)?`")


def fill(text: str, page: str) -> str:
    """Return *text* with each part made for the built pages.

    Args:
        text: A page in Markdown.
        page: The name of the page, for the message.

    Raises:
        ValueError: A mark has an unknown name.
    """
    return _PART.sub(lambda part: _maker(GENERATED, part["name"], page)(), text)


def written(text: str, page: str) -> str:
    """Return *text* with each part as it stands in the repository; the arguments as for `fill`."""

    def made(part: re.Match[str]) -> str:
        name = part["name"]
        plain = _ROLE.sub(r"`\1`", _maker(PLAIN, name, page)())
        return f"<!-- generated: {name} -->\n\n{plain.strip()}\n\n<!-- end of {name} -->"

    return _PART.sub(made, text)


def names_in(text: str) -> list[str]:
    """Return the names of the parts that *text* includes."""
    return [part["name"] for part in _PART.finditer(text)]


def without_parts(text: str) -> str:
    """Return *text* without its generated parts."""
    return _PART.sub("", text)


def _maker(makers: Mapping[str, Callable[[], str]], name: str, page: str) -> Callable[[], str]:
    make = makers.get(name)
    if make is None:
        raise ValueError(f"{page}: nothing is generated under the name {name!r}")
    return make
