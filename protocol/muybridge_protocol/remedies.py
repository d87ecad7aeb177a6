"""What an error means for money, and what its reader can do, as data.

An error says what happened in words, and has a `Remedy` for each thing that its reader can do. A
*face* is a function that puts a remedy into words: Python says "give api_key" where the command
says "give --api-key-file". So each message is made for its readers, and no text is ever edited
after it was made: it may quote the user or the service.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from typing import Any, Final, Literal

import attrs

from muybridge_protocol.durations import shown_seconds

Charged = Literal["no", "yes", "perhaps"]
"""Whether what an error is about was charged."""


class RemedyKind(StrEnum):
    """What a reader can do."""

    GIVE = "give"
    """Give the argument `option`, or set `variable`."""
    GIVE_FOR_TEXT = "give_for_text"
    """Give the argument `option`, or set `variable`, if only text is used."""
    CORRECT = "correct"
    """Correct the argument `option`, or `variable`, whose value cannot be used."""
    RAISE = "raise"
    """Give the argument `option` a larger value."""
    OMIT = "omit"
    """Leave the argument `option` out."""
    ALLOW = "allow"
    """Allow `option`, so that `action` works all the same."""
    USE_HTTPS = "use_https"
    """Use an https address."""
    BYPASS_PROXY = "bypass_proxy"
    """Name the service's host in `variable`."""
    FIX = "fix"
    """Fix the reported problem."""
    CHECK_NETWORK = "check_network"
    """Check the address and the network."""
    CHECK_BASE_URL = "check_base_url"
    """Check the base URL."""
    CHECK_CONNECTION = "check_connection"
    """Check the network and the base URL."""
    CHECK_PROXY = "check_proxy"
    """Check the settings of the proxy."""
    CHECK_KEY = "check_key"
    """Check the API key."""
    CHECK_TASK = "check_task"
    """Check the id and the base URL; a task of a few seconds may not be found yet."""
    CHECK_ASSET = "check_asset"
    """Check the asset's id."""
    CHECK_LINK = "check_link"
    """Check the link and where it leads."""
    CHECK_DISK = "check_disk"
    """Check the disk."""
    CHECK_ACCOUNT = "check_account"
    """Look for a new task in the account before the request is sent again."""
    ASK_OPERATOR = "ask_operator"
    """Ask the service's operator."""
    REPORT = "report"
    """Send the response to the service's operator."""
    CHOOSE_MODEL = "choose_model"
    """Choose another model."""
    CHOOSE_PLACE = "choose_place"
    """Choose another place that can be written to."""
    CHOOSE_FILE = "choose_file"
    """Open a file that can be written to."""
    MAKE_ROOM = "make_room"
    """Make room on the disk."""
    AWAIT_FILE = "await_file"
    """Wait until the file can be written to."""
    UNLIST = "unlist"
    """Name a model that is not listed, with `option`."""
    RESUBMIT = "resubmit"
    """Submit the batch again, with `form`."""
    START_EACH = "start_each"
    """Start each worker with its own folder."""
    RESEND = "resend"
    """Send the request again."""
    RETRY = "retry"
    """Repeat the call."""
    SLOW_DOWN = "slow_down"
    """Repeat the call later, after `seconds` if they are known."""
    REPEAT = "repeat"
    """Repeat the call under the same name: it returns the same task."""
    CREATE = "create"
    """Create another task: this one does not change any more."""
    QUERY = "query"
    """Query the `task` before the request is sent again."""
    WAIT = "wait"
    """Wait for the `task`."""
    AWAIT_RESULT = "await_result"
    """Wait for the `task`, and then download its result."""
    FRESH_LINK = "fresh_link"
    """Query the task for a fresh link."""
    DOWNLOAD = "download"
    """Download the result, of `task` if it is known."""
    RESUME_DOWNLOAD = "resume_download"
    """Download the result: the part that was saved is kept."""
    WRITE_SIDECAR = "write_sidecar"
    """Download the result again, which writes its sidecar."""
    DELETE = "delete"
    """Delete the asset again, which is harmless."""
    DECIDE = "decide"
    """Decide about a `purchase` whose outcome nobody knows."""
    PRICE = "price"
    """Give what a `purchase` has cost."""
    TAG = "tag"
    """Give the request a tag with the key `option`."""
    READ_CALLS = "read_calls"
    """Read the functions that the answer calls, in `attribute` of the response."""
    READ = "read"
    """Read what arrived, in `attribute` of the error."""


