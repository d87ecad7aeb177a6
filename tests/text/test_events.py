"""Events of chat completions and messages, combined into the response that they are pieces of."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muybridge import collect, function_calls


def collected(*events: dict[str, Any]) -> dict[str, Any]:
    """Return what *events* make up, which must not change them."""
    before = copy.deepcopy(events)
    whole = collect(events)
    assert events == before
    return whole


def chunk(delta: Any, reason: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": reason, **fields}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 5, "choices": [choice]}


def test_chat_deltas_are_joined() -> None:
    """Texts, thoughts, calls and token probabilities of each choice are joined in their order."""
    call = {"index": 0, "id": "call_1", "type": "function"}
    whole = collected(
        chunk({"role": "assistant", "content": ""}),
        chunk({"role": "assistant", "content": "No"}, index=1),
        chunk({"reasoning_content": "h"}),
        chunk({"content": "A "}, logprobs={"content": [1]}),
        chunk({"reasoning_content": "m", "content": "horse"}, logprobs={"content": [2]}),
        chunk({"tool_calls": [{**call, "function": {"name": "f", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 1, "id": "call_2", "function": {"name": "g"}}]}),
        chunk({"tool_calls": [{**call, "function": {"name": "f", "arguments": '{"a"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
        chunk({}, "stop", index=1),
        chunk({}, "tool_calls"),
        {"id": "c-1", "object": "chat.completion.chunk", "choices": [], "usage": {"total": 7}},
    )
    message = {
        "role": "assistant",
        "content": "A horse",
        "reasoning_content": "hm",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a": 1}'},
            },
            {"id": "call_2", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert whole == {
        "id": "c-1",
        "object": "chat.completion",
        "created": 5,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls",
             "logprobs": {"content": [1, 2]}},
            {"index": 1, "message": {"role": "assistant", "content": "No"},
             "finish_reason": "stop"},
        ],
        "usage": {"total": 7},
    }  # fmt: skip
    assert [call.arguments for call in function_calls(whole)] == [{"a": 1}, {}]


def test_a_message_is_built_of_its_events() -> None:
    """Blocks are joined from their deltas, and the reason and the tokens come last."""
    whole = collected(
        {"type": "message_start", "message": {"type": "message", "content": [],
                                              "stop_reason": None, "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta",
                                                              "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta",
                                                              "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "A "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta",
                                                              "text": "horse"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta",
                                                              "citation": {"page": 3}}},
        {"type": "content_block_start", "index": 2,
         "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta",
                                                              "partial_json": '{"a": '}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta",
                                                              "partial_json": "1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"},
         "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )  # fmt: skip
    assert whole == {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "A horse", "citations": [{"page": 3}]},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 9},
    }


def test_an_answer_that_was_not_streamed_is_itself() -> None:
    """A service that does not stream sends the whole response as the only event."""
    message = {"role": "assistant", "content": "A horse", "refusal": None}
    chat = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    assert collected(chat) == chat
    whole = {"type": "message", "content": [{"type": "text", "text": "A horse"}]}
    assert collected(whole) == whole


def test_arguments_that_were_cut_off_are_kept() -> None:
    """Of an interrupted stream, half a call remains as a text, which its problem tells."""
    whole = collected(
        {"type": "message_start", "message": {"usage": None}},
        {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "f"}},
        {"type": "content_block_delta", "delta": {"partial_json": '{"a": '}},
    )
    (call,) = function_calls(whole)
    assert (call.name, call.arguments, call.extra) == ("f", {}, {"args": '{"a": '})
    assert call.problem


names = st.sampled_from(
    ["choices", "delta", "message", "tool_calls", "index", "type", "content", "content_block",
     "usage", "partial_json", "citation", "text"]
)  # fmt: skip
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message", ""]
)


def an_event(fields: dict[str, Any], kind: str) -> dict[str, Any]:
    return {**fields, "type": kind} if kind else fields


events = st.builds(an_event, st.dictionaries(names, values, max_size=4), kinds)


@given(st.lists(events, min_size=1, max_size=4))
def test_any_events_are_combined(several: list[dict[str, Any]]) -> None:
    """Whatever events have in their fields, what arrived is combined without an error."""
    assert isinstance(collected(*several), dict)
