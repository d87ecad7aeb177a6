"""The local service's own pages: its API description, and a form to try it out.

They hold no secret and are served without a key. The form's page loads nothing but the
description. Its Content-Security-Policy enforces that, and allows no script but the page's own.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from muybridge_protocol.emulator.responses import error_reply
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.openapi import openapi_document

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; "
    "connect-src 'self'; img-src 'self' data:; media-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def html_page(name: str) -> HttpResponse:
    """Return the page in file *name*, which has one style and one script, as a response."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    policy = _POLICY.format(script=_hash_of("script", text), style=_hash_of("style", text))
    return HttpResponse(
        200,
        (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Security-Policy", policy),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ),
        text.encode(),
    )


def _hash_of(element: str, text: str) -> str:
    inner = text.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
    return f"sha256-{b64encode(sha256(inner.encode()).digest()).decode()}"


class Pages:
    """The pages that are served in addition to the service itself.

    Args:
        public_url: Where clients reach the service.
    """

    def __init__(self, public_url: str) -> None:
        document = openapi_document(base_url=public_url, text_base_url=public_url)
        self._pages = {
            "/openapi.json": HttpResponse(
                200, (("Content-Type", "application/json"),), json.dumps(document).encode()
            ),
            "/docs": html_page("try_it_out.html"),
        }

    def answer(self, method: str, path: str) -> HttpResponse | None:
        """Return the response to a request for a page, or None if there is no page at *path*."""
        page = self._pages.get(path)
        return None if page is None else only_read(method, page)


def only_read(method: str, page: HttpResponse) -> HttpResponse:
    """Return *page* if *method* is GET, and an error otherwise."""
    if method == "GET":
        return page
    return error_reply(405, "method_not_allowed", "use GET", headers=(("Allow", "GET"),))
