"""Tags: whom or what a purchase is for, such as `customer=acme`.

A tag is a key and a value. A purchase has at most one value for each key. In a store, a tag is one
text, `KEY=VALUE`. These are the rules for it, and the only place where they stand.

A budget is stored for a tag (`customer=acme`), for a key alone (`customer`), or for everything
(`EVERYTHING`). One for a key holds for each of its values separately, and a request without that
key does not fit into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from muybridge_protocol.arguments import check_type
from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.problems import list_problems
from muybridge_protocol.records.json import readable

Tags = Mapping[str, str]
"""The tags of a purchase: values by key."""

EVERYTHING: Final = ""
"""The tag under which every purchase counts."""
LONGEST_KEY: Final = 64
LONGEST_VALUE: Final = 256
MOST_TAGS: Final = 16
"""Limits of a request's tags, and of the characters of each."""
RESERVED: Final = ("batch", "via")
"""Keys that only Muybridge itself sets."""
GROUPS: Final = ("day", "family", "model")
"""What spending is grouped by, besides the keys of tags."""
_LONGEST: Final = 500
"""Longest tag or name in a store, in characters."""
_TAKEN: Final = (*GROUPS, "purchase", "budget")
"""What else `muybridge spent --by` takes, so that no key may be called so."""


class OwnTags(dict[str, str]):
    """Tags that Muybridge sets itself: their keys may be reserved."""


def checked_tags(tags: Tags | None, where: str = "the tags") -> Tags:
    """Return *tags* in a mapping of their own, if they can be used.

    Args:
        tags: Values by key, or None for no tags.
        where: Where they were given, for messages.

    Raises:
        LocalError: Some cannot be used; all problems are listed.
        TypeError: They are no mapping.
    """
    if tags is None:
        return {}
    check_type("tags", tags, Mapping, "a mapping", 'tags={"customer": "acme"}')
    problems = [*_problems(tags, own=isinstance(tags, OwnTags))]
    if problems:
        raise LocalError(list_problems(problems, where), argument="tags")
    return OwnTags(tags) if isinstance(tags, OwnTags) else dict(tags)


def read_tags(texts: Iterable[str], where: str = "the tags") -> Tags:
    """Return the tags that *texts* say, each as `KEY=VALUE`.

    Args:
        texts: The texts.
        where: Where they were given, for messages.

    Raises:
        LocalError: Some cannot be used; all problems are listed.
    """
    tags: dict[str, str] = {}
    problems: list[str] = []
    for text in texts:
        key, is_tag, value = text.partition("=")
        if not is_tag:
            problems.append(_NO_TAG.format(_quoted(text)))
        elif tags.setdefault(key, value) != value:
            problems.append(f"the key {_quoted(key)} is given twice")
    problems += _problems(tags, own=False)
    if problems:
        raise LocalError(list_problems(problems, where), argument="tags")
    return tags


def labels_of(tags: Tags) -> tuple[str, ...]:
    """Return *tags* as a store keeps them."""
    return tuple(sorted(f"{key}={value}" for key, value in tags.items()))


def tags_in(labels: Iterable[str]) -> Tags:
    """Return the tags that a store keeps as *labels*, by key."""
    parts = (label.partition("=") for label in labels)
    return {key: value for key, _, value in parts}


def is_key(tag: str) -> bool:
    """Whether a budget for *tag* is one for a key, and holds for each value of it."""
    return tag != EVERYTHING and "=" not in tag


def check_label(what: str, text: str | None) -> None:
    """Check a tag or a name, which any database must keep as it is, and compare in the same way.

    Raises:
        ValueError: It is empty, too long, or not printable.
    """
    if text is not None and (not text or len(text) > _LONGEST or not text.isprintable()):
        raise ValueError(
            f"{what} must have 1 to {_LONGEST} printable characters (got {_quoted(text)})"
        )


def check_tag(tag: str) -> None:
    """Check a tag as stores keep it.

    Raises:
        ValueError: It is not `KEY=VALUE`, or no database could keep it.
    """
    check_label("a tag", tag)
    # No key is empty, so a tag never begins with "=".
    if "=" not in tag[1:]:
        raise ValueError(_NO_TAG.format(_quoted(tag)))


def check_limited(tag: str) -> None:
    """Check for what a budget is stored: a tag, a key alone, or everything.

    Raises:
        ValueError: It cannot be used.
    """
    if tag == EVERYTHING:
        return
    key, is_tag, value = tag.partition("=")
    for problem in _problems({key: value if is_tag else "any"}, own=True):
        raise ValueError(problem)


def _problems(given: Mapping[Any, Any], *, own: bool) -> Iterator[str]:
    if len(given) > MOST_TAGS:
        yield f"there are {len(given)} tags; a request has at most {MOST_TAGS}"
        return
    for key, value in given.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            kinds = f"{type(key).__name__} and {type(value).__name__}"
            yield f"keys and values must be strings, not {kinds}"
            continue
        if not _is_text(key, LONGEST_KEY) or "=" in key or "," in key:
            yield (
                f"a key must have 1 to {LONGEST_KEY} printable characters, without = and comma, "
                f"and no space at its ends (got {_quoted(key)})"
            )
        elif key in RESERVED and not own:
            yield f"the key {key!r} is reserved: only Muybridge itself sets it"
        elif key in _TAKEN:
            yield f"the key {key!r} is taken: `muybridge spent --by {key}` has its own meaning"
        if not _is_text(value, LONGEST_VALUE):
            yield (
                f"the value of {_quoted(key)} must have 1 to {LONGEST_VALUE} printable characters, "
                f"and no space at its ends (got {_quoted(value)})"
            )


_NO_TAG: Final = "{} is no tag: write KEY=VALUE, such as customer=acme"


def _is_text(text: str, longest: int) -> bool:
    return 0 < len(text) <= longest and text.isprintable() and text == text.strip()


def _quoted(text: str) -> str:
    return readable(repr(text), 80)
