"""Files in the bodies of chat completions and messages.

The specification does not show these bodies, so files are written as OpenAI's and Anthropic's own
software does. They are taken in the content of a message, and where a user has written the object
around them. Strings beside them become parts, because a content is either one text or a list of
parts. A file whose type has no form in a protocol is refused, and so is one in the place of a text,
because it would be paid for as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from muybridge_protocol.media.formats import PDF
from muybridge_protocol.media.inline import LOAD, InlineMedia, is_file
from muybridge_protocol.records.json import JsonObject, as_object
from muybridge_protocol.rules.files import (
    FILE_TEXT,
    IN_PYTHON,
    file_text,
    instead_of,
    is_media_link,
    problem_of,
)
from muybridge_protocol.rules.values import Problem, is_array, shown

Block = Callable[[InlineMedia], JsonObject | None]
"""Makes the item of a message's content that holds a file, or None if its type has no form."""

_SOUNDS: Final = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def chat_block(media: InlineMedia) -> JsonObject | None:
    """Return the part of a chat message that holds *media*."""
    if media.mime_type.startswith("image/"):
        return {"type": "image_url", "image_url": _address(media)}
    if media.mime_type in _SOUNDS:
        sound = {"data": media.base64(), "format": _SOUNDS[media.mime_type]}
        return {"type": "input_audio", "input_audio": sound}
    if media.mime_type == PDF.content_type:
        document = {"filename": media.name or "document.pdf", "file_data": media.data_uri()}
        return {"type": "file", "file": document}
    return None


def messages_block(media: InlineMedia) -> JsonObject | None:
    """Return the block of a message that holds *media*."""
    if media.mime_type in _PICTURES:
        return {"type": "image", "source": _source(media)}
    return (
        {"type": "document", "source": _source(media)}
        if media.mime_type == PDF.content_type
        else None
    )


def _address(media: InlineMedia) -> JsonObject:
    return {"url": media.data_uri()}


def _source(media: InlineMedia) -> JsonObject:
    return {"type": "base64", "media_type": media.mime_type, "data": media.base64()}


_WITHIN_BLOCKS: Final[Mapping[str, Callable[[InlineMedia], object]]] = {
    "url": InlineMedia.data_uri,
    "file_data": InlineMedia.data_uri,
    "image_url": _address,
    "source": _source,
}
"""How a file is written in an object that the user has written, by the name of its field."""


_CONTENT_PLACE: Final = r"messages\[\d+\]\.content(?:\[\d+\]\.content)?|system"
"""Where a list has parts: a message's content, that of a result in it, and the instructions."""
_MODELS: Final = ("assistant", "model")
"""The roles of a model's answers."""
_ANSWERS: Final = (*_MODELS, "tool", "function")
"""The roles of messages that no user has written."""


def with_files(body: Mapping[str, Any], block: Block) -> tuple[JsonObject, list[Problem]]:
    """Return *body* with its files as they are sent, and the problems of misplaced ones."""
    problems: list[Problem] = []

    def written(value: object, name: str, place: str) -> object:
        """Return *value* as it is sent; it is in the field *name*, or in an array there."""
        if isinstance(value, dict):
            fields = cast("Mapping[str, object]", value)
            return {key: written(item, key, f"{place}.{key}") for key, item in fields.items()}
        if is_array(value):
            items = [written(item, name, f"{place}[{at}]") for at, item in enumerate(value)]
            return [*map(_as_part, items)] if re.fullmatch(_CONTENT_PLACE, place) else items
        if not is_file(value):
            return value
        form: object = None
        if isinstance(value, InlineMedia):
            form = block(value) if name == "content" else _WITHIN_BLOCKS.get(name, _none)(value)
        if form is None:
            problems.append(_misplaced(value, name, place))
            return value
        # A file that is alone is a list of one, because the only other content is text.
        return [form] if place.endswith(".content") else form

    try:
        return {name: written(value, name, name) for name, value in body.items()}, problems
    except RecursionError:  # it is no JSON
        return dict(body), []


def _as_part(item: object) -> object:
    return {"type": "text", "text": item} if isinstance(item, str) else item


def problems_of_messages(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the texts in *body* that are only files, but for those of answers and results."""
    turns = body.get("messages")
    messages = [*map(as_object, turns if is_array(turns) else ())]
    roles = [None if message is None else message.get("role") for message in messages]
    new = after_answers(roles)
    for at, (message, role) in enumerate(zip(messages, roles, strict=True)):
        if message is not None and role not in _ANSWERS:
            field = f"messages[{at}].content"
            yield from _problems_of_content(message.get("content"), field, role, is_new=at >= new)
    yield from _problems_of_content(body.get("system"), "system", "system", is_new=True)


def after_answers(roles: Sequence[object]) -> int:
    """Return the index of the first turn after the last answer, by the turns' *roles*."""
    return max((at for at, role in enumerate(roles, start=1) if role in _MODELS), default=0)


def _problems_of_content(
    content: object, field: str, role: object, *, is_new: bool
) -> Iterator[Problem]:
    items: Sequence[object] = content if is_array(content) else (content,)
    texts = [text for item in items if isinstance(text := _text_of(item), str)]
    place = "use" if role in (None, "user") else "put it into the content of a user's message, as"
    alone = len(texts) == len(items)
    yield from problems_of_texts(texts, field, place=place, alone=alone, is_new=is_new)


def _text_of(item: object) -> object:
    record = as_object(item)
    return item if record is None else record.get("text")


def problems_of_texts(
    texts: Iterable[str], field: str, *, place: str, alone: bool, is_new: bool = True
) -> Iterator[Problem]:
    """Yield which of the *texts* of a turn are only files.

    Args:
        texts: The texts.
        field: What problems call the turn.
        place: Where a file goes, such as `use`.
        alone: Whether there is nothing but text. Beside a picture, its name is a caption.
        is_new: Whether the turn has not been answered. In one that has, a file's name is history,
            and only a file's content is refused: it costs each time that it is sent.
    """
    given = list(texts)
    for text in given:
        file = file_text(text)
        if file is not None and not file.path:
            yield problem_of(field, text, file, f"{place} {LOAD}")
        elif not is_new:
            continue
        elif file is not None and (alone or "@" in text.lstrip()[:1]):
            yield problem_of(field, text, file, instead_of(file, place, IN_PYTHON))
        elif alone and len(given) > 1 and is_media_link(text):
            message = f"{shown(text)} would be sent as text, and not as the file"
            yield Problem(field, text, FILE_TEXT, message, f"download it, and {place} {LOAD}")


def _none(_: InlineMedia) -> None:
    """Return the form of a file where none is taken."""


def _misplaced(file: object, name: str, place: str) -> Problem:
    message = f"{shown(file)} cannot be sent here"
    hint = f"put a file into the content of a message, as {LOAD}"
    if name == "content" and isinstance(file, InlineMedia):
        message = f"{shown(file)}: this protocol has no form for {file.mime_type}"
        hint = "use generate_content"
    elif name == "content":
        hint = f"use {LOAD}"
    return Problem(place, file, "file", message, hint)
