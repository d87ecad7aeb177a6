"""Purchases under names: `create_once`, with a budget, in a store that is new.

The program has just made a folder above the store's, and has not synced its name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from muybridge import Budget, Client, CreateAmbiguous, ImgbRequest, Refused, Task
from muybridge.purchases import Purchase, State, open_store

from .service import Note, Response, Service, silent

RESPONSES: Final = {
    "lost roan": (Response.LOST,),
    "refused grey": (Response.REFUSED,),
    "late dun": (Response.THROTTLED, Response.ACCEPTED),
}
HORSES: Final = ("bay", *RESPONSES, "pinto")
BUDGET: Final = 3 * len(HORSES)
"""Creates that are allowed: enough for a caller who pays twice."""
LOST: Final = 1
"""Requests whose response is lost, which are ambiguous without a power cut, too."""

Buy = Callable[[Client, str, ImgbRequest], Task]
"""Buys a picture under a name."""


def once(client: Client, name: str, request: ImgbRequest) -> Task:
    """Buy as the library's users do."""
    return client.create_once(name, request)


def naively(client: Client, name: str, request: ImgbRequest) -> Task:
    """Buy as a program does that retries whatever has failed."""
    try:
        return client.create_once(name, request)
    except CreateAmbiguous:
        return client.create(request)


class Names:
    """Buys five pictures under names, and asks for the first one again.

    Args:
        buy: How the program buys after a power cut.
    """

    name: ClassVar[str] = "names"
    deaths: ClassVar[tuple[int, ...]] = ()
    is_steady: ClassVar[bool] = True

    def __init__(self, buy: Buy = once) -> None:
        self._buy = buy

    def service(self, note: Note = silent) -> Service:
        return Service(RESPONSES, note)

    def run(self, service: Service, root: Path) -> None:
        _store(root).parent.parent.mkdir(exist_ok=True)  # as programs do, without syncing it
        with _client(service, root) as client:
            for horse in (*HORSES, HORSES[0]):
                with contextlib.suppress(CreateAmbiguous, Refused):
                    task = once(client, f"order {horse}", _request(horse))
                    service.mark(f"told {task.id} {horse}")

    def found(self, service: Service, root: Path) -> list[str]:  # noqa: ARG002  there are no files
        return []

    def resume(self, service: Service, root: Path) -> list[str]:
        wrong: list[str] = []
        with _client(service, root) as client:
            for horse in HORSES:
                try:
                    outcome: object = self._buy(client, f"order {horse}", _request(horse))
                except (CreateAmbiguous, Refused) as error:
                    outcome = error
                wrong += _judge(service, horse, outcome)
        states = [one.state for one in _purchases(root)]
        if states.count(State.AMBIGUOUS) > 1 + LOST + len(self.deaths):
            wrong.append(f"{states.count(State.AMBIGUOUS)} requests are ambiguous")
        paid = sum(map(len, service.accepted.values()))
        counted = sum(state is not State.RELEASED for state in states)
        if not paid <= counted <= BUDGET:
            wrong.append(f"the store counts {counted} creates, and {paid} were paid for")
        if State.ARMED in states:
            wrong.append("a request is still on its way")
        return wrong

    def recorded(self, root: Path) -> set[str]:
        return {one.task for one in _purchases(root) if one.task is not None}


class NamesAgain(Names):
    """Is killed while a create is under way, and repeats all purchases in another process."""

    name: ClassVar[str] = "names-again"
    deaths: ClassVar[tuple[int, ...]] = (1,)


def _judge(service: Service, horse: str, outcome: object) -> list[str]:
    """Return what is wrong with the outcome of a purchase."""
    paid, told = service.accepted[horse], service.told.get(horse)
    if len(paid) > 1:
        return [f"{horse} was paid for twice"]
    match outcome:
        case Task(id=task) if [task] == paid and told in (None, task):
            return []
        case CreateAmbiguous() if told is None:
            return []
        case Refused() if not paid and RESPONSES.get(horse) == (Response.REFUSED,):
            return []
        case _:
            return [f"{horse} ended with {outcome!r}; paid for: {paid}, told: {told}"]


def _client(service: Service, root: Path) -> Client:
    return service.client(budget=Budget(creates=BUDGET), store=_store(root))


def _purchases(root: Path) -> list[Purchase]:
    store = open_store(_store(root))
    store.sweep()
    return [*store.purchases()]


def _store(root: Path) -> Path:
    return root / "state" / "stable" / "store.sqlite3"


def _request(horse: str) -> ImgbRequest:
    return ImgbRequest(model="imgb-2", prompt=horse)
