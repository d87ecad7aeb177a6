"""The metrics that a program gets from its meters, kept for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)


class Meters:
    """A meter provider, and what was recorded with it."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that have any data."""
        data = self._reader.get_metrics_data()
        scopes = (
            []
            if data is None
            else [it for one in data.resource_metrics for it in one.scope_metrics]
        )
        return [metric for scope in scopes for metric in scope.metrics]

    def points(self, name: str) -> Iterator[NumberDataPoint | HistogramDataPoint]:
        """Yield the data of a metric, for each set of attributes."""
        for metric in self.metrics:
            if metric.name == name:
                yield from cast("Any", metric.data.data_points)

    def sums(self, name: str, *by: str) -> Mapping[Any, float]:
        """Return the sums of a metric by one attribute, or by several."""
        found: dict[Any, float] = {}
        for point in self.points(name):
            told = dict(point.attributes or {})
            key: Any = tuple(told.get(one) for one in by)
            key = key[0] if len(by) == 1 else key
            value = point.sum if isinstance(point, HistogramDataPoint) else point.value
            found[key] = found.get(key, 0) + value
        return found

    def total(self, name: str) -> float:
        """Return the sum of a metric."""
        return sum(self.sums(name).values())
