"""What is mutated, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass

_CORE = "muybridge_protocol"
_BATCH = "muybridge.batch"


@dataclass(frozen=True)
class Group:
    """Modules, and the tests that are to kill their mutants.

    Args:
        name: What the group is called.
        modules: What is mutated.
        tests: What pytest runs; of these, the tests that execute the line of a mutant.
        sample: Of each module at most so many mutants are tried, other ones each day, where
            trying all would take a night; or None for all.
        database: Whether the tests need PostgreSQL. All trials then share one server.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    sample: int | None = None
    database: bool = False


_DELIVERY = ("tests/core/test_delivery_tables.py", "tests/core/test_delivery.py")
_PAID = ("tests/core/test_create.py", "tests/core/test_delivery.py", "tests/core/test_misuse.py")

_ALL = (
    Group("delivery", (f"{_CORE}.delivery",), _DELIVERY),
    Group("create", (f"{_CORE}.operations.create", f"{_CORE}.operations.call"), _PAID),
    Group("paid", (f"{_CORE}.operations.paid",), _PAID),
    Group(
        "download",
        (f"{_CORE}.operations.download", f"{_CORE}.operations.ranges"),
        ("tests/core/test_download.py", "tests/core/test_misuse.py", "tests/core/test_delivery.py"),
    ),
    Group(
        "text",
        (f"{_CORE}.operations.text",),
        (
            "tests/core/test_text_operations.py",
            "tests/core/test_misuse.py",
            "tests/client/test_text_money.py",
        ),
    ),
    Group(
        "fleet",
        (f"{_CORE}.fleet.fleet",),
        (
            "tests/core/test_misuse.py",
            "tests/core/test_fleet.py",
            "tests/core/test_fleet_permits.py",
            "tests/core/test_fleet_unsent.py",
            "tests/core/test_outages.py",
        ),
    ),
    Group(
        "limits",
        (f"{_CORE}.fleet.allowance", "muybridge.purchases.rates"),
        ("tests/core/test_allowance.py", "tests/batch/test_rate.py"),
    ),
    Group("credentials", ("muybridge.credentials",), ("tests/client/test_credentials.py",)),
    Group(
        "pacing",
        (
            f"{_CORE}.operations.poll",
            f"{_CORE}.operations.next_polls",
            f"{_CORE}.fleet.throttle",
        ),
        (
            "tests/core/test_poll_pacing.py",
            "tests/core/test_delivery.py",
            "tests/core/test_misuse.py",
            "tests/core/test_next_polls.py",
            "tests/core/test_throttle.py",
        ),
    ),
    Group(
        "rules",
        (
            f"{_CORE}.rules.values",
            f"{_CORE}.rules.relations",
            f"{_CORE}.families.field",
            f"{_CORE}.families.family",
        ),
        ("tests/families", "tests/estimates", "tests/media/test_inline.py"),
    ),
    Group(
        "media",
        (
            f"{_CORE}.rules.media",
            f"{_CORE}.rules.media_conditions",
            f"{_CORE}.operations.inspect",
        ),
        (
            "tests/media/test_rules.py",
            "tests/media/test_lengths_and_sizes.py",
            "tests/core/test_inspection.py",
        ),
    ),
    Group(
        "estimates",
        (
            f"{_CORE}.estimates.estimate",
            f"{_CORE}.estimates.price_entry",
            f"{_CORE}.estimates.price_file",
            f"{_CORE}.estimates.price_list",
            f"{_CORE}.estimates.prices",
            f"{_CORE}.estimates.quantities",
            f"{_CORE}.estimates.totals",
            f"{_CORE}.estimates.units",
        ),
        ("tests/estimates", "tests/families"),
    ),
    Group(
        "purchases",
        (
            f"{_CORE}.purchases.amounts",
            f"{_CORE}.purchases.budget",
            f"{_CORE}.purchases.items",
            f"{_CORE}.purchases.purchase",
            f"{_CORE}.purchases.verdict",
            "muybridge.purchases.items",
            "muybridge.purchases.lists",
            "muybridge.purchases.sqlite",
            "muybridge.purchases.steps",
            "muybridge.purchases.store",
            "muybridge.purchases.turns",
        ),
        (
            "tests/batch/test_decision_table.py",
            "tests/cli/test_limits.py",
            "tests/cli/test_purchases.py",
            "tests/purchases",
            "tests/verbs/test_money.py",
        ),
        sample=30,
        database=True,
    ),
    Group(
        "booking",
        (
            "muybridge.purchases.booking",
            "muybridge.purchases.environment",
            "muybridge.purchases.joining",
            "muybridge.purchases.once",
            "muybridge.purchases.owners",
        ),
        (
            "tests/batch/test_decisions.py",
            "tests/batch/test_dedupe.py",
            "tests/batch/test_preflight.py",
            "tests/client/test_attempts.py",
            "tests/client/test_budgets.py",
            "tests/client/test_budgets_cancelled.py",
            "tests/client/test_create_once.py",
            "tests/client/test_history.py",
            "tests/client/test_store_file.py",
            "tests/client/test_run_all_dedupe.py",
            "tests/client/test_shared_tasks.py",
            "tests/client/test_tags.py",
            "tests/purchases/test_environment.py",
            "tests/purchases/test_files.py",
            "tests/purchases/test_late_and_forked.py",
        ),
        sample=40,
        database=True,
    ),
    Group(
        "driver",
        (
            "muybridge.drivers.driver",
            "muybridge.drivers.blocking",
            "muybridge.drivers.on_trio",
            "muybridge.drivers.on_asyncio",
            "muybridge.drivers.fleet_run",
            "muybridge.drivers.fleet_team",
            "muybridge.wire.asyncio_shields",
            "muybridge.files.downloads",
            "muybridge.media.checking",
        ),
        (
            "tests/asyncio_client/test_abandoned.py",
            "tests/asyncio_client/test_cancellation.py",
            "tests/asyncio_client/test_closed_coroutines.py",
            "tests/asyncio_client/test_ctrl_c.py",
            "tests/asyncio_client/test_runtime.py",
            "tests/asyncio_client/test_shut_down_threads.py",
            "tests/batch/test_interruptions.py",
            "tests/client/test_alarms.py",
            "tests/client/test_attempts.py",
            "tests/client/test_budgets.py",
            "tests/client/test_budgets_cancelled.py",
            "tests/client/test_cancellation.py",
            "tests/client/test_check.py",
            "tests/client/test_closed.py",
            "tests/client/test_create_once.py",
            "tests/client/test_downloads.py",
            "tests/client/test_driver.py",
            "tests/client/test_event_loops.py",
            "tests/client/test_fleet_run.py",
            "tests/client/test_history.py",
            "tests/client/test_interrupted_tasks.py",
            "tests/client/test_interrupts.py",
            "tests/client/test_key.py",
            "tests/client/test_lifecycle.py",
            "tests/client/test_money.py",
            "tests/client/test_not_requests.py",
            "tests/client/test_observations.py",
            "tests/client/test_pace.py",
            "tests/client/test_read.py",
            "tests/client/test_requests_by_name.py",
            "tests/client/test_robustness.py",
            "tests/client/test_run_all.py",
            "tests/client/test_run_all_async.py",
            "tests/client/test_run_all_dedupe.py",
            "tests/client/test_run_all_unentered.py",
            "tests/client/test_runtimes.py",
            "tests/client/test_save.py",
            "tests/client/test_scopes.py",
            "tests/client/test_shared_tasks.py",
            "tests/client/test_stopping_listeners.py",
            "tests/client/test_tags.py",
            "tests/client/test_text_cut_streams.py",
            "tests/client/test_text_interrupts.py",
            "tests/client/test_text_streams.py",
            "tests/client/test_waiting.py",
            "tests/client/test_wrong_arguments.py",
            "tests/testing/test_building.py",
            "tests/transport/test_asyncio_transport.py",
            "tests/trio_client/test_cancellation.py",
            "tests/trio_client/test_ctrl_c.py",
            "tests/trio_client/test_scopes.py",
            "tests/trio_client/test_text_cancellation.py",
        ),
        sample=20,
        database=True,
    ),
    Group(
        "transports",
        (
            "muybridge.wire.exchange",
            "muybridge.wire.responses",
            "muybridge.wire.building",
            "muybridge.wire.requests_transport",
            "muybridge.wire.http1.blocking",
            "muybridge.wire.http1.transport",
            "muybridge.wire.http1.connections",
            "muybridge.wire.http1.response_reader",
            "muybridge.wire.http1.second_response",
            "muybridge.wire.http1.socket_stream",
            "muybridge.wire.http1.tls",
            "muybridge.wire.trio_transport",
            "muybridge.wire.asyncio_transport",
        ),
        (
            "tests/asyncio_client/test_ctrl_c.py",
            "tests/test_public_api.py::test_public_names[muybridge]",
            "tests/testing/test_building.py",
            "tests/testing/test_conformance.py",
            "tests/testing/test_httpx2.py",
            "tests/transport/test_added_fields.py",
            "tests/transport/test_alpn.py",
            "tests/transport/test_asyncio_transport.py",
            "tests/transport/test_connections.py",
            "tests/transport/test_deadlines.py",
            "tests/transport/test_early_bytes.py",
            "tests/transport/test_event_loops.py",
            "tests/transport/test_faults.py",
            "tests/transport/test_proxies.py",
            "tests/transport/test_replies.py",
            "tests/transport/test_response_reader.py",
            "tests/transport/test_secrets.py",
            "tests/transport/test_wires.py",
            "tests/transport/test_async_transports.py",
        ),
        sample=20,
    ),
    Group(
        "batches",
        (
            f"{_BATCH}.items.batch",
            f"{_BATCH}.items.entry",
            f"{_BATCH}.items.folder",
            f"{_BATCH}.items.submission",
            f"{_BATCH}.running.creates",
            f"{_BATCH}.running.recovery",
            f"{_BATCH}.running.side_files",
        ),
        (
            "tests/batch/test_batches.py",
            "tests/batch/test_command.py",
            "tests/batch/test_decision_table.py",
            "tests/batch/test_decisions.py",
            "tests/batch/test_durability.py",
            "tests/batch/test_foreign_files.py",
            "tests/batch/test_items.py",
            "tests/batch/test_judgements.py",
            "tests/batch/test_lookups.py",
            "tests/batch/test_missing_files.py",
            "tests/batch/test_new_folders.py",
            "tests/batch/test_older_copies.py",
            "tests/batch/test_owners.py",
            "tests/batch/test_poison.py",
            "tests/batch/test_preflight.py",
            "tests/batch/test_progress.py",
            "tests/batch/test_runners.py",
            "tests/batch/test_runs.py",
            "tests/batch/test_sheet_pages.py",
            "tests/batch/test_spool.py",
            "tests/batch/test_submissions.py",
            "tests/batch/test_tags.py",
            "tests/batch/test_workers.py",
            "tests/purchases/test_items.py",
        ),
        sample=30,
        database=True,
    ),
    Group(
        "postgres",
        (
            f"{_BATCH}.running.lease",
            "muybridge.purchases.postgres",
            "muybridge.purchases.postgres_connections",
        ),
        (
            "tests/batch/test_connections.py",
            "tests/batch/test_owners.py",
            "tests/batch/test_prepared_statements.py",
            "tests/batch/test_vanished_workers.py",
            "tests/batch/test_workers.py",
            "tests/purchases",
        ),
        sample=40,
        database=True,
    ),
    Group(
        "stores",
        (
            f"{_BATCH}.results.places.file_names",
            f"{_BATCH}.results.places.folder",
            f"{_BATCH}.results.places.opening",
            f"{_BATCH}.results.places.names",
            f"{_BATCH}.results.places.s3",
        ),
        (
            "tests/batch/test_foreign_files.py",
            "tests/batch/test_full_disk.py",
            "tests/batch/test_places.py",
            "tests/batch/test_s3.py",
            "tests/batch/test_stores.py",
            "tests/batch/test_worker_command.py",
        ),
        database=True,
    ),
    Group(
        "decisions",
        (
            f"{_BATCH}.items.decisions",
            f"{_BATCH}.items.decision_table",
            "muybridge.files.tables",
            "muybridge.verbs.decisions",
            "muybridge.verbs.spending",
        ),
        (
            "tests/batch/test_decisions.py",
            "tests/batch/test_decision_table.py",
            "tests/cli/test_purchases.py",
            "tests/verbs/test_money.py",
        ),
        sample=40,
        database=True,
    ),
)

