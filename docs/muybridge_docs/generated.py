"""The parts of pages that are generated from the library's tables, by name."""

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
from muybridge_docs.public_names import MODULES, module_reference

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

_MARK = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def fill(text: str, page: str) -> str:
    """Return *text* with each mark replaced by its generated part.

    Args:
        text: A page in Markdown.
        page: The name of the page, for the message.

    Raises:
        ValueError: A mark has an unknown name.
    """

    def made(mark: re.Match[str]) -> str:
        make = GENERATED.get(mark[1])
        if make is None:
            raise ValueError(f"{page}: nothing is generated under the name {mark[1]!r}")
        return make()

    return _MARK.sub(made, text)


def names_in(text: str) -> list[str]:
    """Return the names of the parts that *text* includes."""
    return _MARK.findall(text)
