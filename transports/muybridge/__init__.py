"""Muybridge: a client for asynchronous image and video generation.

It never pays twice and never loses a paid result. `Client` is for ordinary code, `TrioClient` for
programs that run under trio; the pure core, `muybridge_protocol`, is for those who write a client
of their own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from muybridge.async_text_client import TrioContentStream, TrioTextStream
    from muybridge.client import Client
    from muybridge.outcomes import Outcomes
    from muybridge.parts import load_part
    from muybridge.text_client import ContentStream, TextStream
    from muybridge.trio_client import TrioClient, TrioOutcomes
    from muybridge.wire.httpx2_transport import Httpx2Transport
    from muybridge.wire.requests_transport import RequestsTransport
    from muybridge.wire.trio_transport import TrioTransport
    from muybridge_protocol.errors import (
        AssetDeleteFailed,
        AssetDeletePresumed,
        AssetDeleteUnknown,
        CreateAmbiguous,
        DownloadFailed,
        Forbidden,
        IgnoredSetting,
        InvalidAddress,
        InvalidIdentifier,
        InvalidKey,
        InvalidRequest,
        InvalidToken,
        LinkExpired,
        LocalError,
        MuybridgeError,
        NotSent,
        PlainHttpWarning,
        PollingTooOften,
        ProtocolViolation,
        RateLimited,
        Refused,
        ResultExpired,
        ResultIncomplete,
        ServiceError,
        ServiceUnreachable,
        TaskCancelled,
        TaskEnded,
        TaskFailed,
        TaskNotFound,
        TextAmbiguous,
        Unauthorized,
        WaitTimeout,
    )
    from muybridge_protocol.families import (
        FAMILIES,
        ImgaRequest,
        ImgbRequest,
        MediaRequest,
        Unlisted,
        VidcRequest,
        ViddRequest,
        VideosRequest,
        VidgRequest,
        VidmRequest,
        VidrRequest,
        VidsaRequest,
        VidsbRequest,
        VidvRequest,
    )
    from muybridge_protocol.fleet import FleetOutcome
    from muybridge_protocol.http import HttpRequest, HttpResponse
    from muybridge_protocol.tasks import Result, Status, Task
    from muybridge_protocol.text.content import Content, Conversation, GenerationConfig, Part
    from muybridge_protocol.text.models import TEXT_MODELS
    from muybridge_protocol.text.responses import (
        Candidate,
        FinishReason,
        GenerateContentChunk,
        GenerateContentResponse,
        NoText,
        UsageMetadata,
        collect,
    )
    from muybridge_protocol.text.stream_reader import StreamInterrupted

__version__: Final = "0.1.0"

__all__ = [
    "FAMILIES",
    "TEXT_MODELS",
    "AssetDeleteFailed",
    "AssetDeletePresumed",
    "AssetDeleteUnknown",
    "Candidate",
    "Client",
    "Content",
    "ContentStream",
    "Conversation",
    "CreateAmbiguous",
    "DownloadFailed",
    "FinishReason",
    "FleetOutcome",
    "Forbidden",
    "GenerateContentChunk",
    "GenerateContentResponse",
    "GenerationConfig",
    "HttpRequest",
    "HttpResponse",
    "Httpx2Transport",
    "IgnoredSetting",
    "ImgaRequest",
    "ImgbRequest",
    "InvalidAddress",
    "InvalidIdentifier",
    "InvalidKey",
    "InvalidRequest",
    "InvalidToken",
    "LinkExpired",
    "LocalError",
    "MediaRequest",
    "MuybridgeError",
    "NoText",
    "NotSent",
    "Outcomes",
    "Part",
    "PlainHttpWarning",
    "PollingTooOften",
    "ProtocolViolation",
    "RateLimited",
    "Refused",
    "RequestsTransport",
    "Result",
    "ResultExpired",
    "ResultIncomplete",
    "ServiceError",
    "ServiceUnreachable",
    "Status",
    "StreamInterrupted",
    "Task",
    "TaskCancelled",
    "TaskEnded",
    "TaskFailed",
    "TaskNotFound",
    "TextAmbiguous",
    "TextStream",
    "TrioClient",
    "TrioContentStream",
    "TrioOutcomes",
    "TrioTextStream",
    "TrioTransport",
    "Unauthorized",
    "Unlisted",
    "UsageMetadata",
    "VidcRequest",
    "ViddRequest",
    "VideosRequest",
    "VidgRequest",
    "VidmRequest",
    "VidrRequest",
    "VidsaRequest",
    "VidsbRequest",
    "VidvRequest",
    "WaitTimeout",
    "__version__",
    "collect",
    "load_part",
]
# Type checkers read the whole list. At run time `__getattr__` gives it, without the names that need
# what is not installed: `import *` and `help` ask for each, and an error would end them.
_NAMES: Final[list[str]] = globals().pop("__all__")

# Everything is imported on first use, so that `import muybridge` stays cheap.
_HOMES: Final = {
    "Client": "muybridge.client",
    "RequestsTransport": "muybridge.wire.requests_transport",
    "TrioClient": "muybridge.trio_client",
    "TrioTransport": "muybridge.wire.trio_transport",
    "Httpx2Transport": "muybridge.wire.httpx2_transport",
    "Outcomes": "muybridge.outcomes",
    "TrioOutcomes": "muybridge.trio_client",
    "FleetOutcome": "muybridge_protocol.fleet",
    "FAMILIES": "muybridge_protocol.families",
    "MediaRequest": "muybridge_protocol.families",
    "Unlisted": "muybridge_protocol.families",
    "HttpRequest": "muybridge_protocol.http",
    "HttpResponse": "muybridge_protocol.http",
    "Result": "muybridge_protocol.tasks",
    "Status": "muybridge_protocol.tasks",
    "Task": "muybridge_protocol.tasks",
    "Content": "muybridge_protocol.text.content",
    "Conversation": "muybridge_protocol.text.content",
    "GenerationConfig": "muybridge_protocol.text.content",
    "Part": "muybridge_protocol.text.content",
    "TEXT_MODELS": "muybridge_protocol.text.models",
    "Candidate": "muybridge_protocol.text.responses",
    "FinishReason": "muybridge_protocol.text.responses",
    "GenerateContentChunk": "muybridge_protocol.text.responses",
    "GenerateContentResponse": "muybridge_protocol.text.responses",
    "NoText": "muybridge_protocol.text.responses",
    "UsageMetadata": "muybridge_protocol.text.responses",
    "collect": "muybridge_protocol.text.responses",
    "StreamInterrupted": "muybridge_protocol.text.stream_reader",
    "load_part": "muybridge.parts",
    "ContentStream": "muybridge.text_client",
    "TextStream": "muybridge.text_client",
    "TrioContentStream": "muybridge.async_text_client",
    "TrioTextStream": "muybridge.async_text_client",
}
_EXTRAS: Final = {
    "Client": "requests",
    "RequestsTransport": "requests",
    "TrioClient": "trio",
    "TrioOutcomes": "trio",
    "TrioTransport": "trio",
    "Httpx2Transport": "httpx2",
    "TrioContentStream": "trio",
    "TrioTextStream": "trio",
}
# What has to be installed for a name to be there: for `Client`, nothing.
_NEEDS: Final = {
    "Httpx2Transport": ("httpcore2", "certifi"),
    "RequestsTransport": ("requests", "urllib3", "certifi"),
    "TrioClient": ("trio",),
    "TrioContentStream": ("trio",),
    "TrioOutcomes": ("trio",),
    "TrioTextStream": ("trio",),
    "TrioTransport": ("trio", "httptools", "certifi"),
}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return _obtainable()
    home = _HOMES.get(name)
    if home is None and name.endswith("Request") and name != "InvalidRequest":
        home = "muybridge_protocol.families"  # which finds also a family that is not named here
    elif home is None and name in _NAMES:
        home = "muybridge_protocol.errors"
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found: object = getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(name)
        if extra is None or (error.name or "muybridge").startswith("muybridge"):
            raise
        raise ModuleNotFoundError(
            f'{name} needs {error.name}: pip install "muybridge[{extra}]"', name=error.name
        ) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_obtainable())


def _obtainable() -> list[str]:
    from muybridge.extras import obtainable  # noqa: PLC0415  so that an import stays cheap

    return obtainable(_NAMES, _NEEDS)
