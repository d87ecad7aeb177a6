"""Run the benchmarks: `python -m benchmarks [NAME...] [--rounds N] [--json]`.

Contestants take turns within each round, and medians of CPU time are compared, so that a noisy
machine slows all of them alike. The first contestant of a benchmark is its reference, 1.00.
`lost_replies` counts instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks import fleet, lifecycle, lost_replies, streams, trio_lifecycle, validation

BENCHMARKS: Mapping[str, Callable[[], AbstractContextManager[lifecycle.Benchmark]]] = {
    "fleet": fleet.benchmark,
    "lifecycle": lifecycle.benchmark,
    "streams": streams.benchmark,
    "streams-array": streams.array,
    "streams-large": streams.large_events,
    **{
        f"trio-lifecycle-{at_once}": partial(trio_lifecycle.lifecycles, at_once)
        for at_once in trio_lifecycle.LIFECYCLES
    },
    "trio-polls": trio_lifecycle.polls,
    "validation": validation.benchmark,
}
COUNTS: Mapping[str, Callable[[], lost_replies.Count]] = {"lost_replies": lost_replies.count}


def measure(benchmark: lifecycle.Benchmark, rounds: int) -> dict[str, float]:
    """Return each contestant's median CPU seconds for one unit of work.

    A contestant that returns a float has measured its seconds itself.
    """
    spent: dict[str, list[float]] = {name: [] for name in benchmark.contestants}
    for _ in range(rounds + 1):
        for name, contestant in benchmark.contestants.items():
            began = time.process_time()
            own = contestant()
            seconds = own if isinstance(own, float) else time.process_time() - began
            spent[name].append(seconds / benchmark.units)
    return {name: statistics.median(times[1:]) for name, times in spent.items()}


def main() -> None:
    """Read the command line, run, and print."""
    known = [*BENCHMARKS, *COUNTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds (default 7)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(known)}")
    found: dict[str, Mapping[str, Mapping[str, float]]] = {}
    for name in options.names or known:
        if name in COUNTS:
            counted = COUNTS[name]()
            found[name] = counted.posts
            if not options.json:
                print(f"{name}: " + "\n".join(counted.lines()))
            continue
        with BENCHMARKS[name]() as benchmark:
            medians = measure(benchmark, options.rounds)
        reference = next(iter(medians.values()))
        found[name] = {
            contestant: {"microseconds": median * 1e6, "ratio": median / reference}
            for contestant, median in medians.items()
        }
        if not options.json:
            print(f"{name}: CPU time per {benchmark.unit}")
            for contestant, figures in found[name].items():
                print(f"  {figures['ratio']:6.2f}  {figures['microseconds']:9.1f} us  {contestant}")
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
