"""Mistakes in a command line, and what to write instead. It is loaded after a mistake only.

Every line in backticks works as it is, once ID is the id of a task.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click

from muybridge.cli.examples import example
from muybridge.cli.options import KEY_FILE, media_rules, option_name
from muybridge_protocol.families import FAMILIES, Family, family_of_model
from muybridge_protocol.remedies import full_stop
from muybridge_protocol.rules.values import Kind, shown
from muybridge_protocol.text.models import TEXT_MODELS

_PICTURE: Final = example(FAMILIES["imga"], "run")
_TEXT: Final = 'muybridge text textg-2.5-pro "Why does a horse gallop?"'
_WAIT: Final = "muybridge wait ID -o horse.png"
_DOWNLOAD: Final = "muybridge download ID -o horse.png"
_BATCH: Final = "muybridge batch run requests.jsonl --out pictures"

_BOOLEANS = ("true", "false", "yes", "no", "on", "off")
_REQUEST_FILES = (".jsonl", ".ndjson", ".json", ".csv")

_EXAMPLES: Mapping[str, str] = {
    "run": _PICTURE,
    "create": example(FAMILIES["imga"], "create"),
    "check": example(FAMILIES["imga"], "check"),
    "text": _TEXT,
    "get": "muybridge get ID",
    "wait": _WAIT,
    "download": _DOWNLOAD,
    "batch": _BATCH,
    "batch run": _BATCH,
    "batch status": "muybridge batch status pictures",
    "batch ambiguous": "muybridge batch ambiguous pictures",
    "batch manifest": "muybridge batch manifest pictures",
    "budget": "muybridge budget list",
    "store": "muybridge store prune --help",
    "asset": "muybridge asset delete --help",
}
"""A line for each command that needs more words than its name."""


def _sentence(error: Exception) -> str:
    """Return the message of *error* as a whole sentence."""
    return f"{error}{full_stop(str(error))}"


def _write(line: str) -> str:
    return f"Write `{line}`."


def _of_words(table: Mapping[str, str]) -> Mapping[str, str]:
    """Return what *table* says of each of the words that it has between spaces."""
    return {word: advice for words, advice in table.items() for word in words.split()}


COMMANDS: Mapping[str, Mapping[str, str]] = {
    "": _of_words(
        {
            "image images picture video imagine draw make new": _write(_PICTURE),
            "ask chat complete llm message messages prompt": _write(_TEXT),
            "describe fetch info inspect poll query result results show status task": _write(
                "muybridge get ID"
            ),
            "await follow resume watch": _write(_WAIT),
            "export pull save": _write(_DOWNLOAD),
            "history jobs list log logs ls tasks": "Write `muybridge models` for the models, or "
            "`muybridge spent --by purchase` for your requests and their task ids.",
            "abort cancel stop": "No command cancels a task. To see its status, write "
            "`muybridge get ID`.",
            "family model": _write("muybridge models imga"),
            "cost costs price prices pricing": _write("muybridge estimate requests.jsonl"),
            "balance ledger quota spend usage": _write("muybridge spent"),
            "ambiguous pending unclear": _write("muybridge undecided"),
            "adopt resolve": _write("muybridge decide --help"),
            "limit limits": _write("muybridge budget list"),
            "clean prune": _write("muybridge store prune --help"),
            "lint verify": _write("muybridge validate requests.jsonl"),
            "emulator local mock server start": _write("muybridge serve --help"),
            "openapi spec": _write("muybridge schema"),
            "version": _write("muybridge --version"),
            "auth config configure init key login setup": "The key comes from MUYBRIDGE_API_KEY or "
            "--api-key-file. To start without one, write `muybridge demo`.",
        }
    ),
    "batch": _of_words(
        {
            "continue restart resume retry": "The command that started a batch resumes it, even "
            "without the file: `muybridge batch run --out pictures`.",
            "list result results show": _write("muybridge batch status pictures"),
            "begin create start": _write(_BATCH),
            "check lint validate": _write("muybridge validate requests.jsonl"),
        }
    ),
}
"""What other tools call the commands of a group, and what to write here."""

_FILES = "Write --image, which takes pictures, videos, sounds and PDF documents."
_KEY = "Set MUYBRIDGE_API_KEY, or give a file that has the key in it as --api-key-file."
_NO_WAITING = "create does not wait for a result. " + _write(_PICTURE)
_OF_FAMILIES: Mapping[str, str] = {
    "-m": "Write --model.",
    "-p": "Write --prompt.",
    **dict.fromkeys(
        ("-n", "--n", "--count", "--number"),
        f"Each request has one result. For several, write a file of requests, and `{_BATCH}`.",
    ),
}
_SERVING = (
    "The local service of another command has ended. To keep one running, see `muybridge serve "
    "--help`."
)
_OF_TASKS: Mapping[str, str] = {"--local": _SERVING, "--out": "Write -o."}
_FIELDS = ("-m", "-p", "--family", "--model", "--prompt")
_OF_MODELS = _write("muybridge models imga")

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {**_OF_FAMILIES, "--out": "Write -o."},
    "create": {
        **_OF_FAMILIES,
        **dict.fromkeys(("-o", "--output", "--out"), _NO_WAITING),
        "--local": _write(f"{_PICTURE} --local"),
    },
    "check": _OF_FAMILIES,
    "text": {
        **dict.fromkeys(("-p", "--prompt"), f"The prompt comes after the model. {_write(_TEXT)}"),
        **dict.fromkeys(("-m", "--model"), f"The model comes first. {_write(_TEXT)}"),
        **dict.fromkeys(
            ("-a", "-f", "-i", "--attach", "--audio", "--document", "--file", "--pdf", "--video"),
            _FILES,
        ),
        "--max-tokens": "Write --max-output-tokens.",
        "--stream": "Leave it out: the answer is printed as it arrives.",
    },
    "get": {
        **dict.fromkeys(("-o", "--output", "--out"), _write(_WAIT)),
        "--local": _SERVING,
    },
    "wait": _OF_TASKS,
    "download": _OF_TASKS,
    "demo": {"--local": "Leave it out: the demo uses the local service."},
    "estimate": dict.fromkeys(_FIELDS, _write("muybridge estimate requests.jsonl")),
    "validate": dict.fromkeys(_FIELDS, _write("muybridge validate requests.jsonl")),
    "models": dict.fromkeys(("-f", "-m", "--family", "--model"), _OF_MODELS),
}
"""Options of other commands and tools by the command that they were given to."""

_WITH_SERVICE: Mapping[str, str] = {
    **dict.fromkeys(("-k", "--api-key", "--key"), _KEY),
    "--debug": "Write -v.",
}
"""The same for all commands that take a key."""


def without_command(context: click.Context) -> str:
    """Return what to write where a group was given nothing."""
    return f"The command is incomplete. {_write(_EXAMPLES[_path(context)])}"


def of_a_family(name: str) -> str | None:
    """Return what to write if *name* is a family or a model of one."""
    if name in FAMILIES:
        return f"{name} is a family. {_write(example(FAMILIES[name], 'run'))}"
    family = family_of_model(name)
    if family is None or family.model(name) is None:
        return None
    return f"{name} is a model of family {family.name}. {_write(example(family, 'run'))}"


def unknown_family(context: click.Context, name: str, error: Exception) -> str:
    """Return *error*, which says that there is no family *name*, with what to write."""
    if name == "help":
        return f"{_sentence(error)} {_write(f'{context.command_path} --help')}"
    if name == "text" or name in TEXT_MODELS:
        return f"{_sentence(error)} {_write(_TEXT)}"
    close = get_close_matches(name.lower(), FAMILIES, n=1)
    family = family_of_model(name.rpartition("/")[2]) or FAMILIES[close[0] if close else "imga"]
    return f"{_sentence(error)} {_write(example(family, _path(context)))}"


def unexpected(family: Family, verb: str, word: str) -> str:
    """Return the message about *word*, which is none of the options of a family's command."""
    sentence = f"Unexpected argument {shown(word)}."
    line = example(family, verb)
    flags = [option_name(field.wire) for field in family.fields if field.kind is Kind.BOOLEAN]
    if flags and word.lower() in _BOOLEANS:
        other = f"--no-{flags[0].removeprefix('--')}"
        return f"{sentence} Flags take no value: write {flags[0]} or {other}."
    if verb == "check":
        return f"{sentence} Give a file as --file FIELD=PATH: `{line}`."
    rules = [(field, rule) for field in family.fields for rule in media_rules(field) if rule.base64]
    if rules and _files(word):
        field, rule = rules[0]
        allowed = "" if rule.base64_stated else " --allow-inline"
        option = f"{option_name(field.wire)} @{shlex.quote(word)}{allowed}"
        return f"{sentence} To send the file, write {option}."
    return f"{sentence} Give the prompt as --prompt, in quotes if it has spaces: `{line}`."


