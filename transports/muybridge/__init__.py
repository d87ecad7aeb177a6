"""Muybridge: a client for asynchronous image and video generation.

It never resends a request that may have been accepted, and never loses the id of a task that it has
received. Use `Client` in ordinary code and `AsyncClient` in programs that run under asyncio or
trio. To write a client of your own, use `muybridge_protocol`, which does no I/O.
"""

# Importing a name as itself makes it public to type checkers.
# ruff: noqa: I001
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from muybridge.lazy_names import Home, LazyNames

if TYPE_CHECKING:
    from muybridge.async_client import AsyncClient as AsyncClient
    from muybridge.client import (
        Client as Client,
        ContentStream as ContentStream,
        Outcomes as Outcomes,
        TextStream as TextStream,
    )
    from muybridge.drivers.outcomes import AsyncOutcomes as AsyncOutcomes
    from muybridge.drivers.text_calls import (
        AsyncContentStream as AsyncContentStream,
        AsyncTextStream as AsyncTextStream,
    )
    from muybridge.drivers.trio_outcomes import TrioOutcomes as TrioOutcomes
    from muybridge.files.inline_media import load_media as load_media
    from muybridge.files.prices import load_prices as load_prices
    from muybridge.files.sidecar import Sidecar as Sidecar, SidecarFailed as SidecarFailed
    from muybridge.purchases.errors import (
        OnceTaken as OnceTaken,
        OnceUnderWay as OnceUnderWay,
        StoreUnusable as StoreUnusable,
    )
    from muybridge.trio_client import TrioClient as TrioClient
    from muybridge.version import __version__ as __version__
    from muybridge.wire.asyncio_transport import AsyncioTransport as AsyncioTransport
    from muybridge.wire.httpx2_transport import Httpx2Transport as Httpx2Transport
    from muybridge.wire.requests_transport import RequestsTransport as RequestsTransport
    from muybridge.wire.trio_transport import TrioTransport as TrioTransport
    from muybridge_protocol.errors import (
        AssetDeleteFailed as AssetDeleteFailed,
        AssetDeleteUnknown as AssetDeleteUnknown,
        CreateAmbiguous as CreateAmbiguous,
        DownloadFailed as DownloadFailed,
        Forbidden as Forbidden,
        IgnoredSetting as IgnoredSetting,
        InvalidAddress as InvalidAddress,
        InvalidInput as InvalidInput,
        InvalidRequest as InvalidRequest,
        LinkExpired as LinkExpired,
        LocalError as LocalError,
        MuybridgeError as MuybridgeError,
        MuybridgeWarning as MuybridgeWarning,
        NotCompleted as NotCompleted,
        NotSent as NotSent,
        OverBudget as OverBudget,
        PlainHttpWarning as PlainHttpWarning,
        ProtocolViolation as ProtocolViolation,
        RateLimited as RateLimited,
        Refused as Refused,
        ResultExpired as ResultExpired,
        ResultIncomplete as ResultIncomplete,
        ServiceError as ServiceError,
        ServiceUnreachable as ServiceUnreachable,
        TaskFailed as TaskFailed,
        TaskNotFound as TaskNotFound,
        TextAmbiguous as TextAmbiguous,
        Unauthorized as Unauthorized,
        WaitTimeout as WaitTimeout,
    )
    from muybridge_protocol.estimates import (
        Estimate as Estimate,
        PriceList as PriceList,
        Quantities as Quantities,
        Totals as Totals,
        parse_prices as parse_prices,
    )
    from muybridge_protocol.families import (
        FAMILIES as FAMILIES,
        ImgaRequest as ImgaRequest,
        ImgbRequest as ImgbRequest,
        MediaRequest as MediaRequest,
        Unlisted as Unlisted,
        VidcRequest as VidcRequest,
        ViddRequest as ViddRequest,
        VideosRequest as VideosRequest,
        VidgRequest as VidgRequest,
        VidmRequest as VidmRequest,
        VidrRequest as VidrRequest,
        VidsaRequest as VidsaRequest,
        VidsbRequest as VidsbRequest,
        VidvRequest as VidvRequest,
    )
    from muybridge_protocol.fleet import FleetOutcome as FleetOutcome
    from muybridge_protocol.http import HttpRequest as HttpRequest, HttpResponse as HttpResponse
    from muybridge_protocol.media.inline import InlineMedia as InlineMedia
    from muybridge_protocol.purchases import Budget as Budget
    from muybridge_protocol.records.tasks import Result as Result, Status as Status, Task as Task
    from muybridge_protocol.rules.media import MediaReport as MediaReport
    from muybridge_protocol.text.content import (
        Content as Content,
        Conversation as Conversation,
        GenerationConfig as GenerationConfig,
        Part as Part,
    )
    from muybridge_protocol.text.functions import (
        FunctionCall as FunctionCall,
        FunctionResult as FunctionResult,
        function_calls as function_calls,
        next_messages as next_messages,
    )
    from muybridge_protocol.text.models import TEXT_MODELS as TEXT_MODELS
    from muybridge_protocol.text.responses import (
        Candidate as Candidate,
        FinishReason as FinishReason,
        GenerateContentChunk as GenerateContentChunk,
        GenerateContentResponse as GenerateContentResponse,
        NoText as NoText,
        UsageMetadata as UsageMetadata,
        collect as collect,
    )
    from muybridge_protocol.text.stream_reader import StreamInterrupted as StreamInterrupted

