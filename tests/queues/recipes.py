"""The programs on the page about job queues."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "job-queues.md"


def save_recipe(section: str, path: Path) -> None:
    """Save the Python of a section of the page as *path*."""
    text = PAGE.read_text("utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks, section
    path.write_text("\n\n".join(blocks), encoding="utf-8")
