"""The Sphinx extension of these pages: it generates parts from tables and adapts docstrings.

`generated` fills the parts of pages that begin with a line `<!-- generated: NAME -->`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the hooks with Sphinx."""
    from docutils.nodes import abbreviation

    from muybridge_docs import docstrings, links
    from muybridge_docs.generated import fill

    def read(_: Sphinx, page: str, source: list[str]) -> None:
        source[0] = fill(source[0], page)

    def write_children(_translator: object, _node: Element) -> None:
        pass

    app.connect("source-read", read)
    # The Markdown pages would lack `*` and `/` of signatures, which their builder does not know.
    handlers = (write_children, write_children)
    app.add_node(abbreviation, override=True, **{"llms-markdown": handlers})
    app.connect("autodoc-process-docstring", docstrings.show_examples, priority=400)
    app.connect("autodoc-process-docstring", docstrings.end_sentences, priority=600)
    app.connect("autodoc-process-signature", docstrings.shorten_signature)
    app.connect("missing-reference", links.resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