# Everything is imported on first use, so that `import muybridge` stays cheap.
_HOMES: Final = {
    "muybridge.async_client": Home("AsyncClient"),
    "muybridge.client": Home("Client ContentStream Outcomes TextStream"),
    "muybridge.drivers.outcomes": Home("AsyncOutcomes"),
    "muybridge.drivers.text_calls": Home("AsyncContentStream AsyncTextStream"),
    "muybridge.drivers.trio_outcomes": Home("TrioOutcomes"),
    "muybridge.files.inline_media": Home("load_media"),
    "muybridge.files.prices": Home("load_prices"),
    "muybridge.files.sidecar": Home("Sidecar SidecarFailed"),
    "muybridge.purchases.errors": Home("OnceTaken OnceUnderWay StoreUnusable"),
    "muybridge.trio_client": Home("TrioClient"),
    "muybridge.version": Home("__version__"),
    "muybridge.wire.asyncio_transport": Home("AsyncioTransport"),
    "muybridge.wire.httpx2_transport": Home("Httpx2Transport", extra="httpx2", needs="httpcore2"),
    "muybridge.wire.requests_transport": Home("RequestsTransport"),
    "muybridge.wire.trio_transport": Home("TrioTransport"),
    "muybridge_protocol.errors": Home(
        "AssetDeleteFailed AssetDeleteUnknown CreateAmbiguous DownloadFailed Forbidden "
        "IgnoredSetting InvalidAddress InvalidInput InvalidRequest LinkExpired "
        "LocalError MuybridgeError MuybridgeWarning NotCompleted NotSent OverBudget "
        "PlainHttpWarning ProtocolViolation RateLimited Refused ResultExpired ResultIncomplete "
        "ServiceError ServiceUnreachable TaskFailed TaskNotFound TextAmbiguous Unauthorized "
        "WaitTimeout"
    ),
    "muybridge_protocol.estimates": Home("Estimate PriceList Quantities Totals parse_prices"),
    "muybridge_protocol.families": Home(
        "FAMILIES ImgaRequest ImgbRequest MediaRequest Unlisted VidcRequest ViddRequest "
        "VideosRequest VidgRequest VidmRequest VidrRequest VidsaRequest VidsbRequest "
        "VidvRequest"
    ),
    "muybridge_protocol.fleet": Home("FleetOutcome"),
    "muybridge_protocol.http": Home("HttpRequest HttpResponse"),
    "muybridge_protocol.media.inline": Home("InlineMedia"),
    "muybridge_protocol.purchases": Home("Budget"),
    "muybridge_protocol.records.tasks": Home("Result Status Task"),
    "muybridge_protocol.rules.media": Home("MediaReport"),
    "muybridge_protocol.text.content": Home("Content Conversation GenerationConfig Part"),
    "muybridge_protocol.text.functions": Home(
        "FunctionCall FunctionResult function_calls next_messages"
    ),
    "muybridge_protocol.text.models": Home("TEXT_MODELS"),
    "muybridge_protocol.text.responses": Home(
        "Candidate FinishReason GenerateContentChunk GenerateContentResponse NoText "
        "UsageMetadata collect"
    ),
    "muybridge_protocol.text.stream_reader": Home("StreamInterrupted"),
}
_LAZY: Final = LazyNames(__name__, _HOMES)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name.endswith("Request") and name not in _LAZY:  # a family that is not in the table
            value = getattr(import_module("muybridge_protocol.families"), name, None)
            if value is not None:
                return value
        return _LAZY.get(name)


def __dir__() -> list[str]:
    return sorted(_LAZY.offered())
