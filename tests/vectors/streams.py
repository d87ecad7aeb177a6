"""Streamed responses: bytes, the payloads that they hold, and whether the answer is complete."""

from __future__ import annotations

import json
from typing import Any

from muybridge_protocol.text.dialects import CHAT, MESSAGES, NATIVE, Dialect
from muybridge_protocol.text.stream_parser import MalformedStream, StreamParser
from muybridge_protocol.text.stream_reader import StreamInterrupted, StreamReader

from .telling import Told, told_body

_DIALECTS: dict[str, Dialect[Any]] = {
    "generate_content": NATIVE,
    "chat_completions": CHAT,
    "messages": MESSAGES,
}


def _native(text: str, reason: str | None = None, **more: object) -> str:
    candidate: Told = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return json.dumps({"candidates": [candidate], **more}, ensure_ascii=False)


_FIRST, _LAST = _native('"caf\u00e9" \U0001f40e } ] \\'), _native("end", "STOP")
_CHAT_FIRST = '{"choices":[{"index":0,"delta":{"content":"a"}}]}'
_CHAT_LAST = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'

_BODIES: list[tuple[str, str, str | bytes]] = [
    ("events", "generate_content", f"data: {_FIRST}\n\ndata: {_LAST}\n\n"),
    ("events with CRLF", "generate_content", f"data: {_FIRST}\r\n\r\ndata: {_LAST}\r\n\r\n"),
    ("events with CR", "generate_content", f"data: {_FIRST}\r\rdata: {_LAST}\r\r"),
    ("no space after the colon", "generate_content", f"data:{_LAST}\n\n"),
    ("a byte order mark", "generate_content", f"\ufeffdata: {_LAST}\n\n"),
    ("comments and other fields", "generate_content",
     f": ping\n\nid: 1\nevent: x\nretry: 5\ndata: {_LAST}\n\n"),
    ("an event of two lines", "generate_content", 'data: {"candidates":\ndata: []}\n\n'),
    ("an event of two lines with CRLF", "generate_content",
     'data: {"candidates":\r\ndata: []}\r\n\r\n'),
    ("the last blank line is missing", "generate_content", f"data: {_FIRST}\n\ndata: {_LAST}"),
    ("an array", "generate_content", f"[{_FIRST},\r\n{_LAST}]"),
    ("an array with white space", "generate_content", f" \n[ {_FIRST} ,\n {_LAST} ]\n"),
    ("an array that goes on", "generate_content", f"[{_LAST}] x"),
    ("an array without a comma", "generate_content", f"[{_FIRST} {_LAST}]"),
    ("an array that breaks off", "generate_content", f"[{_FIRST},"),
    ("an object that breaks off", "generate_content", f"[{_FIRST},{_LAST[:20]}"),
    ("objects one after another", "generate_content", f"{_FIRST}\n{_LAST}\n"),
    ("an event that is an array", "generate_content", f"data: [{_FIRST},{_LAST}]\n\n"),
    ("no end", "generate_content", f"data: {_FIRST}\n\n"),
    ("DONE is no end here", "generate_content", f"data: {_FIRST}\n\ndata: [DONE]\n\n"),
    ("two candidates, one of which goes on", "generate_content",
     'data: {"candidates":[{"index":0,"finishReason":"STOP"},{"index":1}]}\n\n'),
    ("a blocked prompt", "generate_content",
     'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n'),
    ("an error in between", "generate_content",
     f'data: {_FIRST}\n\ndata: {{"error":{{"message":"overloaded"}}}}\n\n'),
    ("an error without a field's name", "generate_content",
     f'data: {_FIRST}\n\n{{"error":{{"message":"overloaded"}}}}\n'),
    ("an error on several lines", "generate_content",
     f'data: {_FIRST}\n\n{{\n  "error": {{\n    "message": "overloaded"\n  }}\n}}\n'),
    ("an error with a field's name on its first line", "generate_content",
     f'data: {_LAST}\n\ndata: {{\n  "error": {{"message": "overloaded"}}\n}}\n\n'),
    ("an event that is named an error", "generate_content",
     f'data: {_LAST}\n\nevent: error\ndata: {{"message": "overloaded"}}\n\n'),
    ("an error where none may stand", "generate_content",
     f'[{_FIRST}\ndata: {{"error":{{"message":"overloaded"}}}}\n\n'),
    ("a reason in each event", "generate_content",
     f"data: {_LAST}\n\ndata: {_LAST}\n\n"),
    ("a reason in each event, and a part of another", "generate_content",
     f"data: {_LAST}\n\ndata: {_LAST}\n\ndata: {_LAST[:20]}"),
    ("a reason in each event, and the beginning of a line", "generate_content",
     f"data: {_LAST}\n\nda"),
    ("a reason in the last event, and a part of another", "generate_content",
     f'data: {_FIRST}\n\ndata: {_LAST}\n\ndata: {{"usageMeta'),
    ("a reason in each, in an array without its end", "generate_content", f"[{_LAST},{_LAST}\n"),
    ("an error after the end", "generate_content",
     f'data: {_LAST}\n\ndata: {{"error":"late"}}\n\n'),
    ("no JSON", "generate_content", f"data: {_FIRST}\n\ndata: oops\n\n"),
    ("no UTF-8", "generate_content", b'data: {"candidates": "\xff"}\n\n'),
    ("nothing", "generate_content", ""),
    ("a page", "generate_content", "<html>Bad gateway</html>"),
    ("finished and done", "chat_completions",
     f"data: {_CHAT_FIRST}\n\ndata: {_CHAT_LAST}\n\ndata: [DONE]\n\n"),
    ("done alone", "chat_completions", f"data: {_CHAT_FIRST}\n\ndata: [DONE]\n\n"),
    ("finished alone", "chat_completions", f"data: {_CHAT_LAST}\n\n"),
    ("neither", "chat_completions", f"data: {_CHAT_FIRST}\n\n"),
    ("stopped", "messages",
     'event: a\ndata: {"delta":{"text":"a"}}\n\nevent: b\ndata: {"type":"message_stop"}\n\n'),
    ("a reason to stop", "messages",
     'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'),
    ("an error event", "messages", 'data: {"type":"error","message":"overloaded"}\n\n'),
]  # fmt: skip


def stream_cases() -> list[Told]:
    """Return streamed responses, and what there is in them however they are cut."""
    return [
        _read(name, dialect, body.encode() if isinstance(body, str) else body)
        for name, dialect, body in _BODIES
    ]


def _read(name: str, dialect: str, body: bytes) -> Told:
    parser = StreamParser()
    payloads: list[Told] = []
    malformed = interrupted = error = False
    try:
        payloads.extend(map(told_body, parser.feed(body)))
        payloads.extend(map(told_body, parser.end()))
    except MalformedStream:
        malformed = True
    reader = StreamReader(_DIALECTS[dialect])
    chunks: list[object] = []
    try:
        chunks.extend(reader.take(body))
        chunks.extend(reader.end())
    except StreamInterrupted as interruption:
        interrupted, error = True, interruption.error is not None
    return {
        "name": f"{dialect}: {name}",
        "dialect": dialect,
        **told_body(body),
        "payloads": payloads,
        "malformed": malformed,
        "chunks": len(chunks),
        "complete": not interrupted,
        "tells_error": error,
    }
