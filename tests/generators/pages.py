"""The generated parts of pages: `python -m tests.generators.pages` writes them as plain Markdown.

So the pages can be read in a clone. `tests/docs/test_generated.py` says where they differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    """Write every page that has generated parts."""
    sys.path.insert(0, str(DOCS))
    from muybridge_docs.generated import written

    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        made = written(text, path.stem)
        if made != text:
            path.write_text(made, encoding="utf-8")
            print(path)  # noqa: T201  what it has done


if __name__ == "__main__":
    main()
