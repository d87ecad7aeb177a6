"""Simulate worlds: `python -m tests.simulation [OPTIONS]`, in the project's folder.

    python -m tests.simulation --worlds 500             a campaign from seed 0 on
    python -m tests.simulation --minutes 30 --fresh     a campaign of seeds that nobody has tried
    python -m tests.simulation --seed 7 --story         one world, told as a story
    python -m tests.simulation --search --part 1/3      look for the planted faults
    python -m tests.simulation --replay                 replay the seeds that found them

A world depends on its plan alone. So the command runs itself again with a fixed hash seed, and
without the variables that set up the product.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import attrs

from . import campaign, search
from .coverage import unseen
from .plan import Plan
from .planted import FAULTS, Fault
from .shrinking import convicted, shrunk

_FRESH = 10_000_000
"""Fresh seeds begin here: the hundred-thousands after it are the days since 1970."""


def main(options: argparse.Namespace) -> int:
    """Do what the command line asks for, and return the exit status."""
    number, of = map(int, options.part.split("/"))
    if options.search:
        faults = [one for one in search.part(number, of) if options.plant in (None, one.name)]
        return look(faults, options.within, keep=options.keep)
    if options.replay:
        return replay(number, of, keep=options.keep)
    if options.plant:
        fault = next(fault for fault in FAULTS if fault.name == options.plant)
        with fault.planted():
            return live(options)
    return live(options)


def live(options: argparse.Namespace) -> int:
    """Run the worlds that the command line asks for, and return the exit status."""
    if options.plan is not None:
        return tell(Plan(**json.loads(options.plan)), story=options.story)
    kinds = [options.kind] if options.kind else [*campaign.KINDS]
    if options.seed is not None:
        return max(tell(Plan.drawn(options.seed, kind), story=options.story) for kind in kinds)
    first: int = options.first
    if options.fresh:
        first = _FRESH + int(time.time() // 86_400) * 100_000
    return max(
        go_on(kind, first, options.worlds, options.minutes and options.minutes / len(kinds))
        for kind in kinds
    )


def tell(plan: Plan, *, story: bool) -> int:
    """Run one world, and tell its story."""
    lines: list[str] | None = [] if story else None
    try:
        campaign.run(plan, story=lines)
    except AssertionError as error:
        print("\n".join(lines or ()))
        print(f"{plan.kind} {plan.seed}: {error}")
        return 1
    print("\n".join(lines or ()))
    print(f"{plan.kind} {plan.seed}: nothing is wrong")
    return 0


def go_on(kind: str, first: int, worlds: int | None, minutes: float | None) -> int:
    """Run a campaign of worlds of one kind, for so many worlds or so many minutes of CPU."""
    began, steps, seed = time.process_time(), 0, first
    counts: collections.Counter[str] = collections.Counter()
    failed: list[Plan] = []
    while (
        seed - first < worlds
        if worlds is not None
        else time.process_time() - began < 60 * (minutes or 1.0)
    ):
        plan = Plan.drawn(seed, kind)
        try:
            world = campaign.run(plan)
        except AssertionError as error:
            print(f"{kind} {seed}: {error}", flush=True)
            failed.append(plan)
        else:
            counts += world.counts
            steps += world.steps
        seed += 1
    cpu = time.process_time() - began
    print(
        f"{kind}: {seed - first} worlds (seeds {first} to {seed - 1}), {steps} steps, "
        f"{cpu / 3600:.3f} hours of CPU, {(seed - first) / max(cpu, 1e-3) * 60:.0f} worlds a minute"
    )
    for what, count in sorted(counts.items()):
        print(f"{count:10} {what}")
    for plan in failed[:1]:
        report(plan)
    missing = unseen(kind, counts, seed - first)
    for what in missing:
        print(f"never seen: {what}")
    return 1 if failed or missing else 0


def report(plan: Plan) -> None:
    """Print a failing seed with its command, and the smallest world that fails in the same way."""
    print(f"python -m tests.simulation --kind {plan.kind} --seed {plan.seed} --story")
    print(f"  (add {plan.seed} to the seeds of {plan.kind!r} in tests/simulation/test_worlds.py)")
    verdict = convicted(plan)
    if verdict is None:
        print("  it does not fail again: something besides the seed decides")
        return
    small: dict[str, Any] = attrs.asdict(shrunk(plan, verdict.judge))
    print(f"  smaller: python -m tests.simulation --story --plan '{json.dumps(small)}'")


def look(faults: Sequence[Fault], within: int, *, keep: bool) -> int:
    """Look for planted faults."""
    missed = 0
    for fault in faults:
        began = time.process_time()
        finding = search.search(fault, within)
        cpu = time.process_time() - began
        if finding is None:
            missed += 1
            print(f"{fault.name}: not found within {within} seeds ({cpu:.0f} s)", flush=True)
            continue
        said = f"{finding['kind']} {finding['seed']}, by {finding['judge']!r}"
        print(f"{fault.name}: {said} ({cpu:.1f} s)", flush=True)
        if keep:
            search.keep(fault, finding)
    return 1 if missed else 0


def replay(number: int, of: int, *, keep: bool) -> int:
    """Replay the worlds that found the planted faults of one part."""
    faults, findings, missed = search.part(number, of), search.kept(), 0
    for fault in faults:
        finding = findings.get(fault.name)
        now = finding and search.replay(fault, finding)
        if now is None:
            missed += 1
            why = f"the plan of seed {finding['seed']} does not find it any more" if finding else ""
            print(f"{fault.name}: {why or 'no seed is kept'}", flush=True)
        elif keep:
            search.keep(fault, now)
    print(f"{len(faults) - missed} of {len(faults)} planted faults were found")
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kind", choices=campaign.KINDS, help="all kinds by default")
    parser.add_argument("--worlds", type=int, help="how many to run")
    parser.add_argument("--minutes", type=float, help="how long to run, in minutes of CPU")
    parser.add_argument("--first", type=int, default=0, help="the first seed of a campaign")
    parser.add_argument("--fresh", action="store_true", help="begin with a seed of today")
    parser.add_argument("--seed", type=int, help="run one world")
    parser.add_argument("--plan", help="run the world of a plan, as a failing campaign prints it")
    parser.add_argument("--story", action="store_true", help="tell what happens in it")
    parser.add_argument(
        "--plant", choices=[fault.name for fault in FAULTS], help="with this fault in the product"
    )
    parser.add_argument("--search", action="store_true", help="look for the planted faults")
    parser.add_argument("--part", default="1/1", help="which part of them, such as 1/3")
    parser.add_argument("--within", type=int, default=search.WITHIN, help="in so many seeds")
    parser.add_argument("--keep", action="store_true", help="write found.json anew")
    parser.add_argument("--replay", action="store_true", help="replay the seeds in found.json")
    return parser.parse_args()


def _is_fixed() -> bool:
    """Whether nothing in the environment makes a difference to a world."""
    return os.environ.get("PYTHONHASHSEED") == "0" and not _VARIABLES


_VARIABLES = [name for name in os.environ if name.startswith("MUYBRIDGE_")]

if __name__ == "__main__":
    if not _is_fixed():
        environment = {name: os.environ[name] for name in os.environ if name not in _VARIABLES}
        environment["PYTHONHASHSEED"] = "0"
        command = [sys.executable, "-W", "ignore", "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)  # noqa: S606  itself
    status: list[int] = []
    given = _options()
    # Not the main thread, where the product would look after Ctrl-C.
    thread = threading.Thread(target=lambda: status.append(main(given)))
    thread.start()
    thread.join()
    sys.exit(status[0] if status else 1)
