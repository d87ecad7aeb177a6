"""The local service's own pages: its API description, and a form to try it out.

They hold no secret and are served without a key. The form's page loads nothing but the
description. Its Content-Security-Policy enforces that, and allows no script but the page's own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from muybridge_protocol.emulator.refused import wrong_method
from muybridge_protocol.emulator.responses import error_response, json_response
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.openapi import openapi_document

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; "
    "connect-src 'self'; img-src 'self' data:; media-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def html_page(name: str) -> HttpResponse:
    """Return the page in file *name*, which has one style and one script, as a response.

    Its own style follows the one that all pages share.
    """
    shared = Path(__file__).with_name("style.css").read_text("utf-8")
    text = Path(__file__).with_name(name).read_text("utf-8")
    text = text.replace("<style>", f"<style>\n{shared}", 1)
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


def service_pages(public_url: str) -> Mapping[str, HttpResponse]:
    """Return the pages that are served in addition to the service itself, by path.

    Args:
        public_url: Where clients reach the service.
    """
    document = openapi_document(base_url=public_url, text_base_url=public_url)
    return {
        "/openapi.json": json_response(document),
        "/docs": html_page("try_it_out.html"),
    }


def only_read(method: str, page: HttpResponse) -> HttpResponse:
    """Return *page* if *method* is GET, and an error otherwise."""
    return page if method == "GET" else error_response(wrong_method("GET"))
