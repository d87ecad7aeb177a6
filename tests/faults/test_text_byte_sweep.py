"""Case 15 for text: an answer cut off after every byte of it is never taken for a whole one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from muybridge import MuybridgeError
from transport.scripted_server import Peer

from .cells import Surroundings
from .clients import DRIVERS
from .hostile_server import HostileServer, good_reply
from .operations import OK, OPERATIONS, Setting
from .rows import TEXTS, Certificate

LINES = {
    "text": b"POST /v1/models/textg-2.5-pro:generateContent HTTP/1.1\r\n",
    "text stream": b"POST /v1/models/textg-2.5-pro:streamGenerateContent HTTP/1.1\r\n",
    "messages stream": b"POST /v1/messages HTTP/1.1\r\n",
}
REPLIES = {name: good_reply(line, "") for name, line in LINES.items()}
SEED = 20261121
STEP = 29

each = pytest.mark.parametrize(
    ("name", "driver", "scheme", "end"),
    list(itertools.product(TEXTS, DRIVERS, ["http", "https"], ["FIN", "RST"])),
)


def _outcome(call: Callable[[], Any]) -> tuple[MuybridgeError | None, Any]:
    try:
        return None, call()
    except MuybridgeError as error:
        return error, None


def sweep(
    around: Surroundings, driver: str, scheme: str, end: str, name: str, cuts: list[int]
) -> None:
    """Cut one answer after the other; each is whole or says it is not, and is paid for once."""
    reply = REPLIES[name]
    head = reply.index(b"\r\n\r\n") + 4
    whole = 0
    cut = 0

    def act(peer: Peer) -> None:
        peer.read_request()
        peer.send(reply[:cut])
        if end == "RST":
            peer.reset()

    tls = around.contexts[Certificate.GOOD]
    with (
        ExitStack() as closing,
        HostileServer(on_request=act, scheme=scheme, tls=tls) as server,
    ):
        driven = DRIVERS[driver](closing, around.trust)(server.url)
        setting = Setting(
            url=server.url, folder=Path(), task="", link=None, prompt="a horse", patience=20.0
        )
        for count, cut in enumerate(cuts, 1):
            operation = OPERATIONS[name]
            error, answer = _outcome(partial(operation.run, driven, setting))
            if error is None:
                whole += 1
                assert operation.told(answer) == OK, f"a text cut at {cut} was taken for whole"
            else:
                begun = name != "text" and cut >= head
                expected = ["StreamInterrupted" if begun else "TextAmbiguous"]
                if end == "RST":
                    expected.append("TextAmbiguous")  # it may overtake the head
                assert type(error).__name__ in expected, cut
                assert cut < len(reply)
            assert server.paid == count, "a text was asked for twice, or not at all"
    assert whole >= (cuts[-1] == len(reply))


@each
def test_sample_of_cuts(
    around: Surroundings, name: str, driver: str, scheme: str, end: str
) -> None:
    """Of a sample of cuts, and of those at the answer's end, none makes a text of a part."""
    whole = len(REPLIES[name])
    source = random.Random(f"{SEED} {name} {driver} {scheme} {end}")  # noqa: S311  cuts, not secrets
    sample = {at + source.randrange(STEP) for at in range(0, whole - STEP, STEP)}
    sweep(around, driver, scheme, end, name, sorted({*sample, *range(whole - 4, whole)}))


@pytest.mark.nightly
@each
def test_every_cut(around: Surroundings, name: str, driver: str, scheme: str, end: str) -> None:
    """No cut at any other byte does so either."""
    whole = len(REPLIES[name])
    sweep(around, driver, scheme, end, name, list(range(whole + (end == "FIN"))))
