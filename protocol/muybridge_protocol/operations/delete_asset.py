"""Deleting an asset permanently (spec, `DELETE {base_url}/vidsb/asset/{assetId}`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self, assert_never

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.delivery import DELETE, RETRIES, Verdict, backoff, refusal, retry_after
from muybridge_protocol.errors import (
    AssetDeleteFailed,
    AssetDeleteUnknown,
    NotSent,
    ProtocolViolation,
    ServiceError,
)
from muybridge_protocol.events import WillRetry
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations.operation import API_TIMEOUT, Operation, api_headers
from muybridge_protocol.records.json import InvalidJson, error_message, read_object, readable
from muybridge_protocol.service import Service, check_identifier

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

SUCCESS = "0"
"""The only `code` that means success. It is a string."""


@attrs.frozen(kw_only=True)
class DeleteAsset(Operation[None]):
    """Delete an asset.

    Args:
        asset_id: The asset's id.
        tries: Attempts that have failed.
        uncertain: Whether an earlier attempt may have deleted it.
    """

    asset_id: str
    tries: int = 0
    uncertain: bool = False

    @classmethod
    def start(
        cls,
        asset_id: str,
        service: Service,
        *,
        now: float,
        seed: int,
        timeout: float = API_TIMEOUT,
    ) -> Self:
        """Return the operation in its initial state.

        Args:
            asset_id: The asset's id, with or without `asset://`.
            service: Where the service is.
            now: Seconds on the driver's clock.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Timeout of one exchange, in seconds.

        Raises:
            LocalError: It is not a valid id.
        """
        check_type("asset_id", asset_id, str, "a string, such as 'asset-1' or 'asset://asset-1'")
        bare = asset_id.removeprefix("asset://")
        check_identifier(bare, "asset id")
        return cls(service=service, seed=seed, timeout=timeout, due=now, asset_id=bare)

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "delete"

    def _receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a whole response."""
        match verdict := DELETE.judge_status(response.status):
            case Verdict.ANSWER:
                return self._read(response)
            case Verdict.REFUSED | Verdict.MISSING if self.uncertain:
                text = error_message(response.body)
                return self._settle(self._likely(f"status {response.status}", text))
            case Verdict.REFUSED | Verdict.MISSING:
                return self._settle(refusal(response))
            case Verdict.VIOLATION:
                reason = f"a redirect (status {response.status})"
                return self._settle(ProtocolViolation(reason=reason, status=response.status))
            case Verdict.THROTTLED:
                return self._retry(f"status {response.status}", now, refusal(response), response)
            case Verdict.RETRY:
                # After an unlisted status, the asset may or may not be deleted.
                return attrs.evolve(self, uncertain=True)._retry(
                    f"status {response.status}", now, None, response
                )
            case _:
                assert_never(verdict)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange."""
        unsent = NotSent(failure=failure, attempts=self.tries + 1)
        if DELETE.judge_failure(failure) is Verdict.NOT_SENT:
            unknown = AssetDeleteUnknown(asset_id=self.asset_id, reason=str(failure))
            return self._settle(unknown if self.uncertain else unsent)
        if failure.sent:
            return attrs.evolve(self, uncertain=True)._retry(str(failure), now, None)
        return self._retry(str(failure), now, unsent)

    def _request(self) -> HttpRequest:
        return HttpRequest(
            method="DELETE",
            url=self.service.asset_url(self.asset_id),
            headers=api_headers(None),
            authorized=True,
        )

    def _read(self, response: HttpResponse) -> Self:
        try:
            record = read_object(response.body)
            code, message = record["code"], record.get("msg")
        except (InvalidJson, KeyError) as error:
            why = "the response has no code" if isinstance(error, KeyError) else str(error)
            return self._settle(AssetDeleteUnknown(asset_id=self.asset_id, reason=why))
        if code == SUCCESS:
            return self._settle(None)
        shown = readable(code if isinstance(code, str) else f"{json.dumps(code)}, no string", 80)
        msg = readable(message) if isinstance(message, str) else ""
        if self.uncertain:
            return self._settle(self._likely(f"code {shown}", msg))
        return self._settle(AssetDeleteFailed(asset_id=self.asset_id, code=shown, msg=msg))

    def _likely(self, code: str, message: str) -> AssetDeleteUnknown:
        """Return the error of a refusal after an attempt that may have deleted the asset."""
        detail = f": {message}" if message else ""
        reason = f"the response to an earlier attempt was lost, and the last one was {code}{detail}"
        return AssetDeleteUnknown(asset_id=self.asset_id, reason=reason, likely=True)

    def _retry(
        self,
        reason: str,
        now: float,
        last: ServiceError | None,
        response: HttpResponse | None = None,
    ) -> Self:
        """Retry, or end as *last*, or as unknown if an earlier attempt may have succeeded."""
        tries = self.tries + 1
        if tries >= RETRIES:
            if last is None or self.uncertain:
                last = AssetDeleteUnknown(asset_id=self.asset_id, reason=reason)
            return self._settle(last)
        pause = retry_after(response) if response is not None else None
        delay = backoff(self.seed, tries) if pause is None else min(pause, self.timeout)
        event = WillRetry("delete", reason, delay, tries)
        return attrs.evolve(self, tries=tries, due=now + delay, events=(event,))
