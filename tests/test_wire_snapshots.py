"""What goes out on the wire, byte by byte: the stored requests are the contract.

The bodies are the smallest and the fullest that the specification allows. A changed snapshot is a
changed request: compare it with the specification before storing it anew.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from muybridge_protocol.errors import IgnoredSetting
from muybridge_protocol.families import (
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
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations import Call, Create, DeleteAsset, Download, Fetch, Poll, Send
from muybridge_protocol.operations.download import Part
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.operations.text import OpenStream, TextCall
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.service import Service
from muybridge_protocol.text import content
from muybridge_protocol.text.content import Content, Conversation, GenerationConfig
from muybridge_protocol.text.defaults import CHAT_PATH, MESSAGES_PATH
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import GenerateContentRequest

SERVICE = Service(base_url="https://api.example.com", text_base_url="http://text.example.com/v")


def pictures(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.png?w=1&sig=a%2Fb" for number in range(count)]


def clips(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.mp4" for number in range(count)]


def sounds(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.wav" for number in range(count)]


FIRST, LAST = "https://media.example.com/first.png", "https://media.example.com/last.webp"
PROMPT = 'A "horse" \u2013 caf\u00e9, \U0001f40e\nsecond line </script>'

CREATES: dict[str, tuple[type[MediaRequest], dict[str, Any]]] = {
    "imga smallest": (ImgaRequest, {"model": "imga", "prompt": "a horse"}),
    "imga fullest": (
        ImgaRequest,
        {
            "model": "imga-pro",
            "prompt": PROMPT,
            "resolution": "4k",
            "size": "21:9",
            "image_urls": pictures(6),
            "extra": {"seed": 7, "tags": ["a", None, 1.5, True]},
        },
    ),
    "imgb smallest": (ImgbRequest, {"model": "imgb-2", "prompt": "a horse"}),
    "imgb fullest": (
        ImgbRequest,
        {
            "model": "imgb-2",
            "prompt": PROMPT,
            "quality": "high",
            "ratio": "16:9",
            "resolution": "4k",
            "size": "3840x2160",
            "image_urls": pictures(6),
        },
    ),
    "imgb-2-r": (
        ImgbRequest,
        {"model": "imgb-2-r", "prompt": "a horse", "image_urls": pictures(16)},
    ),
    "vidr smallest": (VidrRequest, {"model": "vidrPlus", "prompt": "a horse"}),
    "vidr fullest": (
        VidrRequest,
        {
            "model": "vidrPro",
            "prompt": PROMPT,
            "size": "1280x720",
            "duration": 12,
            "input_reference": pictures(1),
        },
    ),
    "vidr the other way": (
        VidrRequest,
        {
            "model": "vidrPro",
            "prompt": "a horse",
            "aspect_ratio": "16:9",
            "seconds": 4,
            "image_urls": pictures(1),
        },
    ),
    "vidv smallest": (VidvRequest, {"model": "vidv_3_1_fast", "prompt": "a horse"}),
    "vidv fullest": (
        VidvRequest,
        {
            "model": "vidv_3_1_pro",
            "prompt": PROMPT,
            "resolution": "4K",
            "aspect_ratio": "9:16",
            "input_reference": pictures(3),
        },
    ),
    "vidv the other way": (
        VidvRequest,
        {"model": "vidv_3_1_pro_stable", "prompt": "a horse", "image_urls": pictures(1)},
    ),
    "vidv frames": (
        VidvRequest,
        {
            "model": "vidv_3_1_fast_stable",
            "prompt": "a horse",
            "resolution": "1080P",
            "first_image": FIRST,
            "last_image": LAST,
        },
    ),
    "vidsa smallest": (VidsaRequest, {"model": "vidsa_1_5_pro_480p"}),
    "vidsa fullest": (
        VidsaRequest,
        {
            "model": "vidsa_1_5_pro_1080p",
            "prompt": PROMPT,
            "duration": -1,
            "extra": {"ratio": "16:9"},
        },
    ),
    "vidsb smallest": (VidsbRequest, {"model": "vidsb_2_0_pro", "prompt": "a horse"}),
    "vidsb fullest": (
        VidsbRequest,
        {
            "model": "vidsb_2_0_fast",
            "prompt": PROMPT,
            "duration": 15,
            "aspect_ratio": "adaptive",
            "generate_audio": False,
            "reference_images": ["asset://face-1", *pictures(8)],
            "reference_videos": clips(3),
            "reference_audios": sounds(3),
        },
    ),
    "vidsb frames": (
        VidsbRequest,
        {
            "model": "vidsb_2_0_fast_pro",
            "prompt": "a horse",
            "first_image": "asset://face-1",
            "last_image": LAST,
        },
    ),
    "vidd smallest": (ViddRequest, {"model": "viddq3-pro", "prompt": "a horse"}),
    "vidd fullest": (
        ViddRequest,
        {
            "model": "viddq3-turbo",
            "prompt": PROMPT,
            "duration": 1.5,
            "aspect_ratio": "3:4",
            "resolution": "1080p",
            "first_image": FIRST,
            "last_image": LAST,
        },
    ),
    "vidg smallest": (VidgRequest, {"model": "vidg_video3_pro", "prompt": "a horse"}),
    "vidg fullest": (
        VidgRequest,
        {
            "model": "vidg_video3",
            "prompt": PROMPT,
            "duration": 30,
            "aspect_ratio": "2:3",
            "resolution": "480p",
            "image_urls": pictures(7),
        },
    ),
    "vidc smallest": (VidcRequest, {"model": "vidc_o3", "prompt": "a horse"}),
    "vidc fullest": (
        VidcRequest,
        {
            "model": "vidc_o3",
            "prompt": PROMPT,
            "duration": 15,
            "ratio": "16:9",
            "reference_images": pictures(4),
            "reference_videos": clips(1),
        },
    ),
    "vidc frames": (
        VidcRequest,
        {"model": "vidc_o3", "prompt": "a horse", "first_image": FIRST, "last_image": LAST},
    ),
    "videos smallest": (VideosRequest, {"model": "videos", "prompt": "a horse", "duration": 4}),
    "videos fullest": (
        VideosRequest,
        {
            "model": "videos_fast",
            "prompt": PROMPT,
            "duration": 15,
            "ratio": "1:1",
            "resolution": "720p",
            "reference_images": pictures(4),
            "reference_videos": clips(3),
        },
    ),
    "videos frames": (
        VideosRequest,
        {
            "model": "videos",
            "prompt": "a horse",
            "duration": 5,
            "first_image": FIRST,
            "last_image": LAST,
            "image": FIRST,
        },
    ),
    "videos legacy names": (
        VideosRequest,
        {
            "model": "videos",
            "prompt": "a horse",
            "duration": 5,
            "image": FIRST,
            "last_frame_image": LAST,
        },
    ),
    "vidm smallest": (VidmRequest, {}),
    "vidm fullest": (
        VidmRequest,
        {"model": "vidm-4k", "prompt": PROMPT, "extra": {"duration": 15, "first_image": FIRST}},
    ),
    "unlisted model": (ImgaRequest, {"model": Unlisted("imga-9"), "prompt": "a horse"}),
}


def shown(operation: Operation[Any]) -> dict[str, Any]:
    """Return the request that *operation* sends first, with everything that a driver sees."""
    action = operation.next_action(0)
    assert isinstance(action, Send | Fetch)
    request: HttpRequest = action.request
    return {
        "method": request.method,
        "url": request.url,
        "headers": [f"{name}: {value}" for name, value in request.headers],
        "body": None if request.body is None else request.body.decode(),
        "authorized": request.authorized,
        "paid": request.paid,
        "public_host_only": request.public_host_only,
        "body_limit": request.body_limit,
        "idle_timeout": request.idle_timeout,
    }


@pytest.mark.parametrize("name", CREATES)
def test_creates(name: str, snapshot: SnapshotAssertion) -> None:
    """The create call of each family, in its smallest and its fullest form, is the stored one."""
    kind, fields = CREATES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredSetting)
        request = kind(**fields)
    assert shown(Create.start(request, SERVICE, now=0, wall=0, seed=0)) == snapshot


def test_every_family_is_stored() -> None:
    """Each of the eleven families has a smallest and a fullest request."""
    families = {kind.family.name for kind, _ in CREATES.values()}
    assert len(families) == 11
    for family in families:
        assert {f"{family} smallest", f"{family} fullest"} <= set(CREATES)


def test_the_fullest_forms_leave_nothing_out() -> None:
    """Together the stored requests of a family hold every field that it has."""
    for family in {kind.family for kind, _ in CREATES.values()}:
        given = {
            name for kind, fields in CREATES.values() if kind.family is family for name in fields
        }
        assert {field.name for field in family.fields} <= given


def test_result_query(snapshot: SnapshotAssertion) -> None:
    """The result query is the stored one."""
    assert shown(Poll.query(Task(id="task-1"), SERVICE, now=0, wall=0, seed=0)) == snapshot


def test_asset_deletion(snapshot: SnapshotAssertion) -> None:
    """The deletion of an asset is the stored one: without a body and without a version."""
    assert shown(DeleteAsset.start("asset://a-1", SERVICE, now=0, seed=0)) == snapshot


@pytest.mark.parametrize(
    "part",
    [None, Part(offset=1000, validator='"v1"', total=5000), Part(offset=1000)],
    ids=["whole", "rest", "no validator"],
)
def test_downloads(part: Part | None, snapshot: SnapshotAssertion) -> None:
    """A download, of the whole or the rest, is the stored one: it never wants the key."""
    link = "https://cdn.example.net/a.mp4?sig=a%2Fb"
    assert shown(Download.start(link, SERVICE, part=part, now=0, seed=0)) == snapshot


def test_link_query(snapshot: SnapshotAssertion) -> None:
    """The query for a task's link is the stored one."""
    assert shown(Download.start(None, SERVICE, task=Task(id="task-1"), now=0, seed=0)) == snapshot


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_calls(method: str, snapshot: SnapshotAssertion) -> None:
    """A call to an endpoint that is not shown is the stored one."""
    body = {"messages": [{"role": "user", "content": PROMPT}]} if method == "POST" else None
    call = Call.start(method, "/v1/chat/completions?x=1", SERVICE, json=body, now=0, seed=0)
    assert shown(call) == snapshot


