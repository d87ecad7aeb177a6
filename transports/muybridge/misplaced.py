"""Says how to write what a client does not have: an argument, or a name of another library.

The clients' calls take `**_misplaced: Never`. To a type checker, that means: no other arguments. A
wrapper could do the same, but a signal could strike between its return and that of the call, and
lose the id of a task that was paid for. Excess by position is Python's to report: with
`*_excess: Never`, type checkers would refuse `nursery.start_soon(client.run, request)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final, NoReturn

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.suggested_names import close_to

_CALLS: Final = ("run", "run_all", "save", "check", "create", "wait", "watch", "get")
"""The calls whose arguments are looked through, in this order."""
_NAMES: Final[Mapping[str, str]] = {
    name: instead
    for names, instead in {
        "generate generate_image generate_images images subscribe text_to_image": (
            'client.run("imga", {"model": ..., "prompt": ...})'
        ),
        "generate_video generate_videos videos image_to_video text_to_video": (
            'client.run("vidg", {"model": ..., "prompt": ...})'
        ),
        "create_task predictions submit": "client.create(request)",
        "poll result wait_for wait_for_task_output": "client.wait(task)",
        "get_status get_task operations retrieve status tasks": "client.get(task)",
        "files upload upload_file": "muybridge.load_media(path)",
        "models responses": "client.generate_content(model, contents)",
        "generate_content_stream stream": "client.stream_generate_content(model, contents)",
        "chat completions": 'client.chat_completions({"model": ..., "messages": [...]})',
        "chats": "muybridge.Conversation()",
        "aio async_run run_async submit_async subscribe_async": "muybridge.AsyncClient()",
    }.items()
    for name in names.split()
}
"""What to write for an attribute of other libraries' clients: openai, google-genai, replicate, fal,
runwayml."""


def refuse_misplaced(client: object, call: str, misplaced: Mapping[str, object]) -> None:
    """Refuse arguments that *call* does not take.

    Args:
        client: The client.
        call: The name of its method, or "" for the client itself.
        misplaced: What was given in excess, by name.

    Raises:
        TypeError: There are some; the message says where they belong.
    """
    if not misplaced:
        return
    kind = type(client)
    problems = [f"has no argument {name!r}; {_place_of(kind, call, name)}" for name in misplaced]
    raise TypeError(f"{call or kind.__name__} {' It '.join(problems)} Nothing was sent.")


def missing_attribute(client: object, name: str) -> NoReturn:
    """Raise the `AttributeError` for *name*, with what to write instead: a `__getattr__`."""
    message = f"{type(client).__name__!r} object has no attribute {name!r}"
    if name in _NAMES:
        raise AttributeError(f"{message}; write {_NAMES[name]}")
    raise AttributeError(message, name=name, obj=client)


def _place_of(client: type, call: str, name: str) -> str:
    """Return where the argument *name* belongs, as a clause and its end."""
    own = _parameters(client, call)
    if "contents" in own:
        from muybridge_protocol.text.arguments import place_of

        if place := place_of(call, name):
            return f"{place}."
    if close := close_to(name, own):
        return close
    if call and name in _parameters(client, ""):
        return f"write {client.__name__}({name}=...)."
    if "contents" in own:
        return f'write extra={{"{name}": ...}} to send it as a field of the request.'
    if "body" in own:
        return f'put it into the body, the first argument: {call}({{"{name}": ..., ...}}).'
    for other in _CALLS:
        if name in _parameters(client, other):
            return f"write client.{other}(..., {name}=...)."
    if any(name == field.name for family in FAMILIES.values() for field in family.fields):
        return f'it is a field of requests: write client.run("imga", {{"{name}": ...}}).'
    return f"use {', '.join(own)}."


def _parameters(client: type, call: str) -> list[str]:
    """Return the arguments of *call*, or of *client* itself."""
    parameters = inspect.signature(getattr(client, call) if call else client).parameters
    return [name for name in parameters if name != "self" and not name.startswith("_")]