def unknown_command(context: click.Context, name: str) -> str:
    """Return the message about *name*, which is no command of the context's group."""
    path = _path(context)
    sentence = f"There is no command {shown(name)}"
    if path in ("", "batch") and Path(name).suffix.lower() in _REQUEST_FILES:
        return f"{sentence}. {_write(f'muybridge batch run {shlex.quote(name)} --out pictures')}"
    if not path and (advice := of_a_family(name)):
        return advice
    if not path and name in TEXT_MODELS:
        return f'{name} is a text model. Write `muybridge text {name} "Why does a horse gallop?"`.'
    if advice := COMMANDS.get(path, {}).get(name):
        return f"{sentence}. {advice}"
    if name == "help":
        return f"{sentence}. {_write(f'{context.command_path} --help')}"
    assert isinstance(context.command, click.Group)  # noqa: S101  its commands are asked for
    close = get_close_matches(name, context.command.list_commands(context), n=1)
    if close:
        return f"{sentence}; did you mean {close[0]}?"
    if path:
        return f"{sentence}. {_write(_EXAMPLES[path])}"
    return (
        f"{sentence}. Use run for pictures and videos, and text for text. Write `{_PICTURE}` or "
        f"`{_TEXT}`."
    )


def unknown_model(name: str, error: Exception) -> str:
    """Return *error*, which says that `models` knows no family *name*, with what to write."""
    models = [model.name for family in FAMILIES.values() for model in family.models]
    close = get_close_matches(name.lower(), [*FAMILIES, *models, *TEXT_MODELS, "text"], n=1)
    if close:
        return f"{_sentence(error)} {_write(f'muybridge models {close[0]}')}"
    return f"{_sentence(error)} To see all models, write `muybridge models`."


