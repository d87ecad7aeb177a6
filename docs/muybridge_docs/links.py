"""Resolve the names in docstrings and annotations to links."""

from __future__ import annotations

import builtins
import sys
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from muybridge_docs.public_names import YOUNG, explained, is_ours

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


@cache
def _by_name() -> dict[str, str]:
    """Return the documented name of each public name.

    Values of young modules are known only within their module.
    """
    return {
        public.name: public.shown
        for module, all_of in explained().items()
        for public in all_of
        if public.is_callable or module not in YOUNG
    }


def _full_name(target: str) -> str | None:
    """Return the documented name of *target*: a public name, or a member of a class."""
    owner, _, name = target.rpartition(".")
    if name in _by_name():
        return _by_name()[name]
    shown = _by_name().get(owner)
    return None if shown is None else f"{shown}.{name}"


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """Return the link for *node* that Sphinx itself has not found.

    Annotations contain bare names, as in the source. A word in single backticks becomes a link if
    such a name exists, and plain code otherwise. Names of the standard library and of other
    libraries are not linked: that would mean downloading their indexes.
    """
    if node.get("refdomain") != "py":
        return None
    target: str = node["reftarget"]
    shown = _full_name(target)
    if shown is not None and shown != target:
        domain = env.get_domain("py")
        found: Any = domain.resolve_xref(
            env, node["refdoc"], app.builder, node["reftype"], shown, node, content
        )
        if found is not None:
            return found
    if node["reftype"] == "obj" or _is_literal(target) or _is_foreign(target):
        return content
    return None


def _is_literal(target: str) -> bool:
    """Whether *target* is a literal value in an annotation."""
    return target[:1] in ("'", '"') or target.isdigit()


def _is_foreign(target: str) -> bool:
    head, dot, _ = target.partition(".")
    if head in sys.stdlib_module_names or hasattr(builtins, head):
        return True
    return bool(dot) and not is_ours(head) and find_spec(head) is not None
