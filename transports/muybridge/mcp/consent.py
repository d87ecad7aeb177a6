"""A person's consent to one request: asked for by the host, before anything is sent.

The question quotes what the request consumes. An answer covers that request and that quantity, and
counts once: the protocol's newer way lets a host repeat a call together with an old answer.

Hosts of protocol versions up to 2025-11-25 are asked while the call waits. If the call is cancelled
meanwhile, a late answer reaches nobody. Newer hosts get the question as the call's result, and
repeat the call with the answer and with the state that the SDK has sealed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any, Final

import attrs
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import is_version_at_least

from muybridge_protocol.errors import LocalError
from muybridge_protocol.records.json import JsonObject, read_object

Context = ServerRequestContext[Any, Any]

_ASKED_IN_RESULTS: Final = "2026-07-28"
"""The first version of the protocol in which a call's result is the question."""
_KEY: Final = "consent"
_FIELD: Final = "spend"
_FORM: Final = {
    "type": "object",
    "properties": {
        _FIELD: {
            "type": "boolean",
            "title": "Send it and pay for it",
            "description": "Nothing is sent unless you say yes.",
        }
    },
    "required": [_FIELD],
}


@attrs.frozen
class Call:
    """One call of a tool.

    Args:
        context: The SDK's context of the request.
        params: What the host sent.
    """

    context: Context
    params: CallToolRequestParams

    @property
    def can_ask(self) -> bool:
        """Whether the host says that it can ask a person."""
        capabilities = self.context.session.client_capabilities
        known = None if capabilities is None else capabilities.elicitation
        if known is None or (known.form is None and known.url is not None):
            return False
        return self.asks_in_results or self.context.session.can_send_request

    @property
    def asks_in_results(self) -> bool:
        """Whether the host gets questions as the results of calls."""
        return is_version_at_least(self.context.protocol_version, _ASKED_IN_RESULTS)

    async def progress(self, done: float, total: float, message: str) -> None:
        """Tell the host how far the call is, if it wants to know."""
        await self.context.session.report_progress(done, total, message)


class Consents:
    """Asks for consents, and keeps which answers have counted."""

    def __init__(self) -> None:
        self._counted: set[str] = set()

    async def ask(self, call: Call, question: str, subject: str) -> bool | InputRequiredResult:
        """Ask a person. Return whether they consent, or the question as the call's result.

        Args:
            call: The call, whose host can ask.
            question: What the person reads.
            subject: What the answer covers.

        Raises:
            LocalError: The host could not ask.
        """
        if call.asks_in_results:
            return self._ask_in_result(call, question, subject)
        try:
            answer = await call.context.session.elicit_form(
                question, dict(_FORM), related_request_id=call.context.request_id
            )
        except (MCPError, ValueError):  # an answer that is none is a ValueError
            raise LocalError(
                "Nothing was sent: the host could not ask the person whether to pay for it."
            ) from None
        return _is_yes(answer)

    def _ask_in_result(self, call: Call, question: str, subject: str) -> bool | InputRequiredResult:
        digest = hashlib.sha256(f"{subject}\n{question}".encode("utf-8", "replace")).hexdigest()
        answer = (call.params.input_responses or {}).get(_KEY)
        state = _read(call.params.request_state)
        mark = str(state.get("mark"))
        is_fresh = state.get("asked") == digest and mark not in self._counted
        if is_fresh and isinstance(answer, ElicitResult):
            self._counted.add(mark)
            return _is_yes(answer)
        form = ElicitRequestFormParams(message=question, requested_schema=dict(_FORM))
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=form)},
            request_state=json.dumps({"asked": digest, "mark": secrets.token_hex(16)}),
        )


def _is_yes(answer: ElicitResult) -> bool:
    return answer.action == "accept" and (answer.content or {}).get(_FIELD) is True


def _read(state: str | None) -> JsonObject:
    # The SDK has unsealed it, so this server has written it.
    return {} if state is None else read_object(state)
