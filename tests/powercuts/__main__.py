"""Record the programs anew, or replay the recordings: `python -m tests.powercuts`.

Without options, every state of every recording is tried, and the counts are printed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice, product
from pathlib import Path

from .disk import Model
from .program import traced
from .recording import load, save
from .replay import cuts, judge
from .scenes import SCENES


def main() -> int:
    """Read the command line, do as it says, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.powercuts", description=__doc__)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--record", action="store_true", help="record anew, which needs strace")
    parser.add_argument("--every", type=int, default=1, help="try one state in so many")
    parser.add_argument(
        "--seed",
        type=int,
        default=dt.datetime.now(dt.UTC).toordinal(),
        help="draws the random combinations; today's by default",
    )
    options = parser.parse_args()
    names: list[str] = options.scenes or [*SCENES]
    if unknown := [name for name in names if name not in SCENES]:
        parser.error(f"no scene is called {unknown[0]}; there are {', '.join(SCENES)}")
    if options.record:
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                save(name, traced(name, Path(folder) / "run"))
        return 0
    print(f"--seed {options.seed}")  # noqa: T201  a command
    return 1 if _replay(names, options.every, options.seed) else 0


def _replay(names: list[str], every: int, seed: int) -> int:
    """Replay recordings on all processors, print what is found, and return how many faults."""
    jobs, total = os.cpu_count() or 1, 0
    with ProcessPoolExecutor(jobs) as pool:
        for name, model in product(names, Model):
            one = partial(_part, name, model, every, jobs, seed)
            counts, faults = zip(*pool.map(one, range(jobs)), strict=True)
            found = [fault for part in faults for fault in part]
            told = [f"{name}, {model}: {sum(counts)} states, {len(found)} faults", *found]
            print(*told, sep="\n  ", flush=True)  # noqa: T201  a command
            total += len(found)
    return total


def _part(
    name: str, model: Model, every: int, jobs: int, seed: int, job: int
) -> tuple[int, list[str]]:
    """Try this job's share of the states; return how many there were, and what was wrong."""
    share = islice(cuts(load(name), model, seed), job * every, None, jobs * every)
    tried = [judge(SCENES[name], cut) for cut in share]
    return len(tried), [str(fault) for fault in tried if fault is not None]


if __name__ == "__main__":
    sys.exit(main())
