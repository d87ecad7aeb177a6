"""The Sphinx extension of these pages: it generates parts from tables and adapts docstrings.

`generated` fills the parts of pages that begin with a line `<!-- generated: NAME -->`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the hooks with Sphinx."""
    from muybridge_docs import docstrings, links
    from muybridge_docs.generated import fill

    def read(_: Sphinx, page: str, source: list[str]) -> None:
        source[0] = fill(source[0], page)

    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", docstrings.show_examples, priority=400)
    app.connect("autodoc-process-docstring", docstrings.end_sentences, priority=600)
    app.connect("autodoc-process-signature", docstrings.shorten_signature)
    app.connect("missing-reference", links.resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