@attrs.frozen(kw_only=True, repr=False)
class Remedy:
    """One thing that the reader of an error can do. What does not belong to its kind is "" or None.

    Args:
        kind: What to do.
        option: An argument by its name in Python, or several with "and" between them.
        owner: What takes the argument, or "" for the call or the client.
        variable: A variable of the environment.
        form: How the argument is to be given.
        action: What is then possible: `download`, `inspect`, or "".
        task: The id or token of a task.
        purchase: The key of a purchase.
        store: The store that has it, or "" for the one that commands use.
        attribute: An attribute of the error.
        seconds: How long to wait before.
    """

    kind: RemedyKind = attrs.field(converter=RemedyKind)
    option: str = ""
    owner: str = ""
    variable: str = ""
    form: str = ""
    action: str = ""
    task: str = ""
    purchase: str = ""
    store: str = ""
    attribute: str = ""
    seconds: float | None = None

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.to_dict().items())
        return f"Remedy({facts})"

    def to_dict(self) -> dict[str, Any]:
        """Return the remedy as a JSON object."""
        values = ((field.name, getattr(self, field.name)) for field in attrs.fields(Remedy))
        return {name: value for name, value in values if value not in ("", None)} | {
            "kind": self.kind.value
        }


Face = Callable[[Remedy], str]
"""Returns what to do in the words of some readers, as a clause, or "" if they cannot do it."""
_Kind = RemedyKind

IN_ALL_FACES: Final[Mapping[RemedyKind, str]] = {
    _Kind.USE_HTTPS: "use https",
    _Kind.FIX: "fix the reported problem",
    _Kind.CHECK_NETWORK: "check the address and the network",
    _Kind.CHECK_BASE_URL: "check the base URL",
    _Kind.CHECK_CONNECTION: "check the network and the base URL",
    _Kind.CHECK_PROXY: "check the proxy's settings",
    _Kind.CHECK_KEY: (
        "check that MUYBRIDGE_API_KEY contains only the key, and that the key belongs to this "
        "service. If the key was revoked, ask the service's operator for a new one"
    ),
    _Kind.CHECK_TASK: (
        "check the id and the base URL. If the task was created seconds ago, query it again in a "
        "moment"
    ),
    _Kind.CHECK_ASSET: "check its id",
    _Kind.CHECK_LINK: "check the link and where it leads",
    _Kind.CHECK_DISK: "check the disk",
    _Kind.CHECK_ACCOUNT: ("before you send the request again, check your account for a new task"),
    _Kind.ASK_OPERATOR: "ask the service's operator",
    _Kind.REPORT: "send the response to the service's operator",
    _Kind.CHOOSE_MODEL: "choose another model",
    _Kind.CHOOSE_PLACE: "choose another place that can be written to",
    _Kind.CHOOSE_FILE: "give a file that takes it",
    _Kind.MAKE_ROOM: "make room for it",
    _Kind.AWAIT_FILE: "wait until it can be written to",
    _Kind.START_EACH: "start each worker with its own folder",
    _Kind.RESEND: "send the request again",
    _Kind.RETRY: "retry",
    _Kind.REPEAT: "repeat the call later: it returns the same task",
    _Kind.CREATE: "create a new one",
    _Kind.AWAIT_RESULT: "wait for the task first, and then download its result",
    _Kind.FRESH_LINK: "ask for the task by its id to get a fresh one",
    _Kind.DOWNLOAD: "download it again",
    _Kind.RESUME_DOWNLOAD: "download it again: it resumes where it stopped",
    _Kind.WRITE_SIDECAR: "download again to write the sidecar",
    _Kind.DELETE: "deleting it again is harmless",
}
"""The words that are the same for everybody."""

_JOINTS: Final[Mapping[RemedyKind, str]] = {
    _Kind.GIVE_FOR_TEXT: ". For text alone, ",
    _Kind.RESEND: ", then ",
    _Kind.RETRY: ", then ",
    _Kind.DOWNLOAD: ", then ",
    _Kind.RESUME_DOWNLOAD: ", then ",
    _Kind.WRITE_SIDECAR: ", then ",
    _Kind.DELETE: "; ",
    _Kind.DECIDE: "; ",
}
"""What comes before a remedy that follows another one. The others are alternatives."""

ANYWAY: Final[Mapping[str, str]] = {
    "download": "to download it anyway, ",
    "inspect": "to look at it anyway, ",
    "": "",
}
"""What is possible once it is allowed, by the remedy's action."""


