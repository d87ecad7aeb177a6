"""`batch submit` and `worker`: batches in a store, which several machines work on."""

from __future__ import annotations

import shlex
from contextlib import ExitStack

import click

from muybridge import batch as batches
from muybridge.batch.items.reading import ValidItems
from muybridge.batch.running.worker import CONCURRENCY, CREATES
from muybridge.cli import options
from muybridge.cli.batch_progress import reporting
from muybridge.cli.batch_reports import counted, show_shared, store_errors
from muybridge.cli.consent import require_budget
from muybridge.cli.exit_codes import DONE, FAILED
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.purchase_records import store_words
from muybridge.cli.terminal import answer, document, say
from muybridge.cli.verbose import logging_to_stderr
from muybridge.purchases.environment import default_place
from muybridge.signals import ignoring_signals
from muybridge_protocol.problems import InputProblem


@click.command(
    params=[
        options.JSON,
        options.STORE,
        *options.BATCH_LIMITS,
        options.PRICES,
        *options.CONNECTION,
    ]
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--name", required=True, help="The name of the batch, of at most 200 characters.")
@click.option(
    "--out",
    metavar="PLACE",
    help="Where all workers store results: s3://BUCKET/PREFIX, or the absolute path of a folder "
    "[default: unchanged; each worker has its own --out].",
)
@options.rate_limit
@options.skip_invalid
@pass_invocation
@click.pass_context
def submit(
    context: click.Context,
    invocation: Invocation,
    file: str,
    *,
    name: str,
    out: str | None,
    rate: float | None,
    skip_invalid: bool,
) -> None:
    """Begin a batch in a store, or add requests to it.

    FILE has the format of `batch run`, and every request is checked. Nothing is sent: `muybridge
    worker` does that, on as many machines as you like. The limits apply to all workers together. To
    change them or --out, submit the same FILE again. Workers read --out when they start.

    If --skip-invalid skips items, the exit code is 1.

    With --json: {ok, counts}; if items were skipped, also {skipped: [{where, field, message}]}.
    """
    service = invocation.connection.service()
    skipped: list[InputProblem] = []
    with store_errors(context, invocation):
        report = batches.submit(
            _shared(invocation, name),
            ValidItems(file, skipped.append) if skip_invalid else file,
            service,
            rate=rate,
            budget=invocation.spending.read_budget(),
            prices=invocation.spending.read_prices(),
            out=out,
        )
    if invocation.presentation.json:
        told = {"skipped": [one.to_dict() for one in skipped]} if skipped else {}
        document({"ok": True, "counts": dict(report.counts), **told})
        context.exit(FAILED if skipped else DONE)
    for problem in skipped:
        say(f"skipped: {problem}")
    answer(counted(report.counts))
    words = ["--batch", name, *([] if report.out else ["--out", name])]
    store = store_words(invocation.spending.open_store())
    say(f"to start a worker, on any machine: muybridge worker {shlex.join([*store, *words])}")
    context.exit(FAILED if skipped else DONE)


@click.command(
    params=[
        options.JSON_LINES,
        options.STORE,
        *options.BATCH_WAITING,
        options.INSECURE_DOWNLOADS,
        *options.CONNECTION,
    ]
)
@click.option("--batch", "name", required=True, metavar="NAME", help="The name of the batch.")
@click.option(
    "--out",
    metavar="PLACE",
    help="Where results go: a folder on this machine, or s3://BUCKET/PREFIX [default: the place "
    "that the batch was submitted with].",
)
@click.option(
    "--spool",
    metavar="DIR",
    help="The folder on this machine for unfinished downloads, and for responses while the "
    "store is unreachable [default: the --out folder; if --out is in S3, a folder in your "
    "state folder]",
)
@options.at_once("--creates", CREATES, "creates under way")
@options.at_once("--concurrency", CONCURRENCY, "tasks in progress")
@pass_invocation
@click.pass_context
def worker(
    context: click.Context,
    invocation: Invocation,
    *,
    name: str,
    out: str | None,
    spool: str | None,
    creates: int,
    concurrency: int,
) -> None:
    """Work on a batch in a store until nothing is left to do.

    Begin the batch with `batch submit`, and start as many workers as you like. No two of them send
    the same request. If one dies, the others take over. Results are saved in a folder on this
    machine, or in S3 with the credentials that the AWS_ variables name.

    The exit codes are those of `batch`; 3 also means that a budget is used up: the batch's own,
    or one of the environment's limits, such as MUYBRIDGE_MAX_CREATES.

    With --json: one JSON object per line on stdout for each event of this worker, and finally
    {event: summary, ok, exit_code, counts, items, strays}, whose items need a decision, with
    budgets if the batch has a budget, and with out if it has a place for results.
    """
    shared = _shared(invocation, name)
    interrupted: KeyboardInterrupt | None = None
    require_budget(invocation, name)
    with store_errors(context, invocation), ExitStack() as ending:
        with ExitStack() as stack:
            client = invocation.open_client(stack)
            event = stack.enter_context(reporting(json=invocation.presentation.json))
            if invocation.presentation.verbose:
                stack.enter_context(invocation.log())
            else:  # what the worker waits for, at least
                stack.enter_context(logging_to_stderr("muybridge.batch"))
            try:
                report = batches.work(
                    client,
                    shared,
                    out,
                    creates=creates,
                    concurrency=concurrency,
                    timeout=invocation.connection.wait_timeout,
                    on_event=event,
                    spool=spool,
                )
            except KeyboardInterrupt as interrupt:
                ending.enter_context(ignoring_signals())
                interrupted, report = interrupt, batches.shared_status(shared)
        show_shared(context, invocation, report, interrupted=interrupted)


def _shared(invocation: Invocation, name: str) -> batches.SharedBatch:
    """Return the batch *name* in the store of the options and the environment."""
    return batches.SharedBatch(invocation.spending.store or default_place(), name)
