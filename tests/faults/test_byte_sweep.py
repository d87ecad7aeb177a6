"""Case 15: the response to a create, cut off after every byte of it, by an end and by a reset."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

from client.requests_made import image
from muybridge import CreateAmbiguous
from muybridge_protocol.records.tasks import Task
from transport.scripted_server import Peer

from .cells import Surroundings
from .clients import DRIVERS
from .hostile_server import TASK_ID, HostileServer, good_reply
from .rows import Certificate

WHOLE = good_reply(b"POST /v1/imga/images HTTP/1.1\r\n", "")
ID_TOLD = WHOLE.index(TASK_ID.encode()) + len(TASK_ID) + 1
"""Bytes after which the id and its closing quote have been sent."""
SEED = 20261121
STEP = 7


def sweep(
    around: Surroundings, driver: str, scheme: str, end: str, cuts: list[int]
) -> tuple[int, int]:
    """Cut one response after the other, and return how many ids came in time, and were told."""
    sent = told = 0
    cut = 0

    def act(peer: Peer) -> None:
        peer.read_request()
        peer.send(WHOLE[:cut])
        if end == "RST":
            peer.reset()

    tls = around.contexts[Certificate.GOOD]
    with (
        ExitStack() as closing,
        HostileServer(on_request=act, scheme=scheme, tls=tls) as server,
    ):
        client = DRIVERS[driver](closing, around.trust)(server.url).client
        for count, cut in enumerate(cuts, 1):
            learnt: str | None
            try:
                task = client.create(image())
            except CreateAmbiguous as error:
                learnt = error.candidate_id
                # A reset overtakes what was sent before it, or does not.
                whole = cut >= ID_TOLD if end == "FIN" else b'"%s"' % TASK_ID.encode() in error.raw
                assert learnt == (TASK_ID if whole else None)
            else:
                assert cut == len(WHOLE)
                assert isinstance(task, Task)
                learnt, whole = task.id, True
                assert learnt == TASK_ID
            sent += whole
            told += learnt is not None
            assert server.paid == count, "a create was accepted twice, or not at all"
    return sent, told


@pytest.mark.parametrize("end", ["FIN", "RST"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_sample_of_cuts(around: Surroundings, driver: str, scheme: str, end: str) -> None:
    """Of a sample of cuts, and of those around the id, each costs one create and loses no id."""
    source = random.Random(f"{SEED} {driver} {scheme} {end}")  # noqa: S311  cuts, not secrets
    sample = {at + source.randrange(STEP) for at in range(0, len(WHOLE) - STEP, STEP)}
    edges = {0, ID_TOLD - 1, ID_TOLD, len(WHOLE) - 1, len(WHOLE)}
    sent, told = sweep(around, driver, scheme, end, sorted(sample | edges))
    assert sent == told


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["FIN", "RST"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_every_cut(around: Surroundings, driver: str, scheme: str, end: str) -> None:
    """Wherever the response is cut off, it costs one create, and an id that came is reported."""
    sent, told = sweep(around, driver, scheme, end, list(range(len(WHOLE) + 1)))
    assert sent == told
    assert end == "RST" or sent == len(WHOLE) + 1 - ID_TOLD
