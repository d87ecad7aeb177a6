"""What a driver promises to the code that drives an operation step by step."""

from __future__ import annotations

import pytest

from muybridge.credentials import Credentials
from muybridge.drivers.blocking import BlockingRuntime, BlockingTransport, run
from muybridge.drivers.calls import Calls
from muybridge.drivers.driver import Drive, Driver
from muybridge.drivers.listeners import Listeners
from muybridge_protocol.operations import Create
from muybridge_protocol.service import Service

from .in_process import KEY, InProcessTransport, World
from .requests_made import image


def test_an_operation_under_way_has_no_outcome(world: World) -> None:
    """Only an operation without steps left has an outcome; before, asking for it is an error."""
    service = Service(base_url=world.url)
    calls = Calls(service=service, timeout=5, poll_interval=None)
    driver = Driver(
        BlockingTransport(InProcessTransport(world)),
        Credentials(KEY, service),
        Listeners(None, None),
        BlockingRuntime(world.clock),
        calls.next_polls,
    )
    create = Create.start(image(), service, now=0.0, wall=0.0, seed=0)
    drive = Drive(driver, create)
    with pytest.raises(RuntimeError, match="the operation is still under way"):
        drive.outcome()
    while run(drive.step):
        with pytest.raises(RuntimeError, match="the operation is still under way"):
            drive.outcome()
    (record,) = world.seen
    assert record.method == "POST"
    assert drive.outcome().id