def in_python(remedy: Remedy) -> str:
    """Return what to do in Python, or "" if nothing can be done there."""
    option, owner = remedy.option, remedy.owner
    match remedy.kind:
        case RemedyKind.GIVE | RemedyKind.GIVE_FOR_TEXT:
            return f"{_or_variable(remedy)}give {option}{_form(remedy)}"
        case RemedyKind.CORRECT:
            return f"{option} cannot be used:"
        case RemedyKind.RAISE if owner:
            return f"load it with {owner}(path, {option}=...)"
        case RemedyKind.RAISE:
            return f"raise {option}"
        case RemedyKind.OMIT:
            return f"use {option}=None"
        case RemedyKind.ALLOW if owner == "fields":
            return f'send the file all the same with "{option}": True beside it'
        case RemedyKind.ALLOW if owner == "load_media":
            return f"send the file all the same with {owner}(path, {option}=True)"
        case RemedyKind.ALLOW if owner:
            return f"pass {owner}({option}=True)"
        case RemedyKind.ALLOW:
            return f"{ANYWAY[remedy.action]}pass {option}=True"
        case RemedyKind.UNLIST:
            return "Unlisted(name) sends another on purpose"
        case RemedyKind.WAIT:
            return f"to resume: wait({remedy.task!r})"
        case RemedyKind.QUERY:
            return f"query it with get({remedy.task!r}) before you send the request again"
        case RemedyKind.DOWNLOAD | RemedyKind.RESUME_DOWNLOAD if remedy.task:
            return f"to resume: download({remedy.task!r}, ...)"
        case RemedyKind.TAG:
            return f'pass tags={{"{option}": ...}}'
        case RemedyKind.READ_CALLS:
            return f"read {remedy.attribute}"
        case RemedyKind.READ:
            return f"is in the error's `{remedy.attribute}`"
        case _:
            return in_all_faces(remedy)


def in_records(remedy: Remedy) -> str:
    """Return what to do in the words of Python, and the option of the command, if it has one.

    What is recorded, such as why an item of a batch failed, is read in both.
    """
    match remedy.kind:
        case RemedyKind.ALLOW:
            return f"{in_python(remedy)} (--{'-'.join(remedy.option.split('_'))})"
        case RemedyKind.WAIT:
            return ""  # the record has the task
        case _:
            return in_python(remedy)


def in_facts(remedy: Remedy) -> str:  # noqa: ARG001  whatever it is
    """Return "": the text of an error alone, for one that has its remedies as its own."""
    return ""


def in_all_faces(remedy: Remedy) -> str:
    """Return what to do where everybody does the same, or ""."""
    match remedy.kind:
        case RemedyKind.BYPASS_PROXY:
            return f"name the service's host in {remedy.variable}"
        case RemedyKind.SLOW_DOWN if remedy.seconds is not None:
            return f"try again in {shown_seconds(remedy.seconds)}"
        case RemedyKind.SLOW_DOWN:
            return "try again later"
        case RemedyKind.RESUBMIT:
            return f"submit the batch again with {remedy.form}"
        case RemedyKind.DECIDE | RemedyKind.PRICE:
            store = ["--store", remedy.store] if remedy.store else []
            command = shlex.join(["muybridge", "decide", *store, remedy.purchase])
            if remedy.kind is RemedyKind.DECIDE:
                return f"to decide: {command}"
            return f"to give a cost: {command} --cost AMOUNT"
        case kind:
            return IN_ALL_FACES.get(kind, "")


def advice(remedies: Iterable[Remedy], face: Face) -> str:
    """Return the *remedies* that *face* has words for, as one clause, or ""."""
    text = ""
    for remedy in remedies:
        clause = face(remedy)
        if clause:
            text += f"{_JOINTS.get(remedy.kind, ', or ') if text else ''}{clause}"
    return text


def sentence(remedies: Iterable[Remedy], face: Face) -> str:
    """Return the *remedies* that *face* has words for, as a sentence, or ""."""
    text = advice(remedies, face)
    return as_sentence(text) if text else ""


def as_sentence(clause: str) -> str:
    """Return *clause* with a capital, and with a full stop unless it ends in one."""
    return f"{clause[:1].upper()}{clause[1:]}{full_stop(clause)}"


def full_stop(text: str) -> str:
    """Return what ends the sentence *text*: "" if what it quotes last has ended it already."""
    return "" if text.endswith((".", "!", "?")) else "."


def message(parts: Iterable[str | Remedy], face: Face) -> str:
    """Return a message of *parts*: texts, which stay as they are, and remedies among them.

    What is to be corrected comes first, and the text says why. Other remedies are a sentence of
    their own after a whole sentence. Otherwise, they continue the text:
    after a colon or semicolon they end its sentence, and else they are an alternative to it.
    """
    text = ""
    for remedies, group in _groups(parts):
        if not remedies:
            text += f"{' ' if text else ''}{' '.join(map(str, group))}"
        elif remedies[0].kind is RemedyKind.CORRECT:
            text += advice(remedies, face)
        elif text[-1:] in {"", ".", "!", "?"}:
            text = f"{text} {sentence(remedies, face)}".strip()
        elif clause := advice(remedies, face):
            text += f" {clause}." if text[-1] in ":;" else f", or {clause}"
    return text


def _groups(
    parts: Iterable[str | Remedy],
) -> Iterator[tuple[list[Remedy], list[str | Remedy]]]:
    """Yield the remedies of each run of remedies, and all of each run."""
    for _, run in groupby(parts, lambda part: isinstance(part, Remedy)):
        group = [*run]
        yield [part for part in group if isinstance(part, Remedy)], group


def _or_variable(remedy: Remedy) -> str:
    return f"set {remedy.variable}, or " if remedy.variable else ""


def _form(remedy: Remedy) -> str:
    return f" as {remedy.form}" if remedy.form else ""
