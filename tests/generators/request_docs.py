"""The docstrings of request classes and of their fields say what the families' tables say.

`python -m tests.generators.request_docs` writes them into the source, where editors read them: a
class's docstring is shown with the class, a field's with the argument and the attribute. Python
adds the fields to the class's docstring when it loads the class. The docstrings of the fields of
tasks and results repeat what the class says about them. A test says where they differ.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muybridge_protocol import families
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.families.docstrings import EXTRA, RAISED, class_docstring, field_docstring

FOLDER = Path(families.__file__).parent
WIDTH = 100
RECORDS = FOLDER.parent / "records" / "tasks.py"
RECORD_CLASSES = ("Task", "Result")


def wrapped(text: str, indent: str) -> list[str]:
    """Return *text* in lines of the project's width."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def of_field(text: str) -> list[str]:
    """Return the docstring of a field with *text*, as it stands in the source."""
    if len(text) <= WIDTH - 10:
        return [f'    """{text}"""']
    first, _, rest = text.partition(". ")
    # The summary is a line of its own where it fits.
    summary = f'    """{first}.'
    if rest and len(summary) <= WIDTH:
        return [summary, "", *wrapped(rest, "    "), '    """']
    begun = wrapped(f'"""{text}', "    ")
    return [*begun, '    """']


def of_class(family: Family) -> list[str]:
    """Return the docstring of the request class of *family*, as it stands in the source."""
    first, *paragraphs = class_docstring(family)
    lines = [f'    """{first}']
    for paragraph in paragraphs:
        lines += ["", *wrapped(paragraph, "    ")]
    return [*lines, "", "    Raises:", f"        InvalidRequest: {RAISED}", '    """', ""]


def edits(tree: ast.Module, family: Family) -> Iterator[tuple[int, int, list[str]]]:
    """Yield which lines of a family's module are to be replaced, and by what."""
    (node,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == family.request.__name__
    )
    first = node.body[0]
    start = node.lineno
    end = first.end_lineno or 0 if _is_text(first) else start
    if _is_text(first):
        end += 1  # the empty line after it
    yield start, end, of_class(family)
    told = {field.name: field_docstring(family, field) for field in family.fields}
    yield from edits_of_fields(node, {**told, "extra": EXTRA})


def edits_of_fields(
    node: ast.ClassDef, told: Mapping[str, str]
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield which lines of a class are to be replaced by the docstrings of its fields."""
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            start = end = statement.end_lineno or 0
            if after is not None and _is_text(after):
                end = after.end_lineno or 0
            name = statement.target.id
            if name not in told:
                raise LookupError(f"the docstring of {node.name} says nothing about {name}")
            yield start, end, of_field(told[name])


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def replaced(source: str, edits: Iterable[tuple[int, int, list[str]]]) -> str:
    """Return *source* with lines replaced."""
    lines = source.splitlines()
    for start, end, text in reversed(list(edits)):
        lines[start:end] = text
    return "\n".join(lines) + "\n"


def written(family: Family, source: str) -> str:
    """Return *source*, the module of *family*, with the docstrings that its table makes."""
    return replaced(source, edits(ast.parse(source), family))


def arguments(node: ast.ClassDef) -> dict[str, str]:
    """Return what a class's docstring says about each of its arguments."""
    _, _, text = (ast.get_docstring(node) or "").partition("\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", text, re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in found}


def with_arguments(source: str) -> str:
    """Return *source* with what its record classes say about their arguments below each field."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    chosen = [node for node in classes if node.name in RECORD_CLASSES]
    return replaced(source, (e for node in chosen for e in edits_of_fields(node, arguments(node))))


def main() -> None:
    """Write the docstrings anew."""
    for name, family in FAMILIES.items():
        path = FOLDER / f"{name}.py"
        path.write_text(written(family, path.read_text("utf-8")), "utf-8")
    RECORDS.write_text(with_arguments(RECORDS.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