def further_words(words: Sequence[str]) -> str:
    """Return the message about *words* after the prompt of a text request."""
    if paths := _files(*words):
        return f"Unexpected argument {shown(paths[0])}. To send the file, write --image before it."
    return f"The prompt has several words. Put it in quotes: `{_TEXT}`."


def explained(error: click.UsageError) -> str:
    """Return the message of *error*, with what to write."""
    message = error.format_message()
    if error.ctx is None:
        return message
    path = _path(error.ctx)
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        if isinstance(error.ctx.command, click.Group):
            line = _EXAMPLES.get(path, f"{_PICTURE} -v")
            return f"{error.message} Options come after the command. {_write(line)}"
        command, _, _ = path.partition(" ")
        connects = KEY_FILE in error.ctx.command.params
        known = {**(_WITH_SERVICE if connects else {}), **OPTIONS.get(command, {})}
        return f"{error.message} {known[name]}" if name in known else message
    if isinstance(error, click.MissingParameter):
        return f"{message} {_write(_EXAMPLES[path])}" if path in _EXAMPLES else message
    if isinstance(error, click.BadParameter) and _is_file(error.param):
        return error.message  # it names the file, and not the placeholder in the help
    return message


def _files(*words: str) -> list[str]:
    """Return those of *words* that are files."""
    return [*filter(os.path.isfile, words)]


def _is_file(parameter: click.Parameter | None) -> bool:
    return isinstance(parameter, click.Argument) and isinstance(
        parameter.type, click.File | click.Path
    )


def _path(context: click.Context) -> str:
    """Return the command that *context* is of, without the name of the whole."""
    return context.command_path.partition(" ")[2]
