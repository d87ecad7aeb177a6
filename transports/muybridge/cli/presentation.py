"""How a command presents what it returns, and where it saves results."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Presentation:
    """How a command presents what it returns, and where it saves results.

    Args:
        json: Whether to print one JSON document on stdout.
        verbose: Whether each request and response is logged on stderr.
        output: Where the result is to be saved, or None.
        sidecar: Whether a JSON file is written beside each result.
    """

    json: bool = False
    verbose: bool = False
    output: str | None = None
    sidecar: bool = False
