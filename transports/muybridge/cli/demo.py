"""`demo`: a picture and a video through the whole path, on this machine or for real."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from muybridge.cli.connection import Connection
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import CONNECTION, JSON, WAITING
from muybridge.cli.records import generation_record
from muybridge.cli.results import check_target, save
from muybridge.cli.terminal import answer_path
from muybridge.configuration import BASE_URL_VARIABLE, KEY_VARIABLE
from muybridge.verbs import generation
from muybridge_protocol.families import ImgbRequest, MediaRequest, VidsbRequest

if TYPE_CHECKING:
    from muybridge import Client

REQUESTS: tuple[MediaRequest, ...] = (
    ImgbRequest(
        model="imgb-2",
        prompt="A horse at a gallop, all four hooves off the ground, in twelve plates",
        ratio="16:9",
        resolution="1k",
    ),
    VidsbRequest(
        model="vidsb_2_0_fast_pro",
        prompt="The same horse at a gallop, seen from the side, with the sound of its hooves",
        duration=4,
        aspect_ratio="16:9",
        generate_audio=True,
    ),
)


@click.command(params=[JSON, *WAITING, *CONNECTION])
@click.option(
    "--out",
    metavar="DIR",
    default="muybridge-demo",
    show_default=True,
    help="Folder for the picture and the video.",
)
@click.option(
    "--real",
    is_flag=True,
    help=f"Use the real service, with {KEY_VARIABLE} and {BASE_URL_VARIABLE}. It costs money.",
)
@pass_invocation
def demo(invocation: Invocation, out: str, *, real: bool) -> None:
    """Make a picture and a video, and show each step on the way.

    It uses the local service: no key, no cost. Whatever the prompt says, it draws a galloping
    horse. With --real the same steps go to the real service.

    With --json: {ok, results: [{task, result, expires_at, path}]}.
    """
    connection = invocation.connection
    if real:
        _check_real(connection)
    elif connection.base_url is not None or connection.api_key_file is not None:
        raise click.UsageError("--base-url and --api-key-file need --real, which costs money")
    folder = out if out.endswith("/") else f"{out}/"
    check_target(folder, "--out")
    invocation.choose(local=not real, output=folder)
    with invocation.client() as client:
        where = "the real service" if real else "the local service, started on this machine"
        invocation.progress.say(f"1. {client!r} talks to {where}")
        results = [
            _make(invocation, client, request, number)
            for number, request in enumerate(REQUESTS, start=2)
        ]
    if invocation.presentation.json:
        invocation.print_document(results=results)
    else:
        for result in results:
            answer_path(result["path"])
    if not real:
        invocation.progress.say(_hint())


def _make(
    invocation: Invocation, client: Client, request: MediaRequest, number: int
) -> dict[str, Any]:
    invocation.progress.say(f"{number}. {_source(request)}")
    timeout = invocation.connection.wait_timeout
    invocation.note(pays=True)
    return generation_record(save(invocation, generation.run, client, request, timeout=timeout))


def _source(request: MediaRequest) -> str:
    """Return the Python that makes *request*."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in request.__rich_repr__())
    return f"{type(request).__name__}({arguments})"


def _check_real(connection: Connection) -> None:
    missing = [
        name
        for name, given in (
            (KEY_VARIABLE, connection.api_key_file),
            (BASE_URL_VARIABLE, connection.base_url),
        )
        if given is None and not os.environ.get(name)
    ]
    if missing:
        raise click.UsageError(f"--real needs {' and '.join(missing)}. Nothing was sent.")


def _hint() -> str:
    missing = [name for name in (KEY_VARIABLE, BASE_URL_VARIABLE) if not os.environ.get(name)]
    needed = f"set {' and '.join(missing)}, then run" if missing else "run"
    return f"with the real service (this costs money): {needed} muybridge demo --real"
