"""Texts that are nothing but a file: its name, or its content in base64.

A user who passes one means the file, but would pay for it as text. A name is recognized by its
suffix alone, because the core does not look at the file system. Within a sentence, both are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from muybridge_protocol.media.formats import FORMATS, PDF
from muybridge_protocol.rules.media_urls import BARE_BASE64, IMAGE_BEGINNINGS
from muybridge_protocol.rules.values import Problem, shown

FILE_TEXT: Final = "file_as_text"
"""The rule that such a text breaks."""

_MEDIA: Final = frozenset(suffix[1:] for one in (*FORMATS.values(), PDF) for suffix in one.suffixes)
_TEXTS: Final = frozenset({
    "txt", "text", "md", "markdown", "rst", "json", "jsonl", "ndjson", "csv", "tsv", "yaml",
    "yml", "toml", "xml", "html", "htm", "log", "srt",
})  # fmt: skip
_LONGEST_SUFFIX: Final = 10
"""Characters at the end of a text in which a suffix is looked for."""
_LONGEST_PATH: Final = 4096
"""Most characters of a text that is taken for a path: Linux allows no longer one."""
_LONGEST_SHOWN: Final = 255
"""Longest path that advice repeats."""
# Not compiled here, because most texts have no suffix; `re` caches them.
_PATH: Final = r"[^\s\"'<>|*?]+|(?:~|\.\.?|[A-Za-z]:)?[/\\][^\r\n\"'<>|*?]*"
"""A path without white space, or one that begins like a path."""
_UNSPACED: Final = r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uff00-\uff9f]"
"""A character of a script that does not separate words: Chinese, Japanese, Thai and others."""
_LONGEST_UNSPACED: Final = 8
"""Most of these characters that a name without folders has; more of them are a sentence."""
_CONTENT: Final = r"data:[a-z0-9.+-]+/[a-z0-9.+-]+(?:;[^\s;,]+)*;base64,[a-z0-9+/_=%\r\n-]*"
_FILE_SCHEME: Final = "file://"


class FileText(NamedTuple):
    """A file in the place of a text."""

    path: str
    """Its path, or "" if the text is the file's content."""
    is_text: bool = False
    """Whether the file contains text."""


class FileForms(NamedTuple):
    """How a user writes a file in a request, which differs between Python and the command."""

    file: Callable[[str], str]
    """Returns what to write in place of a URL for the file at a path."""
    text: Callable[[str], str]
    """Returns what to write for the text in the file at a path."""


def _expanded(path: str) -> str:
    return f"pathlib.Path({path!r}){'.expanduser()' if path[:1] == '~' else ''}"


def _loaded(path: str) -> str:
    return f"muybridge.load_media({_expanded(path) if path[:1] == '~' else repr(path)})"


def _read(path: str) -> str:
    return f"{_expanded(path)}.read_text()"


IN_PYTHON: Final = FileForms(_loaded, _read)
"""In a typed request, and in text requests."""
IN_FIELDS: Final = FileForms(_expanded, _read)
"""In a mapping of fields."""


def file_text(text: object) -> FileText | None:
    """Return the file that *text* is, or None if it is not only a file."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    if text[:5].lower() == "data:":
        return FileText("") if re.fullmatch(_CONTENT, text, re.IGNORECASE) else None
    # Any word is valid base64, so only what begins as a picture does counts as one.
    if text.startswith(IMAGE_BEGINNINGS) and re.fullmatch(BARE_BASE64, text):
        return FileText("")
    _, dot, suffix = text[-_LONGEST_SUFFIX:].lower().rpartition(".")
    names_file = suffix in _MEDIA or (suffix in _TEXTS and text[:1] == "@")
    if not dot or not names_file or len(text) > _LONGEST_PATH:
        return None
    path = text.removeprefix("@").removeprefix(_FILE_SCHEME)
    if "://" in path or not re.fullmatch(_PATH, path) or path == f".{suffix}":
        return None
    if path == text and _is_sentence(text):  # a prompt may end with the name of a file
        return None
    return FileText(path, suffix in _TEXTS)


def _is_sentence(text: str) -> bool:
    """Whether *text*, which has no spaces, may be a sentence all the same, and names no folder."""
    unspaced = len(re.findall(_UNSPACED, text))
    return unspaced > _LONGEST_UNSPACED and not re.search(r"[/\\]", text)


def is_media_link(text: str) -> bool:
    """Whether *text* is nothing but the URL of a picture, video or sound, by its suffix."""
    match = re.fullmatch(r"https?://[^\s?#]+\.([a-z0-9]+)(?:[?#]\S*)?", text.strip(), re.IGNORECASE)
    return match is not None and match[1].lower() in _MEDIA


def problem_of(field: str, text: str, file: FileText, accepted: str) -> Problem:
    """Return the problem of the *text* in *field*, which is nothing but a *file*."""
    fate = "would be sent as text, and not as the file"
    if not file.path:
        fate = "is a file, and would be paid for as text"
    return Problem(field, text, FILE_TEXT, f"{shown(text)} {fate}", accepted)


def instead_of(file: FileText, place: str, forms: FileForms, *, loads: bool = True) -> str:
    """Return what to write in place of a text that is *file*.

    Args:
        file: The file.
        place: Where it goes, such as `put it into image_urls, as`.
        forms: How it is written.
        loads: Whether *place* takes files, so that the file itself follows.
    """
    if not file.path:
        return place
    path = file.path if len(file.path) <= _LONGEST_SHOWN else "path"
    if file.is_text:
        way = f"to send the text in the file, give {forms.text(path)}"
    elif loads:
        way = f"to send the file, {place} {forms.file(path)}"
    else:
        way = place
    return f"put a sentence around the name to send it as text; {way}"
