"""Names for what happens within the library: the only file of the tests that knows private code.

A test strikes, kills, interrupts or watches at a moment, and says which one by its name. If the
code moves, this table follows it, and no test does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

import attrs


def _always(*_: object, **__: object) -> bool:
    return True


@attrs.frozen
class Moment:
    """A call of a function.

    Args:
        function: Which one, as `pkgutil.resolve_name` finds it.
        when: Whether a call with these arguments counts.
        skipped: How many calls that count come before that one.
        other: Another call that may come at this moment instead, or None.
    """

    function: str
    when: Callable[..., bool] = _always
    skipped: int = 0
    other: Moment | None = None

    @property
    def place(self) -> tuple[Any, str]:
        """What has the function, and its name there: the arguments of `getattr`."""
        path, _, name = self.function.rpartition("." if "." in self._within else ":")
        return resolve_name(path), name

    @property
    def _within(self) -> str:
        return self.function.partition(":")[2]

    @property
    def value(self) -> Any:
        """The function as it is now."""
        return getattr(*self.place)

    def strike(
        self,
        act: Callable[[], object],
        *,
        after: bool = False,
        put: Callable[[Any, str, Any], None] = setattr,
    ) -> None:
        """Let *act* be called at this moment, again and again.

        Args:
            act: What strikes, in the thread that comes there.
            after: Whether it strikes when the function has returned, and not before.
            put: Replaces the function: `MonkeyPatch.setattr` does it for a while.
        """
        owner, name = self.place
        original = getattr(owner, name)
        left = self.skipped

        def struck(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            counts = self.when(*arguments, **more)
            left -= counts
            strikes = counts and left < 0
            if strikes and not after:
                act()
            returned = original(*arguments, **more)
            if strikes and after:
                act()
            return returned

        put(owner, name, struck)
        if self.other is not None:
            self.other.strike(act, after=after, put=put)


def _to(stage: str) -> Callable[..., bool]:
    def when(_store: object, _item: object, after: str, **_: object) -> bool:
        return after == stage

    return when


def _until_a_moment(_team: object, until: float = float("inf")) -> bool:
    return until < float("inf")


def _is_post(_socket: object, data: bytes | memoryview, *_: object) -> bool:
    return bytes(data[:5]) == b"POST "


def _is_picture(_source: object, target: object) -> bool:
    return str(target).endswith(".png")


_HTTP1 = "muybridge.wire.http1"
_TRIO = "muybridge.wire.trio_transport:TrioStream"
_BLOCKS = "muybridge.wire.http1.blocking:BlockingStream"
_ASYNCIO = "muybridge.wire.asyncio_transport:AsyncioStream"
_ON_TRIO = "muybridge.drivers.on_trio"
_ON_ASYNCIO = "muybridge.drivers.on_asyncio"
_BLOCKING = "muybridge.drivers.blocking"
_STORE = "muybridge.purchases.store:Store"
_BATCH = "muybridge.batch.items.batch:Batch"
_PART = "muybridge.files.saving:PartFile"
_FILES = "muybridge.batch.running.side_files"
_RUNNER = f"{_FILES}:Runner"


def _async(trio: Moment, asyncio: Moment | None = None) -> Mapping[str, Moment]:
    return {"trio": trio, "asyncio": asyncio or trio}


MOMENTS: Mapping[str, Moment | Mapping[str, Moment]] = {
    # An exchange, under each driver.
    "preparation": Moment("muybridge.wire.network:Network.find"),
    "within urllib3": Moment("urllib3:Timeout.start_connect"),
    "lookup": {
        "requests": Moment("socket:getaddrinfo"),
        **_async(Moment(f"{_HTTP1}.connections:numeric_addresses")),
    },
    "connect": {
        "requests": Moment("socket:socket.connect"),
        **_async(Moment(f"{_HTTP1}.connections:first_that_answers")),
    },
    "handshake": Moment(f"{_HTTP1}.tls:TLSStream.handshake"),
    "before the first byte": Moment(f"{_HTTP1}.connections:Connection.refuse_early_bytes"),
    "first byte": {
        "requests": Moment("socket:socket.send"),
        **_async(Moment(f"{_TRIO}.send"), Moment(f"{_ASYNCIO}.send")),
    },
    "sending": Moment("socket:socket.send", _is_post),
    "exchange": Moment("muybridge.wire.exchange:Exchange.begin"),
    "no response yet": {
        "requests": Moment(f"{_BLOCKS}.receive"),
        **_async(Moment(f"{_TRIO}.receive"), Moment(f"{_ASYNCIO}.receive")),
    },
    "wait for bytes": {"trio": Moment(f"{_TRIO}.wait_readable")},
    "bytes from a socket": Moment(f"{_HTTP1}.socket_stream:SocketStream.receive"),
    "head": {
        "requests": Moment(f"{_BLOCKS}.receive", skipped=1),
        **_async(Moment(f"{_TRIO}.receive", skipped=1), Moment(f"{_ASYNCIO}.receive", skipped=1)),
    },
    "body": {
        "requests": Moment(f"{_BLOCKS}.receive", skipped=1),
        **_async(Moment(f"{_TRIO}.receive", skipped=1), Moment(f"{_ASYNCIO}.receive", skipped=1)),
    },
    "body, before its first piece": Moment(f"{_HTTP1}.response_reader:ResponseReader.read"),
    "response taken": Moment("muybridge_protocol.operations.create:Create.receive"),
    "asleep": {
        "requests": Moment(
            "muybridge.clock:SystemClock.sleep",
            other=Moment(f"{_BLOCKING}:BlockingTeam.wait", _until_a_moment),
        ),
        "trio": Moment(
            "trio:sleep_until", other=Moment(f"{_ON_TRIO}:TrioTeam.wait", _until_a_moment)
        ),
        "asyncio": Moment(
            f"{_ON_ASYNCIO}:AsyncioRuntime.sleep_until",
            other=Moment(f"{_ON_ASYNCIO}:AsyncioTeam.wait", _until_a_moment),
        ),
    },
    "poll": {
        "requests": Moment("muybridge:RequestsTransport.stream", skipped=1),
        "trio": Moment("muybridge:TrioTransport.stream", skipped=1),
        "asyncio": Moment("muybridge:AsyncioTransport.stream", skipped=1),
    },
    "download": Moment(f"{_PART}.write"),
    "next chunk of a text": Moment("muybridge.drivers.text_calls:AsyncTextStream._next_chunk"),
    "socket opened": Moment(f"{_HTTP1}.socket_stream:open_socket"),
    "proxy chosen": Moment("muybridge.wire._environment:proxy_for"),
    "host looked at for a proxy": Moment("muybridge.wire._environment:is_loopback"),
    "error of a broken exchange chosen": Moment("muybridge.wire._network_errors:network_error"),
    "lines of a stream joined": Moment("muybridge_protocol.text.stream_parser:_Objects.feed"),
    "client bound to a loop": Moment("muybridge.async_client:AsyncClient._bind"),
    # A store of purchases.
    "file of SQLite created": Moment("muybridge.files.sqlite:create"),
    "store checked": Moment("muybridge.purchases.sqlite:SqliteDatabase._check"),
    "enlisted": Moment("muybridge.purchases.owners:Owners._enlist"),
    "summed up": Moment("muybridge.purchases.steps:_Sums.spent"),
    "row written": Moment("muybridge.purchases.steps:written"),
    "name looked up": Moment("muybridge.purchases.booking:Books.named"),
    "name looked up in the store": Moment(f"{_STORE}.named"),
    "owner locked": Moment("muybridge.purchases.owners:lock"),
    "transaction begun": Moment(f"{_STORE}.transaction"),
    "purchase armed": Moment(f"{_STORE}.arm"),
    "purchase about to be sent": Moment("muybridge.purchases.booking:seconds_awake_or_asleep"),
    "verdict booked": Moment("muybridge.purchases.booking:Booking.judge"),
    "verdict recorded": Moment(f"{_STORE}.conclude"),
    # A batch.
    "store linked": Moment("os:link"),
    "batch recorded in its folder": Moment("muybridge.batch.items.folder:Record.write"),
    "runner begun": Moment(f"{_RUNNER}.__enter__"),
    "runner locked": Moment(f"{_FILES}:lock"),
    "side file made": Moment(f"{_RUNNER}.new_slot"),
    "worker registered": Moment(f"{_STORE}.register"),
    "item moved": Moment(f"{_STORE}.move"),
    "items taken": Moment(f"{_BATCH}.take"),
    "permits taken": Moment(f"{_STORE}.acquire_permits"),
    "rate paused": Moment(f"{_STORE}.throttle"),
    "response kept": Moment(f"{_FILES}:ResponseSlot.keep"),
    "side file emptied": Moment(f"{_FILES}:ResponseSlot.clear"),
    "object put": Moment("muybridge.batch.results.places.s3:Bucket.put"),
    "sidecar written": Moment("muybridge.batch.running.scheduler:write_sidecar_of"),
    "target locked": Moment("muybridge.files.saving:lock"),
    "bytes saved": Moment("muybridge.files.saving:write_all"),
    "piece saved": Moment(f"{_PART}.write"),
    "file finished": Moment(f"{_PART}.finish"),
    "file linked": Moment("os:link", _is_picture),
    "file named": Moment("muybridge.batch.results.places.file_names:sync_folders"),
    "download recorded": Moment(f"{_STORE}.move", _to("downloaded")),
    "items freed": Moment(f"{_STORE}.free_items"),
    "items released": Moment(f"{_BATCH}.release"),
    "runner ended": Moment(f"{_RUNNER}.__exit__"),
    "request checked": Moment("muybridge_protocol.families.family:Family.check"),
    "figure shown": Moment("muybridge.batch.results.sheet.contact_sheet:figure"),
    "sheet written": Moment("muybridge.batch.results.sheet.contact_sheet:write_sheet"),
    "refusal of a bucket judged": Moment("muybridge.batch.results.places.s3:S3Store._unusable"),
    "result told to an agent": Moment("muybridge.mcp.tools:_done"),
    # Runs of many tasks.
    "team of threads run": Moment(f"{_BLOCKING}:BlockingTeam.run"),
    "team of threads started": Moment(f"{_BLOCKING}:BlockingTeam.start"),
    "wait for paid requests announced": Moment(f"{_BLOCKING}:tell"),
    "team of trio tasks closed": Moment(f"{_ON_TRIO}:TrioTeam.close"),
    "team of asyncio tasks closed": Moment(f"{_ON_ASYNCIO}:AsyncioTeam.close"),
    "fleet told of a response": Moment("muybridge_protocol.fleet:Fleet.receive"),
    "permits wanted": Moment("muybridge_protocol.fleet:Fleet.wanted_permits"),
    # The emulator.
    "request routed": Moment("muybridge_protocol.emulator:Emulator._answer"),
}
"""Each moment, or, where drivers or stores come to it in code of their own, what it is for each."""


def at(name: str, under: str = "") -> Moment:
    """Return the moment *name*, under the driver or in the store *under*, where they differ."""
    found = MOMENTS[name]
    return found if isinstance(found, Moment) else found[under]


def steps(*names: str) -> list[str]:
    """Return the steps before and after each moment, such as `after: response kept`."""
    return [f"{word}: {name}" for name in names for word in ("before", "after")]


def strike_at(step: str, under: str, act: Callable[[], object], *, nth: int = 1) -> None:
    """Let *act* be called at the *nth* time that this process comes to *step*, and from then on."""
    word, _, name = step.partition(": ")
    moment = attrs.evolve(at(name, under), skipped=nth - 1)
    moment.strike(act, after={"before": False, "after": True}[word])


CONSTANTS: Mapping[str, str] = {
    "purchases read at once": "muybridge.purchases.store:_PAGE",
    "pause before a name is looked up again": "muybridge.purchases.joining:_PAUSE",
    "shortest pause of a worker": "muybridge.batch.running.worker:_SHORTEST_PAUSE",
    "sidecars written at once": "muybridge.batch.results.sidecars:_AT_ONCE",
    "results looked for": "muybridge.batch.results.missing_files:MOST_LOOKED_FOR",
    "names tried in a bucket": "muybridge.batch.results.places.s3:_NAMES",
    "largest object": "muybridge.batch.results.places.s3:_LARGEST",
    "what begins a transaction": "muybridge.purchases.postgres:_BEGIN",
    "patience with BEGIN": "muybridge.purchases.postgres:_ANSWERS",
    "patience with a database": "muybridge.purchases.postgres:PATIENCE",
    "silence of a database": "muybridge.purchases.postgres_connections:SILENCE",
    "settings of a connection": "muybridge.purchases.postgres_connections:LIMITS",
    "longest idle time": "muybridge.wire.network:LONGEST_IDLE",
    "converter of records": "muybridge_protocol.records.convert:_converter",
    "variables that name authorities": "muybridge.wire._environment:CA_VARIABLES",
    "interrupted tasks kept": "muybridge.drivers.notes:KEPT",
    "interrupted tasks named": "muybridge.drivers.notes:_TOLD",
}
"""Constants that are replaced with smaller ones, or with wrong ones."""


def struck_after(moment: str, skipped: int, act: Callable[[], object]) -> None:
    """Let *act* be called at a moment, once it has come *skipped* times."""
    attrs.evolve(at(moment), skipped=skipped).strike(act)


def constant(name: str) -> tuple[Any, str]:
    """Return what has the constant *name*, and its name there: the arguments of `getattr`."""
    return Moment(CONSTANTS[name]).place


def driver_of(client: Any) -> object:
    """Return the driver of an asynchronous client, which it makes when it is first used."""
    return client._driver


def connection_of(store: Any) -> Any:
    """Return the connection of a store to its database, with which it writes."""
    return store.database._writing._db


def spans_under_way(tracing: Any) -> object:
    """Return the spans that *tracing* has begun and not ended."""
    return tracing._open


def left_in(fleet: Any) -> list[object]:
    """Return what *fleet* knows of operations, even of those that have ended."""
    return [*fleet._keys, *fleet._turns.members()]


def run_on(suite: Any, thread: object) -> None:
    """Let a conformance suite use the event loop in *thread*, as its fixture does."""
    suite._thread = thread
