"""Run the benchmarks: `python -m benchmarks [NAME...] [--rounds N] [--json]`.

Contestants take turns within each round, and medians of CPU time are compared, so that a noisy
machine slows all of them alike. The first contestant of a benchmark is its reference, 1.00. Each
benchmark says whether its targets are met. Peers come with `pip install -e ".[bench]"`; one that
is not installed is left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import (
    asyncio_lifecycle,
    batches,
    cold,
    connections,
    downloads,
    fleet,
    lifecycle,
    lost_responses,
    purchases,
    records,
    streams,
    trio_lifecycle,
    validation,
)
from benchmarks.measuring import Report, race

BENCHMARKS: Mapping[str, Callable[[int], Report | lost_responses.Count]] = {
    "lifecycle": race(lifecycle.benchmark),
    "lifecycle-growth": race(lifecycle.growth),
    **{
        f"trio-lifecycle-{at_once}": race(partial(trio_lifecycle.lifecycles, at_once))
        for at_once in trio_lifecycle.LIFECYCLES
    },
    **{
        f"asyncio-lifecycle-{at_once}": race(partial(asyncio_lifecycle.lifecycles, at_once))
        for at_once in asyncio_lifecycle.AT_ONCE
    },
    **{
        f"asyncio-loops-{at_once}": race(partial(asyncio_lifecycle.loops, at_once))
        for at_once in asyncio_lifecycle.AT_ONCE
    },
    "asyncio-polls": race(asyncio_lifecycle.polls),
    "trio-polls": race(trio_lifecycle.polls),
    "download": race(downloads.benchmark),
    "trio-download": race(downloads.under_trio),
    "download-memory": downloads.memory,
    "text-stream": race(streams.text),
    "streams": race(streams.benchmark),
    "streams-array": race(streams.array),
    "streams-large": race(streams.large_events),
    "streams-growth": race(streams.growth),
    "record": race(records.benchmark),
    "validation": race(validation.benchmark),
    "fleet": race(fleet.benchmark),
    "fleet-survey": fleet.survey,
    "import": race(cold.imports),
    "cold": race(cold.first_results),
    "batch": race(batches.benchmark),
    "batch-start": batches.starts,
    "batch-memory": batches.memory,
    "purchases": purchases.purchases,
    "https": race(connections.https),
    "client": race(connections.building),
    "keep-alive": connections.keep_alive,
    "lost_responses": lambda _: lost_responses.count(),
}


def main() -> None:
    """Read the command line, run, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds (default 7)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    found: dict[str, object] = {}
    for name in options.names or BENCHMARKS:
        report = BENCHMARKS[name](options.rounds)
        found[name] = report.figures
        if not options.json:
            print(f"{name}: " + "\n".join(report.lines()), flush=True)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
