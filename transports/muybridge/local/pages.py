"""The pages that the local service has besides: its description, and a form to try it out.

They hold no secret and are served without a key. The form's page loads nothing but the
description; its policy tells the browser to see to that.
"""

from __future__ import annotations

import json
from pathlib import Path

from muybridge_protocol.emulator.replies import error_reply
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.openapi import openapi_document

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self'; media-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Pages:
    """What is served beside the service itself.

    Args:
        public_url: Where clients reach the service.
    """

    def __init__(self, public_url: str) -> None:
        document = openapi_document(base_url=public_url, text_base_url=public_url)
        form = Path(__file__).with_name("try_it_out.html").read_bytes()
        self._pages = {
            "/openapi.json": HttpResponse(
                200, (("Content-Type", "application/json"),), json.dumps(document).encode()
            ),
            "/docs": HttpResponse(
                200,
                (
                    ("Content-Type", "text/html; charset=utf-8"),
                    ("Content-Security-Policy", _POLICY),
                    ("Referrer-Policy", "no-referrer"),
                    ("X-Content-Type-Options", "nosniff"),
                ),
                form,
            ),
        }

    def answer(self, method: str, path: str) -> HttpResponse | None:
        """Return the reply to a request for a page, or None where *path* is none."""
        page = self._pages.get(path)
        if page is None or method == "GET":
            return page
        return error_reply(405, "method_not_allowed", "use GET", headers=(("Allow", "GET"),))
