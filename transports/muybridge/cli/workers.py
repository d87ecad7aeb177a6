"""`batch submit` and `worker`: batches in a database, which several machines work on."""

from __future__ import annotations

import shlex
from contextlib import ExitStack

import click

from muybridge.cli.batch_manifest import batch
from muybridge.cli.batch_progress import reporting
from muybridge.cli.batch_reports import counted, journal_errors, show_shared
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.options import (
    BATCH_LIMITS,
    CONNECTION,
    INSECURE_DOWNLOADS,
    JOURNAL,
    JSON,
    PRICES,
    poll_interval,
    timeout,
)
from muybridge.cli.terminal import answer, document, say
from muybridge.drivers.interrupts import ignoring_signals


@batch.command(params=[JSON, *BATCH_LIMITS, PRICES, *CONNECTION])
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--journal", required=True, metavar="URL", help=JOURNAL)
@click.option("--name", required=True, help="The name of the batch.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Most requests a second of all workers at this service, or inf [default: unchanged].",
)
@pass_invocation
@click.pass_context
def submit(
    context: click.Context,
    invocation: Invocation,
    file: str,
    *,
    journal: str,
    name: str,
    rate: float | None,
) -> None:
    """Begin a batch of the requests of FILE in a database, or append to it. Nothing is sent.

    FILE is as for `batch run`, and every request is checked. `muybridge worker` sends them, on as
    many machines as you like. Limits count what all of them send of this batch. Submit the same
    FILE again to change them.

    With --json: {ok, counts}.
    """
    from muybridge import batch as batches  # noqa: PLC0415  it loads the HTTP libraries
    from muybridge.configuration import BASE_URL_VARIABLE, find_address  # noqa: PLC0415  the same
    from muybridge_protocol.service import Service  # noqa: PLC0415  the same

    service = Service(
        base_url=find_address(invocation.base_url, BASE_URL_VARIABLE),
        allow_plain_http=invocation.allow_plain_http,
    )
    with journal_errors(context, invocation):
        report = batches.submit(
            batches.SharedBatch(journal, name),
            file,
            service,
            rate=rate,
            budget=invocation.read_budget(),
            prices=invocation.read_prices(),
        )
    if invocation.json:
        document({"ok": True, "counts": dict(report.counts)})
        return
    answer(counted(report.counts))
    words = shlex.join(["--batch", name, "--out", name])
    say(f"to work on it, on any machine: muybridge worker --journal URL {words}")


@click.command(
    params=[
        JSON,
        poll_interval("Seconds between result queries [default: the service's pace]"),
        timeout("Seconds to wait for each task, which continues afterwards [default: 3600]"),
        INSECURE_DOWNLOADS,
        *CONNECTION,
    ]
)
@click.option("--journal", required=True, metavar="URL", help=JOURNAL)
@click.option("--batch", "name", required=True, metavar="NAME", help="The name of the batch.")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    help="Where results go: a folder on this machine, or s3://BUCKET/PREFIX.",
)
@click.option(
    "--spool",
    metavar="DIR",
    help="The folder on this machine for unfinished downloads, and for responses while the "
    "database is away [default: --out, or the user's state folder if that is in S3]",
)
@click.option(
    "--creates",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    metavar="N",
    help="How many creates there may be under way at once.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=32,
    show_default=True,
    metavar="N",
    help="How many tasks there may be in progress at once.",
)
@pass_invocation
@click.pass_context
def worker(
    context: click.Context,
    invocation: Invocation,
    *,
    journal: str,
    name: str,
    out: str,
    spool: str | None,
    creates: int,
    concurrency: int,
) -> None:
    """Work on a batch in a database, with other workers, until nothing is left to do.

    Begin the batch with `batch submit`, and start as many workers as you like. No two of them send
    the same request. If one dies, the others take over. Results are saved in a folder on this
    machine, or in S3 with the credentials that the AWS_ variables name.

    The exit codes are those of `batch`.

    With --json: one JSON object a line on stdout for each event of this worker, and at last {event:
    summary, ok, exit_code, counts, items, strays}, whose items need a decision.
    """
    from muybridge import Client  # noqa: PLC0415  it loads the HTTP libraries
    from muybridge import batch as batches  # noqa: PLC0415  the same
    from muybridge.batch.stores import open_store  # noqa: PLC0415  the same
    from muybridge_protocol.operations.poll import WAIT_TIMEOUT  # noqa: PLC0415  the same

    shared = batches.SharedBatch(journal, name)
    try:
        open_store(out)
    except (ValueError, ModuleNotFoundError) as error:
        raise click.BadParameter(str(error), context, param_hint="--out") from None
    interrupted: KeyboardInterrupt | None = None
    with journal_errors(context, invocation), ExitStack() as ending:
        with ExitStack() as stack:
            client = stack.enter_context(Client(**invocation.client_settings(stack)))
            event = stack.enter_context(reporting(json=invocation.json))
            stack.enter_context(invocation.log())
            try:
                report = batches.work(
                    client,
                    shared,
                    out,
                    creates=creates,
                    concurrency=concurrency,
                    timeout=WAIT_TIMEOUT if invocation.timeout is None else invocation.timeout,
                    on_event=event,
                    spool=spool,
                )
            except KeyboardInterrupt as interrupt:
                ending.enter_context(ignoring_signals())
                interrupted, report = interrupt, batches.shared_status(shared)
        show_shared(context, invocation, report, interrupted=interrupted)
