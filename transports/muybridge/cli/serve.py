"""`serve`: the local service, for people and for the tests of others."""

from __future__ import annotations

import errno
import shlex
import sys
from typing import Any

import click

# The package imports on use, and says how to install what is missing.
from muybridge import local
from muybridge.cli import suggestions
from muybridge.cli.connection import Connection
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import JSON
from muybridge.cli.standard_streams import Unprinted
from muybridge.cli.terminal import answer, document, say
from muybridge.configuration import (
    BASE_URL_VARIABLE,
    KEY_VARIABLE,
    TEXT_BASE_URL_VARIABLE,
)
from muybridge_protocol.errors import InvalidInput
from muybridge_protocol.hosts import is_loopback
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.service import check_key


@click.command(params=[JSON])
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="Port to listen on; 0 for any free port.",
)  # fmt: skip
@click.option(
    "--speed", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True,
    help="Speed of the tasks; 20 is twenty times faster than usual.",
)  # fmt: skip
@click.option("--api-key-file", metavar="FILE", help="Accept the key in FILE instead of a new one.")
@click.option(
    "--strict", is_flag=True, help="Refuse fields and models that the specification does not list."
)
@click.option(
    "--answers", metavar="FILE", shell_complete=suggestions.files,
    help="Scripted answers of the text endpoints, in order: JSON lines, or TOML.",
)  # fmt: skip
@pass_invocation
def serve(
    invocation: Invocation,
    host: str,
    port: int,
    speed: float,
    api_key_file: str | None,
    *,
    strict: bool,
    answers: str | None,
) -> None:
    """Run a local service with real PNG and MP4 files, until Ctrl-C.

    Whatever the prompt says, every file shows a galloping horse with the prompt as its caption.

    Paste the line that the command prints into another shell:

    \b
      export MUYBRIDGE_BASE_URL=... MUYBRIDGE_TEXT_BASE_URL=... MUYBRIDGE_API_KEY=...

    With --json: {ok, base_url, text_base_url, api_key}; the key is null if it is in a file.
    """  # noqa: D301  click's own mark for lines that stay as they are
    from muybridge_protocol.emulator import Access

    given = Connection(api_key_file=api_key_file).read_key()
    if not is_loopback(host):
        say(f"warning: other machines can connect to {host}, and the key is sent unencrypted")

    def ready(service: local.LocalService) -> None:
        say(
            f"serving on {service.base_url} (open it in a browser to see the tasks); Ctrl-C stops "
            "it"
        )
        # The key of a file may be a real one, so that only its place is printed.
        if invocation.presentation.json:
            key = service.api_key if api_key_file is None else None
            urls = attributes(service, "base_url", "text_base_url")
            document({"ok": True, **urls, "api_key": key})
        else:
            shown = (
                shlex.quote(service.api_key)
                if api_key_file is None
                else f'"$(cat {shlex.quote(api_key_file)})"'
            )
            answer(
                f"export {BASE_URL_VARIABLE}={service.base_url} "
                f"{TEXT_BASE_URL_VARIABLE}={service.text_base_url} {KEY_VARIABLE}={shown}"
            )
        sys.stdout.flush()

    try:
        keys = None if given is None else {check_key(given): Access()}
        service = local.LocalService(
            host=host, port=port, speed=speed, keys=keys, strict=strict, answers=_read(answers)
        )
        local.serve(service, on_ready=ready)
    except Unprinted:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            reason += ". Give another --port, or --port 0 for any that is free."
        raise click.UsageError(reason) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _read(answers: str | None) -> tuple[Any, ...]:
    """Return the scripted answers in the file *answers*.

    Raises:
        click.UsageError: It cannot be read, or is wrong.
    """
    if answers is None:
        return ()
    try:
        return local.load_answers(answers)
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.UsageError(f"--answers {answers}: {reason}.") from None
    except InvalidInput as error:
        listed = "".join(f"\n  {problem}" for problem in error.problems)
        raise click.UsageError(f"--answers {answers} is not valid:{listed}") from None
