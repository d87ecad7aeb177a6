"""`text`: ask a model, and print its answer as it arrives."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import click

from muybridge.cli import suggestions
from muybridge.cli.consent import obtain_consent
from muybridge.cli.errors import in_command, instead_of_text
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import (
    JSON,
    KEY_FILE,
    LIMITS,
    PLAIN_HTTP_PROXY,
    PRICES,
    TAG,
    TEXT_BASE_URL,
    VERBOSE,
    YES,
    file_in,
    local_text,
    read_number,
    read_stdin,
    text_output,
    timeout,
    unlisted,
)
from muybridge.cli.records import answer_record
from muybridge.cli.results import STDOUT, check_output, check_stdout
from muybridge.cli.terminal import answer_path, answer_piece
from muybridge.cli.tools import read_schema, read_tools
from muybridge.configuration import KEY_VARIABLE, TEXT_BASE_URL_VARIABLE, find_address
from muybridge.files.inline_media import load_media
from muybridge.media.files import file_named
from muybridge.verbs.text import ask, calls_in, others_in, save_files
from muybridge_protocol.errors import InvalidAddress, InvalidRequest, LocalError
from muybridge_protocol.estimates import text_quantities
from muybridge_protocol.families import Unlisted
from muybridge_protocol.local_errors import NOTHING_SENT
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.records.convert import attributes, wire_names
from muybridge_protocol.records.json import readable
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.rules.files import problem_of
from muybridge_protocol.rules.values import Kind
from muybridge_protocol.text.content import GenerationConfig
from muybridge_protocol.text.models import TEXT_MODELS
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import FinishReason, GenerateContentResponse, NoText

_TIMEOUT = (
    "Seconds to wait for the whole answer; one that is interrupted may be charged [default: 600]"
)


def _for_text(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001  click passes it
    value: str,
) -> str:
    """Return the model. One that makes pictures or videos is refused."""
    if value and value not in TEXT_MODELS and not context.resilient_parsing:
        from muybridge.cli.mistakes import of_a_family

        advice = of_a_family(value)
        if advice is not None:
            context.fail(advice)
    return value


def _in_one_word(
    context: click.Context,
    parameter: click.Parameter,  # noqa: ARG001  click passes it
    value: tuple[str, ...],
) -> str:
    """Return the prompt. Without quotes, it is several words, which a shell may have changed."""
    if len(value) > 1 and not context.resilient_parsing:
        from muybridge.cli.mistakes import further_words

        context.fail(further_words(value[1:]))
    return " ".join(value)


@click.command(
    params=[
        text_output(),
        JSON,
        timeout(_TIMEOUT),
        KEY_FILE,
        TEXT_BASE_URL,
        YES,
        PRICES,
        *LIMITS,
        TAG,
        PLAIN_HTTP_PROXY,
        VERBOSE,
    ]
)
@click.argument(
    "model", metavar="MODEL", shell_complete=suggestions.text_models, callback=_for_text
)
@click.argument("prompt", metavar="PROMPT", nargs=-1, required=True, callback=_in_one_word)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="PATH",
    shell_complete=suggestions.files,
    help="A picture, video, sound or PDF document to look at; may be repeated.",
)
@click.option("--system", metavar="TEXT", help="Instructions for the model.")
@click.option("--temperature", metavar="NUMBER", help="Randomness; lower is more deterministic.")
@click.option("--top-p", metavar="NUMBER", help="Probability mass of nucleus sampling.")
@click.option(
    "--max-output-tokens", metavar="INTEGER", help="Maximum number of tokens to generate."
)
@click.option(
    "--schema",
    metavar="FILE|JSON",
    shell_complete=suggestions.files,
    help="Ask for JSON that follows this JSON schema.",
)
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="FILE|JSON",
    shell_complete=suggestions.files,
    help="Declaration (JSON) of a function that the model may call; may be repeated. Calls are "
    "printed, not executed.",
)
@click.option("--unlisted-model", is_flag=True, help="Use MODEL although it is not listed.")
@click.option("--no-stream", is_flag=True, help="Ask for the whole answer in one response.")
@local_text
@pass_invocation
def text(
    invocation: Invocation,
    model: str,
    prompt: str,
    *,
    images: tuple[str, ...],
    system: str | None,
    temperature: str | None,
    top_p: str | None,
    max_output_tokens: str | None,
    schema: str | None,
    tools: tuple[str, ...],
    unlisted_model: bool,
    no_stream: bool,
    yes: bool,
) -> None:
    """Ask a model, and print its answer as it arrives.

    \b
      muybridge text textg-2.5-pro "Why does a horse gallop?"
      muybridge text textg-2.5-pro "What is this?" --image horse.png
      muybridge text textg-3-flash-preview - --system "Be terse" < question.txt
      muybridge text textg-2.5-pro "Just a try" --local

    If PROMPT is -, it is read from stdin. `muybridge models text` shows the models.

    stdout has only the answer: its text, then one line of JSON for each function call. Pictures are
    saved at -o, or in the current folder. Their names, token counts, and why an answer was
    truncated go to stderr.

    The service is at MUYBRIDGE_TEXT_BASE_URL. With plain http, which the service offers, the key is
    sent unencrypted, and you are warned.

    Exit codes: 0 there is text, a picture or a call, even if the model truncated it; 1 there is
    none (stderr says why); 4 the answer was interrupted or lost, and may have been charged.

    With --json: {ok, text, finish_reason, usage, response: {the response's fields}, files: [path],
    calls: [{name, args}]}.
    """  # noqa: D301  click's own mark for lines that stay as they are
    invocation.connection.refuse_with_local("text_base_url", "api_key_file")
    asked = unlisted(model) if unlisted_model else model
    files = tuple(map(_load, images))
    if prompt == "-":
        prompt = read_stdin()
    settings: dict[str, Any] = {
        "system_instruction": system,
        "generation_config": attrs.evolve(
            _config(temperature, top_p, max_output_tokens), extra=read_schema(schema)
        ),
    }
    if tools:
        settings["extra"] = {"tools": read_tools(tools)}
    # Whatever may be wrong is found before a person is asked, and before anything is paid.
    _check(asked, prompt, settings)
    if invocation.presentation.output == STDOUT:
        raise click.UsageError("-o - is not possible: stdout has the text. Nothing was sent.")
    check_output(invocation.presentation)
    check_stdout("the command writes the answer")
    if invocation.connection.timeout is not None:
        settings["timeout"] = invocation.connection.timeout
    if (
        not invocation.connection.local
        and find_address(invocation.connection.text_base_url, TEXT_BASE_URL_VARIABLE) is None
    ):
        needs, variable, option = "", TEXT_BASE_URL_VARIABLE, "text_base_url"
        if invocation.connection.api_key_file is None and KEY_VARIABLE not in os.environ:
            needs = " and no API key"
            variable, option = f"{variable} and {KEY_VARIABLE}", f"{option} and api_key"
        give = Remedy(kind=RemedyKind.GIVE, option=option, variable=variable)
        raise InvalidAddress(f"There is no text base URL{needs}.", give, NOTHING_SENT)
    obtain_consent(invocation, text_quantities(model), yes=yes)
    printing = not invocation.presentation.json and not no_stream
    with invocation.client(text=True, spinner=not printing) as client, _printer() as put:
        invocation.note(pays=True)
        answer = ask(
            client,
            asked,
            [*files, prompt],
            streams=not no_stream,
            on_text=put if printing else None,
            on_interruption=partial(_keep, invocation),
            **settings,
        )
        invocation.note(answer=answer)
    _report(invocation, answer, printed=printing)


def _check(model: str | Unlisted, prompt: str, settings: dict[str, Any]) -> None:
    """Refuse a request that the service would not accept, before anything is started.

    Raises:
        InvalidRequest: The request has problems; all are listed.
    """
    problems = [
        problem_of(field, value, file, instead_of_text(file, field))
        for field, value in (
            ("contents", prompt),
            ("systemInstruction", settings["system_instruction"] or ""),
        )
        if (path := file_in(value)) is not None and (file := file_named(value, path)) is not None
    ]
    try:
        GenerateContentRequest.build(model, prompt, **settings)
    except InvalidRequest as error:
        problems += error.problems
    if problems:
        raise InvalidRequest("text", problems)


def _load(path: str) -> InlineMedia:
    try:
        return load_media(path)
    except OSError as error:
        reason = error.strerror or str(error)
    except LocalError as error:
        reason = error.describe(in_command)
    except ValueError as error:
        reason = str(error)
    raise click.UsageError(f"--image {path}: {reason}. Nothing was sent.")


def _config(
    temperature: str | None, top_p: str | None, max_output_tokens: str | None
) -> GenerationConfig:
    # Anything but a number stays a string, which the check refuses.
    read: dict[str, Any] = {
        "temperature": read_number(temperature, Kind.NUMBER),
        "top_p": read_number(top_p, Kind.NUMBER),
        "max_output_tokens": read_number(max_output_tokens, Kind.INTEGER),
    }
    return GenerationConfig(**read)


def _keep(invocation: Invocation, answer: GenerateContentResponse) -> None:
    """Keep what has arrived of an answer that was interrupted."""
    invocation.note(answer=answer)
    with suppress(OSError):  # the reason of the end matters more
        _save(invocation, answer)


def _save(invocation: Invocation, answer: GenerateContentResponse) -> list[Path]:
    """Save the files in *answer*, and report where they are."""
    output = invocation.presentation.output
    saved: list[Path] = []
    for path in save_files(answer, output):
        saved.append(path)
        invocation.progress.say(f"saved {path} ({path.stat().st_size:,} bytes)")
    if saved and output is None:
        invocation.progress.say("-o PATH saves them elsewhere")
    return saved


@contextmanager
def _printer() -> Generator[Callable[[str], None], None, None]:
    """Yield the function that prints the pieces of a text, and end its last line."""
    last = ""

    def put(piece: str) -> None:
        nonlocal last
        last = piece[-1:] or last
        answer_piece(piece)

    try:
        yield put
    finally:
        if last not in ("", "\n"):
            answer_piece("\n")


def _report(invocation: Invocation, answer: GenerateContentResponse, *, printed: bool) -> None:
    """Report the answer, its tokens, and whether it was cut short.

    Raises:
        NoText: There is none.
    """
    json_wanted = invocation.presentation.json
    if not printed and not json_wanted:
        with suppress(NoText), _printer() as put:
            put(answer.text)
    calls = calls_in(answer)
    if not json_wanted:
        for call in calls:
            answer_piece(f"{json.dumps(call)}\n")
    files = _save(invocation, answer)
    others = readable(", ".join(others_in(answer)), 200)
    if others and not json_wanted:
        invocation.progress.say(f"the answer also contains {others}: --json shows everything")
    counted = _counted(answer)
    if counted:
        invocation.progress.say(f"tokens: {counted}")
    try:
        answer.text  # noqa: B018  it raises where there is none
    except NoText:
        if not (files or calls):
            raise
        if not json_wanted:
            for path in files:  # they are the answer
                answer_path(path)
    reason = answer.finish_reason
    if reason is not None and reason != FinishReason.STOP:
        message = answer.candidates[0].finish_message
        invocation.progress.say(f"the answer was cut: {reason}{f': {message}' if message else ''}")
    if json_wanted:
        lists = {"files": [os.fspath(path) for path in files], "calls": calls}
        invocation.print_document(**answer_record(answer), **lists)


def _counted(answer: GenerateContentResponse) -> str:
    """Return the counts of tokens, for people."""
    usage = answer.usage_metadata
    if usage is None:
        return ""
    counts = attributes(usage, *wire_names(type(usage)))
    return ", ".join(
        f"{name.removesuffix('_token_count')} {count}"
        for name, count in counts.items()
        if count is not None
    )
