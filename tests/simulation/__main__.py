"""Run worlds: `python -m tests.simulation SEEDS [FIRST]`."""

from __future__ import annotations

import collections
import sys
import threading
import time
import traceback

from . import campaign
from .plan import Plan


def main() -> None:
    """Run so many worlds, from a first one on."""
    number, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began, steps = time.process_time(), 0
    counts: collections.Counter[str] = collections.Counter()
    failures: list[tuple[int, str]] = []
    for seed in range(first, first + number):
        try:
            story: list[str] | None = [] if number == 1 else None
            world = campaign.run(Plan.drawn(seed, "names"), story=story)
        except AssertionError as error:
            failures.append((seed, str(error)))
            traceback.print_exc()
        else:
            counts.update(world.counts)
            steps += world.steps
            print("\n".join(world.story or ()))
    cpu = time.process_time() - began
    print(f"{number} worlds, {steps} steps, {number / cpu * 60:.0f} a minute of CPU")
    for what, count in sorted(counts.items()):
        print(f"{count:8} {what}")
    for seed, said in failures:
        print(f"seed {seed}: {said}")


# Not the main thread, where the product would look after Ctrl-C.
thread = threading.Thread(target=main)
thread.start()
thread.join()