TALK = (
    Conversation("be terse").say("What is it?").hear(Content("A horse.", "model")).say("And now?")
)
TEXTS: dict[str, dict[str, Any]] = {
    "smallest": {"model": "textg-2.5-flash-lite", "contents": "a horse"},
    "fullest": {
        "model": "textg-3.1-pro-preview-official",
        "contents": [
            Content([PROMPT, content.Part.from_bytes(b"\x89PNG\r\n\x1a\n\xfb\xff", "image/png")]),
            Content([content.Part(text="It gallops.", thought=True), "A horse."], "model"),
            "And this?",
            content.Part.from_bytes(b"\x00\x00\x00\x18ftyp", "video/mp4"),
            content.Part(extra={"fileData": {"fileUri": FIRST}}),
        ],
        "system_instruction": "be terse",
        "generation_config": GenerationConfig(
            temperature=0.5, top_p=1, max_output_tokens=100, extra={"candidateCount": 2}
        ),
        "extra": {"safetySettings": [{"category": "any", "threshold": None}]},
    },
    "conversation": {"model": "textg-2.5-pro-low", "contents": TALK},
    "unlisted model": {"model": Unlisted("textg-9"), "contents": "a horse"},
}


def shown_text(request: HttpRequest, *, stream: bool) -> dict[str, Any]:
    """Return a text request as its operation sends it, and whether it may be broken off."""
    operation: Operation[Any] = (
        OpenStream.start(request, SERVICE, now=0, seed=0)
        if stream
        else TextCall[Any].start(request, lambda record: record, SERVICE, now=0, seed=0)
    )
    action = operation.next_action(0)
    assert isinstance(action, Fetch if stream else Send)
    return {**shown(operation), "interruptible": action.request.interruptible}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, stream: bool, snapshot: SnapshotAssertion) -> None:  # noqa: FBT001  a case
    """A request for text, in its smallest and its fullest form, plain and streamed, is stored."""
    request = GenerateContentRequest.build(**TEXTS[name])
    assert shown_text(encode_content(request, SERVICE, stream=stream), stream=stream) == snapshot


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("path", [CHAT_PATH, MESSAGES_PATH, "/v2/messages?beta=true"])
def test_mappings(path: str, stream: bool, snapshot: SnapshotAssertion) -> None:  # noqa: FBT001  a case
    """A chat's or messages' request is the stored one: what is given, and whether it streams."""
    body = {"model": "textg-2.5-pro", "messages": [{"role": "user", "content": PROMPT}], "n": None}
    request = encode_mapping(body, SERVICE, path=path, stream=stream, size_limit=1000)
    assert shown_text(request, stream=stream) == snapshot
