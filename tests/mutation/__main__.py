"""Count the mistakes that no test notices: `python -m tests.mutation [GROUP...] [--list]`.

For each group, each module of it is broken in every way that `mutants.py` knows, one at a time,
and the group's tests are run, until the first one fails. A mutant that no test kills is printed.
Run it in the project's folder; it needs `fork`, and takes a second or less for each mutant.
"""

from __future__ import annotations

import argparse
import datetime as dt
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from .groups import EQUIVALENT, GROUPS, Group
from .mutants import Mutant, mutants
from .reach import Test, chosen
from .trial import Outcome, load_what_all_need, reached, tried

GOAL = 95.0
"""Percent of the mutants that tests must kill, of those that behave otherwise at all."""


def main() -> None:
    """Read the command line, run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument(
        "--seed",
        type=int,
        default=dt.datetime.now(dt.UTC).toordinal(),
        help="what the sample of a large group is drawn with; today's by default",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=(os.cpu_count() or 1) + 1,
        help="how many to try at once; by default one a core and another one, as many tests wait",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants alone")
    parser.add_argument(
        "--sample", type=int, help="how many of each module to try; by default what its group says"
    )
    parser.add_argument("--only", default="", help="only those whose line holds this text")
    options = parser.parse_args()
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"no group is called {unknown[0]}; there are {', '.join(GROUPS)}")
    groups = [GROUPS[name] for name in options.groups or GROUPS]
    if options.sample is not None:
        groups = [replace(group, sample=options.sample) for group in groups]
    if options.list:
        for group in groups:
            for module, mutant in _all(group, options.only, options.seed):
                _say(f"{module}:{mutant.line}: {mutant.before}  ->  {mutant.after}")
        return
    load_what_all_need()
    with _database() if any(group.database for group in groups) else nullcontext():
        shares = [_run(group, options.only, options.seed, options.jobs) for group in groups]
    sys.exit(any(share < GOAL for share in shares))


@contextmanager
def _database() -> Generator[None, None, None]:
    """Run a database server that all trials share."""
    server = import_module("tests.batch.postgres_server")
    with server.running() as serving:
        os.environ[server.SHARED] = str(serving.server.pgdata)
        try:
            yield
        finally:
            del os.environ[server.SHARED]


def _all(group: Group, only: str, seed: int) -> list[tuple[str, Mutant]]:
    """Return the mutants of *group* that are tried; all that `only` chooses, else a sample."""
    found: list[tuple[str, Mutant]] = []
    for module in group.modules:
        made = list(mutants(_path(module).read_text(encoding="utf-8")))
        some = [mutant for mutant in made if only in mutant.before]
        if group.sample is not None and not only and len(some) > group.sample:
            source = random.Random(f"{seed} {module}")  # noqa: S311  a sample, not a secret
            some = sorted(source.sample(some, group.sample), key=lambda mutant: mutant.line)
        found += [(module, mutant) for mutant in some]
    return found


def _path(module: str) -> Path:
    root = "protocol" if module.startswith("muybridge_protocol") else "transports"
    return Path(root, *module.split(".")).with_suffix(".py")


def _run(group: Group, only: str, seed: int, jobs: int) -> float:
    """Try every mutant of *group*, print what survives, and return the percentage killed."""
    began = time.monotonic()
    counts: Counter[Outcome | str] = Counter()
    argued = {key for key in EQUIVALENT if key[0] in group.modules}
    mutated: list[tuple[str, Mutant]] = []
    for module, mutant in _all(group, only, seed):
        key = (module, mutant.before, mutant.after)
        if key in EQUIVALENT:
            counts["equivalent"] += 1
            argued.discard(key)
        else:
            mutated.append((module, mutant))
    with (
        TemporaryDirectory() as scratch,
        ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _apart, (scratch,)) as pool,
    ):
        reach = partial(reached, {module: _path(module) for module in group.modules})
        found = dict(zip(group.tests, pool.map(reach, group.tests), strict=True))
        failing = [test for test, those in found.items() if those is None]
        if failing:
            sys.exit(f"these fail as they are: {' '.join(failing)}")
        running = [
            pool.submit(tried, name, _path(name), one.source, _tests(found, name, one))
            for name, one in mutated
        ]
        for (module, mutant), ended in zip(mutated, running, strict=True):
            outcome = ended.result()
            counts[outcome] += 1
            if outcome is Outcome.SURVIVED:
                _say(f"survived: {module}:{mutant.line}\n  {mutant.before}\n  {mutant.after}")
    if argued and not only and group.sample is None:
        sys.exit(f"groups.py names mutants that do not exist: {sorted(argued)}")
    killed = counts[Outcome.KILLED] + counts[Outcome.TIMED_OUT]
    total = killed + counts[Outcome.SURVIVED]
    share = 100.0 * killed / total if total else 100.0
    _say(
        f"{group.name}: {killed} of {total} mutants killed, {share:.1f} % "
        f"({counts[Outcome.TIMED_OUT]} by the time limit); {counts['equivalent']} equivalent; "
        f"{time.monotonic() - began:.0f} s"
        f"{f'; the sample of seed {seed}' if group.sample is not None else ''}"
    )
    return share


def _apart(scratch: str) -> None:
    """Give this process a temporary folder of its own, which no other process cleans up."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = mkdtemp(dir=scratch)


def _tests(
    found: Mapping[str, dict[str, Test] | None], module: str, mutant: Mutant
) -> dict[str, dict[str, float]]:
    """Return the tests that execute the mutant, those of the quickest file first."""
    those = {
        name: chosen(tests or {}, module, _path(module), mutant.line, mutant.last)
        for name, tests in found.items()
    }
    names = sorted(those, key=lambda name: sum(those[name].values()))
    return {name: those[name] for name in names if those[name]}


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  this is a command


if __name__ == "__main__":
    main()
