"""The blocking face has the signatures, docstrings and arguments of the asynchronous one.

`python -m tests.generators.faces` copies them, method by method; bodies stay as they are. A test
says where they differ.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TRANSPORTS = Path(__file__).parents[2] / "transports" / "muybridge"
FACES = {
    ("base_client.py", "BaseClient"): ("client.py", "Client"),
    ("drivers/text_calls.py", "AsyncContentStream"): ("client.py", "ContentStream"),
}
WORDS = {
    "async def ": "def ",
    "async with ": "with ",
    "async for ": "for ",
    "AsyncOutcomes": "Outcomes",
    "AsyncContentStream": "ContentStream",
    "AsyncTextStream": "TextStream",
}
CONSTRUCTORS = (("async_client.py", "AsyncClient"), ("client.py", "Client"))
"""Whose arguments are the same, but for the clock and the transport."""
ARGUMENTS = {
    "AsyncTransport ": "Transport ",
    "wall: Callable[[], float] = time.time": "clock: Clock | None = None",
    "wall: Returns Unix seconds. The other clock is the event loop's own.": (
        "clock: Tells the time, or None for this machine's."
    ),
    "`AsyncioTransport` or `TrioTransport`.": "`RequestsTransport`.",
}
OWN = {"watch"}
"""What the blocking face does in its own way: there it is an iterator and no context."""


def methods(source: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Yield each public method of a class, with the lines of its signature and docstring.

    Overloads have the method's name with a number.
    """
    seen: Counter[str] = Counter()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name[0] != "_":
                    seen[part.name] += 1
                    name_of_one = (
                        part.name if seen[part.name] == 1 else f"{part.name} {seen[part.name]}"
                    )
                    yield name_of_one, part.lineno - 1, part.body[0].end_lineno or 0


def copied(source: str, source_name: str, target: str, target_name: str) -> str:
    """Return *target* with the signatures and docstrings that the class in *source* has."""
    lines, found = source.splitlines(), target.splitlines()
    heads = {name: lines[begin:end] for name, begin, end in methods(source, source_name)}
    for name, begin, end in reversed(list(methods(target, target_name))):
        if name not in OWN:
            head = "\n".join(heads[name])
            for word, other in WORDS.items():
                head = head.replace(word, other)
            found[begin:end] = head.splitlines()
    return "\n".join(found) + "\n"


def constructor(source: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of the signature and docstring of a class's constructor."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                    yield part.lineno - 1, part.body[0].end_lineno or 0


def with_constructor(source: str, source_name: str, target: str, target_name: str) -> str:
    """Return *target* with the arguments that the class in *source* has."""
    lines, found = source.splitlines(), target.splitlines()
    heads = [lines[begin:end] for begin, end in constructor(source, source_name)]
    places = list(constructor(target, target_name))
    for head, (begin, end) in reversed(list(zip(heads, places, strict=True))):
        text = "\n".join(head)
        for word, other in ARGUMENTS.items():
            text = text.replace(word, other)
        found[begin:end] = text.splitlines()
    return "\n".join(found) + "\n"


def main() -> None:
    """Write the faces anew."""
    for (source, source_name), (target, target_name) in FACES.items():
        path = TRANSPORTS / target
        text = copied(
            (TRANSPORTS / source).read_text("utf-8"),
            source_name,
            path.read_text("utf-8"),
            target_name,
        )
        path.write_text(text, "utf-8")
    (source, source_name), (target, target_name) = CONSTRUCTORS
    path = TRANSPORTS / target
    original = (TRANSPORTS / source).read_text("utf-8")
    text = with_constructor(original, source_name, path.read_text("utf-8"), target_name)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