GROUPS = {group.name: group for group in _ALL}

_Key = tuple[str, str, str]
"""A module, a line of it, and the line as a mutant has it."""


def _swapped(module: str, before: str, *changes: tuple[str, str]) -> tuple[_Key, ...]:
    """Return the mutants of the line *before* that have one part of it changed for another."""
    return tuple((module, before, before.replace(old, new, 1)) for old, new in changes)


_NEVER_LESS = "no wait is below nothing, so that at least -1 s is at least 0 s"
_ONE_MATCH = "there is at most one, or the best of them comes first"

_SPELLED = (
    "close = get_close_matches(name.lower(), spelled, n=1) if len(name) <= LONGEST_NAME else []"
)
_CLOSER_LOOK = "it looks more closely where that is not needed, and comes to the same"
_CREDENTIALS = "muybridge.credentials"

_EXCHANGE = "muybridge.wire.exchange"
_BY_REQUESTS = "muybridge.wire.requests_transport"

EQUIVALENT: dict[_Key, str] = {
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.fleet.fleet",
            "if self._allowance.wanted(1, now):",
            ("wanted(1", "wanted(2"),
            ("wanted(1", "wanted(0"),
        ),
        "only whether any are wanted matters, and then at least one is",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.delivery",
            'match [http_date(text, wall or 0.0) for text in _fields(response, "date")]:',
            ("wall or 0.0", "wall or 1.0"),
        ),
        "the year is the same",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.purchases.rates",
            "count = max(1, min(wanted, int(self.rate * PORTION / max(1, sharers))))",
            ("self.rate * PORTION / max", "(self.rate / PORTION) / max"),
        ),
        "a portion lasts a second",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_BATCH}.items.batch", "LEASE: Final = 30.0", ("30.0", "29.0"), ("30.0", "31.0")
            ),
            *_swapped(
                f"{_BATCH}.items.batch", "_PAGE: Final = 500", ("500", "499"), ("500", "501")
            ),
            *_swapped(
                f"{_BATCH}.items.batch", "_LONGEST_NUMBER: Final = 19", ("19", "18"), ("19", "20")
            ),
        ),
        "a second, an item of a page or a digit more or less makes no difference to anybody",
    ),
    **dict.fromkeys(
        (
            *_swapped(f"{_BATCH}.items.batch", "last = 0", ("0", "-1")),
            *_swapped(
                f"{_BATCH}.items.batch",
                "def entries(self, stage: Stage | None = None, *, after: int = 0)"
                " -> Iterator[Entry]:",
                ("after: int = 0", "after: int = -1"),
            ),
        ),
        "the first item has the number 1",
    ),
    **dict.fromkeys(
        (
            *_swapped(f"{_BATCH}.running.lease", "_BEATS: Final = 3", ("3", "2"), ("3", "4")),
            *_swapped(
                f"{_BATCH}.running.lease",
                "self._thread.join(timeout=5) # it may wait for a database that is away",
                ("5", "4"),
                ("5", "6"),
            ),
        ),
        "the lease is renewed in time, and its thread has long ended",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_BATCH}.running.recovery",
                "create = Create.start(request, _ANY, now=0.0, wall=time.time(), seed=0)"
                " # never waits",
                ("now=0.0", "now=1.0"),
                ("now=0.0", "now=-1.0"),
                ("seed=0", "seed=1"),
                ("seed=0", "seed=-1"),
            ),
            *_swapped(
                f"{_BATCH}.running.recovery",
                "settled = create.receive(HttpResponse(response.status, (), response.body), 0.0)"
                ".settled",
                ("0.0", "1.0"),
                ("0.0", "-1.0"),
            ),
        ),
        "only what the response says is asked, not when to wait for",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_BATCH}.running.side_files",
                "_REMEMBERED: Final = 20 * 24 * 3600.0",
                ("20", "19"),
                ("20", "21"),
                ("24", "23"),
                ("24", "25"),
                ("3600.0", "3601.0"),
                ("3600.0", "3599.0"),
            ),
            *_swapped(
                f"{_BATCH}.running.side_files", "UNFINISHED: Final = 0", ("0", "1"), ("0", "-1")
            ),
        ),
        "a day more or less is as good; and no HTTP status is below 100",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.wire.http1.connections",
            "early = self.stream.receive_nowait(1)",
            ("(1)", "(2)"),
        ),
        "one early byte is refused as two are",
    ),
    **dict.fromkeys(
        _swapped(_EXCHANGE, "_DETAIL_LIMIT = 200", ("200", "199"), ("200", "201")),
        "a character more or less makes no difference to anybody",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.wire.http1.blocking", "ends_at: float = 0.0", ("0.0", "1.0"), ("0.0", "-1.0")
        ),
        "the clock is far beyond either",
    ),
    (
        "muybridge.wire.trio_transport",
        'raise AssertionError("nobody cancels this scope")',
        "pass",
    ): "it is never executed",
    (
        "muybridge.wire.building",
        "closing.close() # in case that it waits for something all the same",
        "pass # in case that it waits for something all the same",
    ): "CPython closes what nobody refers to any more",
    **dict.fromkeys(
        _swapped(
            f"{_BATCH}.items.entry",
            "facts = dict(zip((*OF_ITEM, *_OF_PURCHASE), row, strict=True))",
            ("strict=True", "strict=False"),
        ),
        "the row has these columns, which the statement is made of",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_BATCH}.results.places.folder",
            "_PROBE: Final = 4096",
            ("4096", "4097"),
            ("4096", "4095"),
        ),
        "a full disk has no room for either",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_BATCH}.results.places.s3",
            "_RETRY: Final[RetryConfig] = "
            '{"max_retries": 3, "retry_timeout": timedelta(seconds=30)}',
            ("seconds=30", "seconds=31"),
            ("seconds=30", "seconds=29"),
        ),
        "the three retries end long before",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_BATCH}.results.places.folder", "path.unlink(missing_ok=True)", ("True", "False")
        ),
        "the error is ignored",
    ),
    **dict.fromkeys(
        (
            key
            for line in (
                "phase: Phase = attrs.field(default=Phase.RESOLVE, init=False)",
                "sent: bool = attrs.field(default=False, init=False)",
                "bytes_sent: int = attrs.field(default=0, init=False)",
                "send_error: Exception | None = attrs.field(default=None, init=False)",
                "status: int | None = attrs.field(default=None, init=False)",
                'arrived: bytes = attrs.field(default=b"", init=False)',
                "ended: bool = attrs.field(default=False, init=False)",
            )
            for key in _swapped(_EXCHANGE, line, ("init=False", "init=True"))
        ),
        "nobody gives it",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                "muybridge.drivers.on_asyncio",
                "_exchanges: _Tasks = attrs.field(factory=_Tasks, init=False, repr=False)",
                ("init=False", "init=True"),
                ("repr=False", "repr=True"),
            ),
            *_swapped(
                "muybridge.drivers.on_asyncio",
                "factory=WeakKeyDictionary[Any, asyncio.CancelledError], init=False, repr=False",
                ("init=False", "init=True"),
                ("repr=False", "repr=True"),
            ),
            *_swapped(
                "muybridge.wire.asyncio_shields",
                "absorbed: tuple[Any, ...] | None = attrs.field(default=None, init=False)",
                ("init=False", "init=True"),
            ),
        ),
        "nobody gives it, and nobody prints its owner",
    ),
    **dict.fromkeys(
        _swapped(_BY_REQUESTS, "allow_redirects=False,", ("False", "True")),
        "the session follows no redirect in either case",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_CORE}.operations.download",
                "pause = min(retry_after(head) or 0.0, LONGEST_WAIT)",
                ("0.0", "-1.0"),
            ),
            *_swapped(
                f"{_CORE}.operations.download",
                "return self._retry(reason, now, at_least=retry_after(response) or 0.0)",
                ("0.0", "-1.0"),
            ),
            *_swapped(
                f"{_CORE}.operations.download",
                "def _retry(self, reason: str, now: float, *, at_least: float = 0.0) -> Self:",
                ("0.0", "-1.0"),
            ),
        ),
        _NEVER_LESS,
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_CORE}.operations.download",
                "stage: DownloadStage = DownloadStage.FETCHING",
                ("FETCHING", "READING"),
            ),
            *_swapped(f"{_CORE}.operations.download", "refreshed: bool = False", ("False", "True")),
            *_swapped(f"{_CORE}.operations.download", "furthest: int = 0", ("0", "1"), ("0", "-1")),
        ),
        "every download begins with a value of its own",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_CORE}.fleet.fleet",
                "return (seed + number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF",
                (
                    "(seed + number * 0x9E3779B97F4A7C15)",
                    "((seed - number * 11400714819323198485))",
                ),
                ("0x9E3779B97F4A7C15", "11400714819323198486"),
                ("0x9E3779B97F4A7C15", "11400714819323198484"),
            ),
        ),
        "one seed is as good as another",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.drivers.on_trio",
            "def start(self, work: Work, *, paid: bool = False) -> None: "
            "# noqa: ARG002 what is paid is shielded",
            ("False", "True"),
        ),
        "under trio nothing depends on it",
    ),
    **dict.fromkeys(
        (
            *_swapped("muybridge.drivers.on_asyncio", "await asyncio.sleep(0)", ("(0)", "(-1)")),
            *_swapped(
                "muybridge.wire.asyncio_transport", "await asyncio.sleep(0)", ("(0)", "(-1)")
            ),
        ),
        "less than no time takes no time",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.drivers.blocking",
            "left = max(0.0, until - self._clock.monotonic())",
            ("0.0", "-1.0"),
        ),
        "a condition that is to wait for less than nothing does not wait",
    ),
    **dict.fromkeys(
        (
            *_swapped(f"{_CORE}.fleet.fleet", "self._tickets = 0", ("0", "1"), ("0", "-1")),
            *_swapped(f"{_CORE}.fleet.fleet", "self._tickets += 1", ("1", "2")),
        ),
        "a ticket means nothing but its exchange",
    ),
    **dict.fromkeys(
        (
            *(
                key
                for module in (f"{_CORE}.operations.paid", f"{_CORE}.operations.text")
                for key in _swapped(
                    module, 'T_co = TypeVar("T_co", covariant=True)', ("True", "False")
                )
            ),
            *_swapped(
                "muybridge.drivers.blocking",
                'C = TypeVar("C", covariant=True) '
                "# noqa: PLC0105 the name is that of type checkers",
                ("True", "False"),
            ),
        ),
        "it is for type checkers",
    ),
    **dict.fromkeys(
        _swapped("muybridge.drivers.blocking", "_TURN = 1.0", ("1.0", "2.0")),
        "it only bounds how long Windows ignores Ctrl-C; whatever a thread waits for wakes it",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.operations.text",
            "record = as_object(several[0] if len(several) == 1 else value)",
            ("[0]", "[-1]"),
        ),
        "there is one",
    ),
    (
        "muybridge.drivers.driver",
        "raise NotImplementedError",
        "pass",
    ): "an operation that is read piece by piece is driven by a class with a method of its own",
    **dict.fromkeys(
        _swapped(
            f"{_BATCH}.items.batch",
            'yield from self._pages("AND item.reason IS NOT NULL '
            "AND item.stage <> 'downloaded' \", 0)",
            (", 0)", ", -1)"),
        ),
        "the numbers of items begin with 1",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.files.downloads",
            "_IN_MEMORY = 8 * 1024 * 1024",
            ("8 * 1024 * 1024", "(8 * 1024 / 1024)"),
            ("8 * 1024", "(8 / 1024)"),
            ("8 *", "9 *"),
            ("8 *", "7 *"),
            ("1024 *", "1025 *"),
            ("1024 *", "1023 *"),
            ("* 1024 * 1024", "* 1024 * 1025"),
            ("* 1024 * 1024", "* 1024 * 1023"),
        ),
        "what waits on the disk is read back the same",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.media.checking",
            'return without_query(value) if "://" in value[:8] '
            'else f"{len(value):,} characters of base64"',
            ("[:8]", "[:9]"),
        ),
        "base64 has no colon",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.purchases.amounts",
            "return amount.quantize(Decimal((0, (1,), -DIGITS)), ROUND_CEILING, EXACT)",
            ("(0, (1,)", "(1, (1,)"),
            ("(0, (1,)", "(0, (0,)"),
            ("(0, (1,)", "(0, (2,)"),
        ),
        "only the exponent matters",
    ),
    (
        "muybridge.purchases.postgres",
        "return False",
        "return True",
    ): "only a database without leases is asked",
    (
        "muybridge.drivers.fleet_team",
        "raise NotImplementedError",
        "pass",
    ): "both kinds of team have a method of their own in its place",
    (
        "muybridge.drivers.on_trio",
        "return done[0]",
        "return done[-1]",
    ): "there is one",
    (
        f"{_CORE}.operations.paid",
        "raise NotImplementedError",
        "pass",
    ): "every operation has a method of its own in its place",
    **dict.fromkeys(
        (
            *_swapped(_CREDENTIALS, "return False", ("False", "True")),
            (
                _CREDENTIALS,
                '(b"%" in body and re.search(f"%(?i:{codes})".encode(), body) is not None)',
                "((b'%' in body or re.search(f'%(?i:{codes})'.encode(), body) is not None))",
            ),
            (
                _CREDENTIALS,
                (
                    r'or (b"\\u00" in body and '
                    r're.search(rf"\\u00(?i:{codes})".encode(), body) is not None)'
                ),
                (
                    r"or ((b'\\u00' in body or "
                    r"re.search(f'\\\\u00(?i:{codes})'.encode(), body) is not None))"
                ),
            ),
        ),
        _CLOSER_LOOK,
    ),
    **dict.fromkeys(
        (
            *_swapped(
                _CREDENTIALS,
                "if len(key) < _SHORTEST_REDACTED or partial[-1:] not in key:",
                ("[-1:]", "[-2:]"),
            ),
        ),
        "the last two characters of a beginning are in the key as well",
    ),
    **dict.fromkeys(
        _swapped(
            _CREDENTIALS,
            "for size in range(len(key) - 1, _SHORTEST_BEGINNING - 1, -1):",
            ("len(key) - 1", "(len(key) + 1)"),
            ("len(key) - 1", "len(key) - 0"),
        ),
        "the whole key has been replaced before",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.delivery",
            "if 300 <= status <= 399: # noqa: PLR2004 the class of redirects",
            ("300", "299"),
        ),
        "299 has been returned as a success before",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.delivery",
            "ceiling = min(LONGEST_BACKOFF, 2.0 ** min(attempt - 1, 10))",
            ("10)", "9)"),
            ("10)", "11)"),
        ),
        "the bound keeps the power from overflowing; from 5 on it is above the longest wait",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_CORE}.fleet.throttle",
                "self.until = max("
                "self.until, now + max(self.gap, min(pause or 0.0, LONGEST_WAIT)))",
                ("0.0", "-1.0"),
            ),
        ),
        _NEVER_LESS,
    ),
    **dict.fromkeys(
        (
            *_swapped(
                f"{_CORE}.families.family",
                "close = get_close_matches(wanted, plain, n=1)",
                ("n=1", "n=2"),
            ),
            *_swapped(
                f"{_CORE}.families.family",
                "return plain[close[0]] if close else self._field_for_media(wanted)",
                ("[0]", "[-1]"),
            ),
            *_swapped(f"{_CORE}.estimates.price_entry", _SPELLED, ("n=1", "n=2")),
            *_swapped(
                f"{_CORE}.estimates.price_entry",
                "close = get_close_matches(model, list(names), n=1)",
                ("n=1", "n=2"),
            ),
        ),
        _ONE_MATCH,
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.estimates.units",
            "EXACT: Final = Context(prec=60)",
            ("60", "61"),
            ("60", "59"),
        ),
        "no cost or sum has as many digits",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.estimates.quantities",
            "if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:",
            ("value > 0", "value > -1"),
            ("value > 0", "(value >= 0)"),
        ),
        "no request has a length of 0, or between that and -1",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.purchases.booking",
            "return secrets.token_hex(16)",
            ("16", "17"),
            ("16", "15"),
        ),
        "it is as unlikely twice",
    ),
    **dict.fromkeys(
        (
            *_swapped("muybridge.purchases.once", "_PAUSE: Final = 0.5", ("0.5", "1.5")),
            *_swapped("muybridge.purchases.joining", "_PAUSE: Final = 1.0", ("1.0", "2.0")),
        ),
        "it shows in nothing but how long a caller waits for another one",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                "muybridge.purchases.owners",
                "name = secrets.token_hex(8)",
                ("8", "9"),
                ("8", "7"),
            ),
        ),
        "it is as unlikely twice",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                "muybridge.purchases.owners",
                'file = path.open("r+b", buffering=0)',
                ("buffering=0", "buffering=-1"),
            ),
            *_swapped(
                "muybridge.purchases.owners",
                'file = os.fdopen(number, "r+b", buffering=0)',
                ("buffering=0", "buffering=-1"),
            ),
        ),
        "nothing is read from the file, or written to it",
    ),
    **dict.fromkeys(
        _swapped(
            "muybridge.purchases.joining",
            "if isinstance(create, Create) and later < create.deadline:",
            ("later < create.deadline", "(later <= create.deadline)"),
        ),
        "nothing is sent at the deadline, and the failure is the same",
    ),
    **dict.fromkeys(
        (
            ("muybridge.purchases.sqlite", "self._is_intact = True", "pass"),
            *_swapped("muybridge.purchases.sqlite", "self._is_intact = True", ("True", "False")),
        ),
        "it takes longer, and finds the same",
    ),
    **dict.fromkeys(
        (
            *_swapped(
                "muybridge.purchases.steps",
                "columns: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))",
                ("True", "False"),
            ),
        ),
        "the row has just these columns, because they were asked for",
    ),
    **dict.fromkeys(
        _swapped("muybridge.purchases.booking", "self._armed: bool = False", ("False", "True")),
        "an operation that is not armed has no purchase whose outcome could be recorded",
    ),
    **dict.fromkeys(
        (
            ("muybridge.purchases.booking", "self._armed = False", "pass"),
            *_swapped("muybridge.purchases.booking", "self._armed = False", ("False", "True")),
        ),
        "only what was released is recorded again unarmed, and releasing it again changes nothing",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.estimates.price_entry",
            _SPELLED,
            ("if len(name) <= LONGEST_NAME else", "if (len(name) < LONGEST_NAME) else"),
        ),
        "no name of that length is close to a known one",
    ),
    **dict.fromkeys(
        _swapped(
            f"{_CORE}.estimates.price_list",
            "_by_key: Mapping[Key, Price] = attrs.field(init=False, repr=False, eq=False)",
            ("eq=False", "eq=True"),
        ),
        "it is made from the prices, which are compared",
    ),
}
"""Mutants that behave as the original does, and why."""
