"""One field of a family's requests, and what is wrong with a value of it."""

from __future__ import annotations

from functools import cached_property

import attrs

from muybridge_protocol.media.inline import InlineMedia, file_within, link_of, load_line
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.remedies import Remedy
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import (
    Kind,
    Naming,
    Problem,
    Text,
    ValueRule,
    is_array,
    shown,
    with_article,
)


class _Names(dict[str, str]):
    """The names of fields, by those on the wire."""

    def __init__(self, name: Naming) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, wire: str) -> str:
        return self._name(wire)


@attrs.frozen(kw_only=True)
class Field:
    """One field of a create request.

    Args:
        name: Its name in Python.
        wire: Its name on the wire.
        kind: Its JSON type.
        required: Whether the service requires it.
        rules: What its value must satisfy, whatever the model.
        service_default: The service's default if it is not sent, or None.
        doc: What it is for. Other fields stand in it as `{name on the wire}`.
    """

    name: str
    wire: str
    kind: Kind
    required: bool
    rules: tuple[ValueRule, ...]
    service_default: object
    doc: str

    def text(self, name: Naming = str) -> str:
        """Return what it is for, with the *name* of each other field that this mentions."""
        return self.doc.format_map(_Names(name))

    @cached_property
    def is_text(self) -> bool:
        """Whether its values are texts for people and models, such as prompts."""
        return any(isinstance(rule, Text) for rule in self.rules)

    @cached_property
    def takes_media(self) -> bool:
        """Whether its values are pictures, videos or sounds."""
        return any(isinstance(rule, MediaUrl) for rule in self.rules)

    @cached_property
    def takes_files(self) -> bool:
        """Whether its values may be the content of files."""
        return any(isinstance(rule, MediaUrl) and rule.base64 for rule in self.rules)

    def problem(self, value: object, rules: tuple[ValueRule, ...]) -> Problem | None:
        """Return the first problem of *value* under *rules*, or None."""
        if not self.kind.accepts(value) and not (
            self.takes_media and self.kind.accepts(value, (str, InlineMedia))
        ):
            return Problem(
                self.wire,
                value,
                "type",
                f"{shown(value)} is not {with_article(self.kind)}",
                self._accepted_for(value),
            )
        for rule in rules:
            complaint = rule.complaint(value)
            if complaint:
                remedies: tuple[Remedy, ...] = ()
                accepted = rule.accepted
                if isinstance(rule, MediaUrl):
                    accepted, remedies = rule.accepted_instead_of(value)
                return Problem(self.wire, value, rule.name, complaint, accepted, remedies=remedies)
        return None

    def _accepted_for(self, value: object) -> str:
        """Return what would be accepted in place of *value*, which has the wrong type."""
        if value is None and not self.required:
            return "leave the field out to get the service's default"
        if self.kind is Kind.STRINGS and isinstance(value, str | InlineMedia):
            return "put it into a list"
        accepted = f"use {with_article(self.kind)}"
        file = file_within(value) if self.takes_media else None
        if file is not None and not self.takes_files:
            return f"this field takes no files, {self._accepted_media()}"
        if file is not None and not isinstance(file, InlineMedia):
            line = load_line(file)
            if self.kind is Kind.STRINGS:
                return f"{accepted}, with {line} for a file" if is_array(value) else f"use [{line}]"
            return f"use {line}"
        items = value if is_array(value) else (value,)
        kinds = [rule.kind for rule in self.rules if isinstance(rule, MediaUrl)]
        name = "video_url" if MediaKind.VIDEO in kinds[:1] else "image_url"
        for line in filter(None, (link_of(item, name) for item in items if kinds)):
            return f"{accepted}, such as {line}"
        return accepted

    def _accepted_media(self) -> str:
        return next(rule.accepted for rule in self.rules if isinstance(rule, MediaUrl))
