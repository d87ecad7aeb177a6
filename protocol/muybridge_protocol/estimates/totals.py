"""What many requests consume and cost together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

import attrs

from muybridge_protocol.estimates.estimate import Estimate
from muybridge_protocol.estimates.units import EXACT


@attrs.frozen
class Sum:
    """The sum of what is known, and how many requests it does not contain.

    Args:
        known: The sum over the requests whose value is known.
        unknown: How many requests have an unknown value.
    """

    known: Decimal = Decimal(0)
    unknown: int = 0

    @property
    def total(self) -> Decimal | None:
        """The sum over all requests, or None if a value is unknown."""
        return None if self.unknown else self.known

    def plus(self, amount: Decimal | int | None) -> Sum:
        """Return the sum with one request more, whose *amount* may be unknown."""
        if amount is None:
            return Sum(self.known, self.unknown + 1)
        return Sum(EXACT.add(self.known, Decimal(amount)), self.unknown)

    def __add__(self, other: Sum) -> Sum:
        return Sum(EXACT.add(self.known, other.known), self.unknown + other.unknown)


@attrs.frozen(kw_only=True)
class Total:
    """What some requests consume and cost together.

    Args:
        requests: How many they are.
        creates: How many tasks they create.
        calls: How many text calls they make.
        pictures: How many pictures they make.
        seconds: How many seconds of video they make.
        tokens: How many tokens they take.
        reference_images: How many reference images they have.
        reference_videos: How many reference videos they have.
        reference_sounds: How many reference sounds they have.
        reference_seconds: How long the reference videos and sounds are.
        cost: What they cost.
    """

    requests: int = 0
    creates: int = 0
    calls: int = 0
    pictures: Sum = Sum()
    seconds: Sum = Sum()
    tokens: Sum = Sum()
    reference_images: int = 0
    reference_videos: int = 0
    reference_sounds: int = 0
    reference_seconds: Sum = Sum()
    cost: Sum = Sum()

    def plus(self, estimate: Estimate) -> Total:
        """Return the total with one request more."""
        one = estimate.quantities
        return Total(
            requests=self.requests + 1,
            creates=self.creates + one.creates,
            calls=self.calls + one.calls,
            pictures=self.pictures.plus(one.pictures),
            seconds=self.seconds.plus(one.seconds),
            tokens=self.tokens.plus(one.tokens),
            reference_images=self.reference_images + one.reference_images,
            reference_videos=self.reference_videos + one.reference_videos,
            reference_sounds=self.reference_sounds + one.reference_sounds,
            reference_seconds=self.reference_seconds.plus(one.reference_seconds),
            cost=self.cost.plus(estimate.cost),
        )

    def __add__(self, other: Total) -> Total:
        names = [field.name for field in attrs.fields(Total)]
        return Total(**{name: getattr(self, name) + getattr(other, name) for name in names})


@attrs.frozen(kw_only=True)
class Group:
    """The requests that share a price.

    Args:
        family: Their family, or `text`.
        model: Their model, or None if they name none.
        tier: Their quality or resolution, or None if there is none or it is not known.
    """

    family: str
    model: str | None = None
    tier: str | None = None


@attrs.frozen
class Totals:
    """What many requests consume and cost, by family, model and tier.

    Args:
        groups: The total of each group, in the order of their first requests.
        currency: What costs are counted in, or None if no prices were given.
    """

    groups: Mapping[Group, Total] = attrs.field(factory=dict[Group, Total])
    currency: str | None = None

    @classmethod
    def of(cls, estimates: Iterable[Estimate], currency: str | None = None) -> Totals:
        """Return the totals of *estimates*, which are read one at a time.

        Args:
            estimates: One for each request, all with the same prices.
            currency: What costs are counted in, or None if no prices were given.
        """
        groups: dict[Group, Total] = {}
        for estimate in estimates:
            one = estimate.quantities
            group = Group(family=one.family, model=one.model, tier=one.tier)
            groups[group] = groups.get(group, Total()).plus(estimate)
        return cls(groups, currency)

    @property
    def total(self) -> Total:
        """The total of all groups, which is zero without any."""
        return sum(self.groups.values(), Total())
