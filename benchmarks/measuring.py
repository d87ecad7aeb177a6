"""How contestants are measured and compared, and whether the figures are what they are to be."""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

Figures = Mapping[str, Mapping[str, float]]
"""By contestant, and by the figure's name."""


@dataclass(frozen=True)
class Target:
    """What a figure is to be.

    Args:
        contestant: Whose figure.
        at_most: Its upper bound, or None.
        at_least: Its lower bound, or None.
        figure: Its name.
        of: The contestant whose figure it is divided by, or None.
        beside: Two contestants, by whose ratio it is divided as well, or None.
    """

    contestant: str
    at_most: float | None = None
    at_least: float | None = None
    figure: str = "microseconds"
    of: str | None = None
    beside: tuple[str, str] | None = None

    def verdict(self, figures: Figures) -> str | None:
        """Say whether it is met, or None if one of the two did not take part."""
        compared = {self.contestant, self.of or self.contestant, *(self.beside or ())}
        if not compared <= figures.keys():
            return None
        found = figures[self.contestant][self.figure]
        of = f" {self.figure.replace('_', ' ')}"
        if self.of is not None:
            found /= figures[self.of][self.figure]
            of = f" of {self.of}"
        if self.beside is not None:
            many, few = (figures[name][self.figure] for name in self.beside)
            found /= many / few
            of += f", beside {self.beside[0]} of {self.beside[1]}"
        met = (self.at_most is None or found <= self.at_most) and (
            self.at_least is None or found >= self.at_least
        )
        bound = f"<= {self.at_most:,g}" if self.at_most is not None else f">= {self.at_least:,g}"
        told = f"{'met   ' if met else 'MISSED'} {self.contestant}: {_shown(found)}{of}"
        return f"{told} (target {bound})"


def ahead_of(contestant: str, peers: Iterable[str]) -> list[Target]:
    """Return the targets that *contestant* takes less time than each of *peers*."""
    return [Target(contestant, at_most=1.0, of=peer) for peer in peers]


@dataclass(frozen=True)
class Report:
    """What came of a benchmark.

    Args:
        title: What was measured.
        figures: What was found.
        targets: What that is to be.
    """

    title: str
    figures: Figures
    targets: Sequence[Target] = ()

    def lines(self) -> list[str]:
        """Return the figures, and whether they are what they are to be, for people."""
        verdicts = [target.verdict(self.figures) for target in self.targets]
        return [
            self.title,
            *(
                f"  {contestant}: "
                + ", ".join(
                    f"{_shown(value)} {name.replace('_', ' ')}" for name, value in of.items()
                )
                for contestant, of in self.figures.items()
            ),
            *(f"  {verdict}" for verdict in verdicts if verdict is not None),
        ]


@dataclass(frozen=True)
class RaceReport(Report):
    """The same of a race, as a table."""

    def lines(self) -> list[str]:
        """Return the figures, and whether they are what they are to be, for people."""
        _, *rest = super().lines()
        table = [
            f"  {of['ratio']:6.2f}  {of['microseconds']:11,.1f} us  {contestant}"
            + "".join(f", {_shown(rate)} {name}" for name, rate in list(of.items())[2:])
            for contestant, of in self.figures.items()
        ]
        return [self.title, *table, *rest[len(self.figures) :]]


@dataclass
class Benchmark:
    """Contestants that do the same work.

    Args:
        unit: What one unit of the work is.
        units: How many units a contestant does in one call.
        contestants: By name; the first one is the reference. One that returns a float has
            measured its CPU seconds itself.
        targets: What the figures are to be: `microseconds`, and the rates.
        rates: How much of what there is in one unit, to tell how much of it a second.
        turns: How many rounds are made for each one that is asked for. What takes little time is
            measured more often.
    """

    unit: str
    units: int
    contestants: Mapping[str, Callable[[], object]]
    targets: Sequence[Target] = ()
    rates: Mapping[str, float] = field(default_factory=dict[str, float])
    turns: int = 1


def race(
    prepare: Callable[[], AbstractContextManager[Benchmark]],
) -> Callable[[int], Report]:
    """Return what runs the contestants in turns, so many rounds, and compares the medians.

    They take turns within each round, so that a noisy machine slows all of them alike. A round
    that is not counted comes first.
    """

    def run(rounds: int) -> Report:
        with prepare() as benchmark:
            spent: dict[str, list[float]] = {name: [] for name in benchmark.contestants}
            for _ in range(rounds * benchmark.turns + 1):
                for name, contestant in benchmark.contestants.items():
                    gc.collect()
                    began = time.process_time()
                    own = contestant()
                    seconds = own if isinstance(own, float) else time.process_time() - began
                    spent[name].append(seconds / benchmark.units)
        medians = {name: statistics.median(times[1:]) for name, times in spent.items()}
        reference = next(iter(medians.values()))
        figures = {
            name: {"microseconds": median * 1e6, "ratio": median / reference}
            | {f"{rate} a second": of / median for rate, of in benchmark.rates.items()}
            for name, median in medians.items()
        }
        return RaceReport(f"CPU time per {benchmark.unit}", figures, benchmark.targets)

    return run


@contextmanager
def on_one_cpu() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, on one CPU, if the system can.

    With two CPUs, the server has often answered before a slow contestant looks for the response,
    while a fast one goes to sleep and pays for waking up. Depending on where the scheduler places
    the two, the same code takes between 1.2 and 1.8 ms for a lifecycle.
    """
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def installed(distributions: Iterable[str]) -> list[str]:
    """Return those of *distributions* that are installed, and tell which are not."""
    found: list[str] = []
    for distribution in distributions:
        try:
            version(distribution)
        except PackageNotFoundError:
            print(f"left out, because it is not installed: {distribution}", file=sys.stderr)
        else:
            found.append(distribution)
    return found


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"  # noqa: PLR2004  # for people
