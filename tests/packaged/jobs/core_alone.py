"""Import the whole core, and run a task of each model with it, against its emulator.

Nothing has to be installed for it but attrs and cattrs. Nothing is sent, and time is a number.
"""

import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import muybridge_protocol
from muybridge_protocol.emulator import Access, Emulator, ServiceRequest
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.examples import examples
from muybridge_protocol.operations import Create, Operation, Poll, Send, Wait
from muybridge_protocol.service import Service

BASE_URL = "http://127.0.0.1:8000"
HEADERS = (("Authorization", "Bearer key"), ("Content-Type", "application/json"))

service = Service(base_url=BASE_URL)
emulator = Emulator(keys={"key": Access()}, public_url=BASE_URL)


class Driver:
    """Performs what operations ask for, with a clock that it sets itself."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.sent = 0

    def run(self, kind: Any, what: object) -> Any:
        """Start an operation with *what*, and return what it ends with."""
        operation: Operation[Any] = kind.start(
            what, service, now=self.now, wall=self.now, seed=self.sent
        )
        while True:
            match operation.next_action(now=self.now):
                case Wait(until):
                    self.now = until
                case Send(request):
                    self.sent += 1
                    path = urlsplit(request.url).path
                    call = ServiceRequest(request.method, path, HEADERS, request.body or b"")
                    response = emulator.handle(call, now=self.now, new_id=f"task-{self.sent}")
                    operation = operation.receive(response, now=self.now)
                case settled:
                    return settled.unwrap()


def modules() -> Iterator[str]:
    """Import every module of the core, and yield its name."""
    for module in pkgutil.walk_packages(muybridge_protocol.__path__, "muybridge_protocol."):
        import_module(module.name)
        yield module.name


driver = Driver()
statuses: list[str] = []
for family in FAMILIES.values():
    for body in examples(family).values():
        task = driver.run(Create, family.request.from_body(body))
        statuses.append(str(driver.run(Poll, task).status))
loaded = len(list(modules()))
others = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(f"{loaded} modules, {len(statuses)} tasks, {set(statuses)}")
print(*sorted(others & {"attr", "cattrs", "muybridge", "requests", "trio", "click", "httptools"}))
