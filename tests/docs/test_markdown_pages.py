"""The pages as Markdown, which programs read in place of the HTML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
CONF = """
import sys
sys.path.insert(0, {docs!r})
extensions = ["sphinx.ext.autodoc", "myst_parser", "sphinx_llm.txt", "muybridge_docs"]
html_theme = "basic"
"""
PAGE = """
Index
=====

.. py:function:: wait(task, /, *, timeout=3600.0)

   Wait.
"""


def test_signatures_are_whole(tmp_path: Path) -> None:
    """The separators of positional and keyword arguments stand in a signature, as in the HTML."""
    (tmp_path / "conf.py").write_text(CONF.format(docs=str(DOCS)), "utf-8")
    (tmp_path / "index.rst").write_text(PAGE, "utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", ".", "out"]
    done = subprocess.run(  # noqa: S603  our own command
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "index.md").read_text("utf-8").replace("\\", "")
    assert "wait(task, /, *, timeout=3600.0)" in text
