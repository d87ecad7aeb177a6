"""Steps of purchases, and how a list of them becomes one transaction.

Every transaction takes its locks in one order, so that none waits for another that waits for it:
purchases that exist, by key; their tasks; new purchases, by name; items; owners; sums, by tag.
Each step has its own verdict. It sees the steps before it, and one that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

import attrs

from muybridge.purchases.environment import place_in_commands
from muybridge.purchases.errors import (
    Exceeded,
    Lost,
    NameHeld,
    StoreUnusable,
)
from muybridge.purchases.history import Duration, keep
from muybridge.purchases.items import (
    Place,
    armed_item,
    lock_items,
    parts_of,
    place_of,
    update_items,
)
from muybridge.purchases.lists import Member
from muybridge.purchases.port import Conflict, Mark, Rows
from muybridge.purchases.schema import COLUMNS, EVER, VERSION, listed
from muybridge_protocol.identifiers import shown_id
from muybridge_protocol.purchases import (
    DAY,
    EVERYTHING,
    NAMED,
    NOTHING,
    Amounts,
    Budget,
    CannotDecide,
    Item,
    Measure,
    Order,
    Outcome,
    Purchase,
    Stage,
    State,
    StoredBudget,
    Sums,
    concluded,
    contested,
    day_of,
    followed,
    minus,
    plus,
    read_amounts,
    read_budget,
    read_sums,
    totals,
    written_amounts,
    written_sums,
)
from muybridge_protocol.purchases.names import SAME, Identity
from muybridge_protocol.purchases.purchase import called
from muybridge_protocol.records.json import readable
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.remedies import Remedy, RemedyKind


@attrs.frozen(eq=False, kw_only=True)
class Arming:
    """A purchase that is about to be sent.

    Args:
        order: What is bought.
        key: Its key.
        owner: Who will send it.
        lasts: Seconds after which its exchange has certainly ended.
        budgets: What the sender must not exceed, besides what the store limits for everybody. They
            count everybody.
        item: The item that it is for, or None. It is claimed and armed in the same transaction.
    """

    order: Order
    key: str
    owner: str
    lasts: float
    budgets: Sequence[Budget] = ()
    item: Place | None = None


@attrs.frozen(eq=False)
class News:
    """How the POST of a purchase has ended.

    Args:
        key: The purchase.
        outcome: The outcome.
    """

    key: str
    outcome: Outcome


@attrs.frozen(eq=False)
class Withdrawal:
    """That the POST of a purchase was not begun, and will not be.

    Args:
        key: The purchase, if there is one.
    """

    key: str


@attrs.frozen(eq=False)
class Decision:
    """What a person has decided about a purchase, or has found out.

    Args:
        key: The purchase.
        change: Returns the purchase as it is then, given the time.
        wall: The time by this machine's clock, if nobody may be sending the purchase, or None if
            that does not matter.
    """

    key: str
    change: Callable[[Purchase, float], Purchase]
    wall: float | None = None


@attrs.frozen(eq=False, kw_only=True)
class Moving:
    """A step of an item that concerns no purchase.

    Args:
        item: The item as it was read.
        after: Its next stage, or the same one.
        facts: Its other values.
    """

    item: Item
    after: Stage
    facts: Mapping[str, Any]


_NOT_SENT: Final = Outcome(state=State.RELEASED, reason="it was not sent")
Step = Arming | News | Withdrawal | Decision | Moving | Duration


def alone(step: Step) -> frozenset[Hashable]:
    """Return what no two steps of a list may share: a name or an item, whose state each sees."""
    if not isinstance(step, Arming):
        return frozenset()
    name = None if step.order.name is None else (step.order.account, step.order.name)
    return frozenset(one for one in (name, step.item) if one is not None)


class Transaction:
    """One transaction of a store, as every one of them begins: with a look at the store itself.

    Args:
        rows: The database's.
        place: Where the store is, for messages.
        salt: The salt of the store, if it is known.
        mark: A purchase that the store must have, or None.

    Raises:
        StoreUnusable: It is another store, an older copy, or of another version.
    """

    def __init__(self, rows: Rows, place: str, salt: str | None, mark: Mark | None) -> None:
        self.rows = rows
        self._place = place
        self._items: dict[str, tuple[Place, Item]] = {}
        stores = rows.run(
            "SELECT salt, version, pruned_before, {now}, "
            "(SELECT count(*) FROM muybridge_purchases WHERE key = :key) FROM muybridge_store",
            key="" if mark is None else mark.key,
        )
        if len(stores) != 1:
            raise StoreUnusable(f"{place} is not a store of purchases, or is damaged. {REPAIR}")
        salt_here, version, pruned, now, has_mark = stores[0]
        self.salt: str = str(salt_here)
        self.now: float = float(now)
        if version != VERSION:
            raise StoreUnusable(f"{place} {of_version(int(version))}")
        # A purchase from before the last pruning may be missing because it was pruned.
        is_older = (
            mark is not None
            and mark.salt == self.salt
            and not has_mark
            and mark.armed_at >= float(pruned)
        )
        if (salt is not None and salt != self.salt) or is_older:
            raise StoreUnusable(f"{place} {REPLACED}", lacks="past")

    def carry_out(
        self,
        members: Sequence[Member[Step]],
        *,
        leases: bool,
        part: int,
        limited: set[str],
    ) -> Mark | None:
        """Write the steps of *members*, and return the last purchase that is new, or None.

        The results are to be trusted only once the transaction has ended.

        Args:
            members: The steps, in order of arrival.
            leases: Whether owners live on leases.
            part: Into which part of the sums to write.
            limited: Which tags are probably limited. It is corrected.
        """
        sums = _Sums(self.rows, part)
        # In this order, because it is the order of the locks.
        changed = self._change_all(members, sums)
        armed = self._insert_all(members, leases=leases)
        self._move_items(changed, armed, members)
        self._check_owners(armed, leases=leases)
        self._keep_within_budgets(armed, sums, limited)
        sums.write()
        keep(self.rows, [one.step for one in members if isinstance(one.step, Duration)])
        new = [one.result for one in armed if one.error is None]
        return Mark(self.salt, new[-1].key, new[-1].armed_at) if new else None

    # Purchases that exist

    def _change_all(
        self, members: Sequence[Member[Step]], sums: _Sums
    ) -> dict[str, tuple[Purchase, Outcome | None]]:
        """Change purchases that exist. Return those that have changed, each with its last news."""
        news: dict[str, Outcome | None] = {}
        steps = [(one, one.step) for one in members if isinstance(one.step, _OF_EXISTING)]
        for key in sorted(step.key for _, step in steps if isinstance(step, Withdrawal)):
            find_for_good(self.rows, key)  # which waits for a commit that may still be under way
        known = find_all(self.rows, {step.key for _, step in steps}, "{for_update}")
        before = dict(known)
        # Which purchase has which task by an earlier step of this list: no row shows that yet.
        tasks: dict[tuple[str, str], str] = {}
        for one, step in steps:
            if step.key not in known:
                one.error = _missing(step.key)
                continue
            try:
                after = self._changed(step, known[step.key], tasks)
            except (CannotDecide, ValueError) as error:
                one.error = error
                continue
            if after != known[step.key]:
                news[step.key] = self._outcome(step)
            known[step.key] = after
            if after.task is not None:
                tasks[after.account, after.task] = after.key
            one.result = after
        changed = [after for key, after in known.items() if after != before[key]]
        # Two transactions that write the same tasks wait for each other at the unique index: in one
        # order.
        changed.sort(key=lambda it: (it.account, it.task or "", it.key))
        for after in changed:
            self._update(before[after.key], after)
            sums.count(before[after.key], after)
        return {after.key: (after, news[after.key]) for after in changed}

    def _outcome(self, step: Step) -> Outcome | None:
        match step:
            case News(outcome=outcome):
                return outcome
            case Withdrawal():
                return _NOT_SENT
            case _:
                return None

    def _changed(
        self,
        step: News | Withdrawal | Decision,
        before: Purchase,
        tasks: Mapping[tuple[str, str], str],
    ) -> Purchase:
        outcome = self._outcome(step)
        if isinstance(step, Decision):
            self._check_ended(step, before)
            after = step.change(before, self.now)
        else:
            assert outcome is not None  # noqa: S101  for type checkers
            after = concluded(before, outcome)
        if after.task is not None and after.task != before.task:
            other = self._other_with_task(after, tasks)
            if other is not None and isinstance(step, Decision):
                raise CannotDecide(f"{called(other)} already has task {shown_id(after.task)}")
            if other is not None and isinstance(step, News):
                after = contested(before, step.outcome, other)
        if isinstance(step, Decision):
            self._check_release(before, after, tasks)
        if after.holds_name and not before.holds_name:  # perhaps somebody has bought under it since
            holder = named(self.rows, after.account, str(after.name))
            if holder is not None and holder.key != after.key:
                after = attrs.evolve(after, name=None)
        return after

    def _check_ended(self, step: Decision, before: Purchase) -> None:
        """Check that nobody can be sending *before*, by the store's clock and by this machine's.

        The store's may have been set forward since.
        """
        if step.wall is None or before.sending_until is None:
            return
        left = before.sending_until - min(self.now, step.wall)
        if left > 0:
            raise CannotDecide(
                f"{called(before)} may still be under way for {left:.0f} seconds. Decide later",
                later=True,
            )

    def _check_release(
        self, before: Purchase, after: Purchase, tasks: Mapping[tuple[str, str], str]
    ) -> None:
        """Check that what a person releases has no task, as far as anybody can tell.

        An id in its response is the best sign that it was accepted, unless it is the id of the task
        of another purchase.
        """
        if before.candidate is None or (before.state, after.state) != (
            State.AMBIGUOUS, State.RELEASED,
        ):  # fmt: skip
            return
        candidate = attrs.evolve(before, task=before.candidate)
        if self._other_with_task(candidate, tasks) is None:
            raise CannotDecide(
                f"the response to {called(before)} has the id {shown_id(before.candidate)}, so it "
                "was probably accepted and charged. Adopt that task, or abandon the purchase"
            )

    def _other_with_task(
        self, purchase: Purchase, tasks: Mapping[tuple[str, str], str]
    ) -> Purchase | None:
        account, task = purchase.account, str(purchase.task)
        key = tasks.get((account, task))
        if key is not None and key != purchase.key:
            return find_all(self.rows, {key})[key]
        others = self.rows.run(
            f"{SELECT} WHERE account = :account AND task = :task AND key <> :key",
            account=account, task=indexed(task), key=purchase.key,
        )  # fmt: skip
        return read(others[0]) if others else None

    def _update(self, before: Purchase, after: Purchase) -> None:
        old, new = written(before), written(after)
        changes = {name: value for name, value in new.items() if value != old[name]}
        self.rows.run(
            f"UPDATE muybridge_purchases SET {', '.join(f'{it} = :{it}' for it in changes)} "
            "WHERE key = :key", key=after.key, **changes,
        )  # fmt: skip

    # New purchases

    def _insert_all(self, members: Sequence[Member[Step]], *, leases: bool) -> list[Member[Step]]:
        """Insert what is armed, unless the name is held. Return what was inserted."""
        wanted: list[tuple[Member[Step], Purchase]] = []
        for one in members:
            step = one.step
            if isinstance(step, Arming) and not self._is_committed(one, step):
                until = self.now + step.lasts if leases else None
                new = Purchase.of(step.order, step.key, step.owner, self.now, until)
                if step.item is not None:
                    new = attrs.evolve(new, batch=step.item[0], number=step.item[1])
                wanted.append((one, new))
        if not wanted:
            return []
        # In one order, because inserts under the same name wait for each other at the unique index.
        in_order = sorted(wanted, key=lambda it: (it[1].account, it[1].name or "", it[1].key))
        self.rows.run_each(INSERT, [written(new) for _, new in in_order])
        # The insert skips those whose name is held, and does not say which. Only names can be held:
        # a key is drawn at random.
        inserted = self._keys(new.key for _, new in wanted if new.name is not None)
        armed: list[Member[Step]] = []
        for one, new in wanted:
            if new.name is None or new.key in inserted:
                one.result = new
                armed.append(one)
                continue
            holder = named(self.rows, new.account, new.name)
            if holder is None:  # whoever had it has just lost it
                raise Conflict
            one.error = NameHeld(holder)
        return armed

    # Items

    def _move_items(
        self,
        changed: Mapping[str, tuple[Purchase, Outcome | None]],
        armed: Sequence[Member[Step]],
        members: Sequence[Member[Step]],
    ) -> None:
        """Let the items follow their purchases, arm those for which something is armed, and move.

        An item that moves is not armed in the same list: each of its steps ends before the next.
        """
        arming = [(one, one.step) for one in armed if isinstance(one.step, Arming)]
        moving = [(one, one.step) for one in members if isinstance(one.step, Moving)]
        places = [step.item for _, step in arming if step.item is not None]
        places += [place_of(step.item) for _, step in moving]
        known = lock_items(self.rows, changed, places)
        changes: dict[Place, Item] = {}
        for place, item in known.items():
            if item.purchase in changed:
                purchase, outcome = changed[str(item.purchase)]
                after = followed(item, purchase, outcome)
                if after != item:
                    known[place] = changes[place] = after
        for one, step in arming:
            if step.item is None:
                continue
            mine = armed_item(known.get(step.item), step.owner, step.key)
            if mine is None:
                self._take_back(one, Lost(f"item {step.item[1]} is another worker's, or is done"))
            else:
                self._items[step.key] = (step.item, known[step.item])
                changes[step.item] = mine
        for one, move in moving:
            place, read = place_of(move.item), move.item
            now = known.get(place)
            if now is None or (now.stage, now.owner) != (read.stage, read.owner):
                one.error = Lost(f"item {read.number} is another worker's, or is done")
                continue
            one.result = attrs.evolve(now, stage=move.after, **move.facts)
            known[place] = changes[place] = one.result
        update_items(self.rows, changes)

    def _is_committed(self, one: Member[Step], step: Arming) -> bool:
        """Whether an earlier transaction, of whose end nobody knew, has committed a step."""
        if not one.is_uncertain:
            return False
        purchase = find_for_good(self.rows, step.key)
        if purchase is not None and purchase.state is not State.ARMED:
            one.error = Lost(f"{called(purchase)} is {purchase.state}")
        one.result = purchase
        return purchase is not None

    def _keys(self, keys: Iterable[str]) -> set[str]:
        names = {f"key{n}": key for n, key in enumerate(keys)}
        if not names:
            return set()
        found = self.rows.run(
            f"SELECT key FROM muybridge_purchases WHERE key IN (:{', :'.join(names)})", **names
        )
        return {str(key) for (key,) in found}

    def _check_owners(self, armed: list[Member[Step]], *, leases: bool) -> None:
        """Refuse what owners arm who were declared dead, or whose lease has expired."""
        armed = [one for one in armed if one.error is None]
        for owner in sorted({str(one.result.owner) for one in armed}):
            try:
                self.check_alive(owner, leases=leases)
            except Lost as error:
                for one in armed:
                    if one.result.owner == owner:
                        self._take_back(one, error)

    def check_alive(self, owner: str, *, leases: bool) -> None:
        """Check that *owner* has not been declared dead. Nobody does so before this has ended.

        Only an owner that takes items is registered, and has a lease.

        Raises:
            Lost: It has been, or its lease has expired.
        """
        if not leases:
            return
        owners = self.rows.run(
            "SELECT buried_at, lease_until, {now} FROM muybridge_owners WHERE id = :owner "
            "{for_share}", owner=owner,
        )  # fmt: skip
        for buried_at, until, now in owners:
            if buried_at is not None or until <= now:
                raise Lost(f"worker {owner} was declared dead, or its lease has expired")

    def _take_back(self, one: Member[Step], error: Exception) -> None:
        """Let the step fail that has inserted a purchase in this transaction."""
        key = one.result.key
        self.rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=key)
        if key in self._items:
            update_items(self.rows, dict([self._items[key]]))
        one.result, one.error = None, error

    # Budgets

    def _keep_within_budgets(
        self, armed: Sequence[Member[Step]], sums: _Sums, limited: set[str]
    ) -> None:
        """Count what is armed, and take back what does not fit into a budget."""
        new = [(one, one.step, one.result) for one in armed if one.error is None]
        tags = sorted({tag for _, _, purchase in new for tag in purchase.counted_under})
        if not tags:
            return
        # The locks come before the limits are read, so that none changes in between. Which tags are
        # limited is therefore a guess from the last time. If it was wrong, the transaction is
        # repeated.
        if any(isinstance(step, Arming) and step.budgets for _, step, _ in new):
            held = {EVERYTHING, *limited.intersection(tags)}
        else:
            held = limited.intersection(tags)
        # Whoever is limited has to see everybody's purchases, so nobody may be about to add one.
        self.rows.hold(
            [tag for tag in tags if tag in held], shared=[tag for tag in tags if tag not in held]
        )
        stored = limits_on(self.rows, tags)
        concerned: list[_Concerned] = []
        for one, _, purchase in new:
            lacking = next((it.tag for it in stored if it.lacks_tag(purchase.tags)), None)
            if lacking is not None:
                self._take_back(one, _lacking(lacking))
                concerned.append([])
                continue
            pairs = [(it, it.tag_of(purchase.tags)) for it in stored]
            concerned.append([(it, tag) for it, tag in pairs if tag is not None])
        limits = {tag for those in concerned for _, tag in those}
        limited.difference_update(tags)
        limited.update(limits)
        if not held.issuperset(limits):  # now we know
            raise Conflict
        for (one, step, purchase), those in zip(new, concerned, strict=True):
            assert isinstance(step, Arming)  # noqa: S101  for type checkers
            if one.error is not None:
                continue
            exceeded = self._exceeded(step, those, sums)
            if exceeded is not None:
                self._take_back(one, exceeded)
                continue
            counting = tuple(it.label_of(tag) for it, tag in those if it.since is not None)
            if counting:
                one.result = attrs.evolve(purchase, budgets=counting)
                self._update(purchase, one.result)
            sums.count(None, one.result)

    def _exceeded(self, step: Arming, stored: _Concerned, sums: _Sums) -> Exceeded | None:
        """Return which budget a step would exceed, or None."""
        theirs = [
            (it.budget, it.label_of(tag), f". It is {it.called(tag)} (`muybridge budget list`)")
            for it, tag in stored
        ]
        for budget, label, whose in [*theirs, *((it, EVERYTHING, "") for it in step.budgets)]:
            spent = sums.spent(label, budget, self.now)
            unpriced: list[str] = []
            unknown = partial(self._unknown, label, budget, unpriced)
            if (reason := budget.exceeded_by(step.order.amounts, spent, unknown)) is not None:
                remedies = [
                    Remedy(
                        kind=RemedyKind.PRICE, purchase=key, store=place_in_commands(self._place)
                    )
                    for key in unpriced[:1]
                ]
                amounts = step.order.amounts
                is_unknown = any(amounts[one] is None for one in budget.limits)
                return Exceeded(f"{reason}{whose}", tuple(remedies), is_unknown=is_unknown)
        return None

    def _unknown(
        self, label: str, budget: Budget, unpriced: list[str], measure: Measure
    ) -> Iterator[str]:
        """Yield what the purchases are called under *label* of which an amount is unknown.

        The keys of those whose cost a person could give are added to *unpriced*.
        """
        first, last = budget.days(self.now) or (EVER, day_of(self.now))
        matches = self.rows.run(
            # The pattern is JSON exactly as `written_amounts` writes it.
            f"{SELECT} WHERE amounts LIKE :unknown AND state <> 'released' "
            "AND armed_at >= :first AND armed_at < :last ORDER BY armed_at, key",
            unknown=f'%"{measure}": null%', first=first * DAY, last=(last + 1) * DAY,
        )  # fmt: skip
        for one in map(read, matches):
            if label in one.counted_under:
                if measure is Measure.COST:
                    unpriced.append(one.key)
                yield called(one)


_Concerned = list[tuple[StoredBudget, str]]
"""The stored budgets that limit a purchase, each with that of its tags which it limits."""


def _lacking(key: str) -> Exceeded:
    """Return why a request without a tag is not sent."""
    return Exceeded(
        f"a stored budget holds for each value of the tag {key!r}, and the request has no such "
        "tag (`muybridge budget list`)",
        (Remedy(kind=RemedyKind.TAG, option=key),),
    )


class _Sums:
    """The sums of a transaction: what there is, and what the transaction adds to it.

    Args:
        rows: The database's.
        part: Into which part of each sum to write.
    """

    def __init__(self, rows: Rows, part: int) -> None:
        self._rows = rows
        self._part = part
        self._added: dict[tuple[str, int], Sums] = {}

    def count(self, before: Purchase | None, after: Purchase) -> None:
        """Count a purchase that is new or has changed."""
        was = None if before is None or not before.is_spent else before.amounts
        now = after.amounts if after.is_spent else None
        if was == now:
            return
        day = day_of(after.armed_at)
        for tag in after.counted_under:
            for when in (EVER, day):
                sums = self._added.get((tag, when), NOTHING)
                sums = sums if was is None else minus(sums, was)
                self._added[tag, when] = sums if now is None else plus(sums, now)

    def spent(self, tag: str, budget: Budget, now: float) -> Amounts:
        """Return what counts as spent under *tag* in the current period of *budget*."""
        first, last = budget.days(now) or (EVER, EVER)
        added = [
            written_sums(sums)
            for (label, day), sums in self._added.items()
            if label == tag and first <= day <= last
        ]
        return totals(read_sums([*added, *sums_of(self._rows, tag, first, last)]))

    def write(self) -> None:
        """Write what was added."""
        added = {key: self._added[key] for key in sorted(self._added)}
        if not added:
            return
        before = self._locked(added)
        # Somebody else may insert the same rows. So insert what is missing, then lock and read
        # again.
        if before.keys() != added.keys():
            missing = [key for key in added if key not in before]
            self._rows.run_each(
                "INSERT INTO muybridge_spent (tag, day, part, sums) "
                "VALUES (:tag, :day, :part, :sums) ON CONFLICT DO NOTHING",
                [
                    {"tag": tag, "day": day, "part": self._part, "sums": written_sums(NOTHING)}
                    for tag, day in missing
                ],
            )
            before = self._locked(added)
        self._rows.run_each(
            "UPDATE muybridge_spent SET sums = :sums "
            "WHERE tag = :tag AND day = :day AND part = :part",
            [
                {
                    "tag": tag,
                    "day": day,
                    "part": self._part,
                    "sums": written_sums(read_sums([before[tag, day], written_sums(more)])),
                }
                for (tag, day), more in added.items()
            ],
        )

    def _locked(self, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
        locked: dict[tuple[str, int], str] = {}
        for some in parts_of(wanted):  # which are in order
            values: dict[str, Any] = {}
            for n, (tag, day) in enumerate(some):
                values |= {f"tag{n}": tag, f"day{n}": day}
            where = " OR ".join(f"tag = :tag{n} AND day = :day{n}" for n in range(len(some)))
            matches = self._rows.run(
                f"SELECT tag, day, sums FROM muybridge_spent WHERE part = :part AND ({where}) "
                "ORDER BY tag, day {for_update}", part=self._part, **values,
            )  # fmt: skip
            locked |= {(str(tag), int(day)): str(sums) for tag, day, sums in matches}
        return locked


# Rows


_OF_EXISTING: Final = (News, Withdrawal, Decision)
_LISTS: Final = ("tags", "budgets")
_TEXTS: Final = frozenset({"family", "model", "tier", "candidate", "reason", "owner", "account"})
_LONGEST_INDEXED: Final = 500
"""Most characters of an id that rows have as it is: at most 2,000 bytes."""
_SHORTENED: Final = "sha256:"
SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM muybridge_purchases"
INSERT: Final = (
    f"INSERT INTO muybridge_purchases ({', '.join(COLUMNS)}) VALUES (:{', :'.join(COLUMNS)}) "
    "ON CONFLICT DO NOTHING"
)


def indexed(task: str) -> str:
    """Return what stands for the id *task* in rows: every database can index it.

    PostgreSQL indexes no text of more than 2,704 bytes. The whole id is in the token.
    """
    if len(task) <= _LONGEST_INDEXED:
        return task
    return _SHORTENED + sha256(task.encode()).hexdigest()


def read_list(text: str) -> tuple[str, ...]:
    """Return the tags in a column."""
    return tuple(filter(None, text.split("\n")))


def read(row: Sequence[Any]) -> Purchase:
    """Return the purchase in a row of `SELECT`."""
    columns: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    columns["amounts"] = read_amounts(columns["amounts"])
    for name in _LISTS:
        columns[name] = read_list(columns[name])
    response = columns["response"]
    columns["response"] = None if response is None else bytes(response)
    task, token = columns["task"], columns["token"]
    if task is not None and token is not None and str(task).startswith(_SHORTENED):
        columns["task"] = Task.from_token(token).id
    return Purchase(**columns)


def written(purchase: Purchase) -> dict[str, Any]:
    """Return the row of *purchase*, with texts that every database can keep."""
    columns = {name: getattr(purchase, name) for name in COLUMNS}
    columns["amounts"] = written_amounts(purchase.amounts)
    for name in _LISTS:
        columns[name] = "\n".join(columns[name])  # tags are printable, and so have no line breaks
    columns["state"] = purchase.state.value
    if purchase.task is not None:
        columns["task"] = indexed(purchase.task)
    for name in _TEXTS:
        if columns[name] is not None:
            columns[name] = readable(columns[name], 2000)
    return columns


def find_all(rows: Rows, keys: Iterable[str], lock: str = "") -> dict[str, Purchase]:
    """Return the purchases that exist, by key."""
    purchases: dict[str, Purchase] = {}
    for some in parts_of(sorted(keys)):
        names = {f"key{n}": key for n, key in enumerate(some)}
        page = rows.run(
            f"{SELECT} WHERE key IN (:{', :'.join(names)}) ORDER BY key {lock}", **names
        )
        purchases |= {one.key: one for one in map(read, page)}
    return purchases


def find_for_good(rows: Rows, key: str) -> Purchase | None:
    """Return the purchase *key*, or None: then no transaction that is going on has it either.

    An insert with the same key waits for such a transaction.
    """
    nobody = Purchase(key=key, account="", owner="", state=State.RELEASED, armed_at=0,
                      amounts=totals(NOTHING))  # fmt: skip
    if rows.change(INSERT, **written(nobody)):
        rows.run("DELETE FROM muybridge_purchases WHERE key = :key", key=key)
        return None
    return find_all(rows, {key}).get(key)


def named(rows: Rows, account: str, name: str) -> Purchase | None:
    """Return the purchase that has a name to itself, or None."""
    matches = rows.run(
        # In the words of the unique index: a partial index is used only if its condition is
        # repeated.
        f"{SELECT} WHERE account = :account AND name = :name AND name IS NOT NULL "
        f"AND state IN ({listed(NAMED)})", account=account, name=name,
    )  # fmt: skip
    return read(matches[0]) if matches else None


def twin(rows: Rows, account: str, name: str) -> Purchase | None:
    """Return the purchase that an identical request joins under another name than its own.

    Those that join across tags, and those that do not, have different names.
    """
    identity = Identity.in_name(name)
    if identity is None:
        return None
    if identity.tags is not None:
        purchase = named(rows, account, Identity(identity.digest).name)
        same = None if purchase is None else Identity.of(identity.digest, purchase.tags)
        return purchase if same == identity else None
    rest = rows.run(
        f"{SELECT} WHERE account = :account AND digest = :digest AND digest IS NOT NULL "
        f"AND state IN ({listed(NAMED)}) AND substr(name, 1, {len(SAME) + 1}) = '{SAME} ' "
        "ORDER BY armed_at, key LIMIT 1", account=account, digest=identity.digest,
    )  # fmt: skip
    return read(rest[0]) if rest else None


SELECT_LIMITS: Final = "SELECT tag, counted_under, since, limits FROM muybridge_limits"


def read_limits(row: Sequence[Any]) -> StoredBudget:
    """Return the stored budget in a row."""
    tag, counted_under, since, limits = row
    return StoredBudget(
        tag=str(tag),
        budget=read_budget(str(limits)),
        counted_under=str(counted_under),
        since=None if since is None else float(since),
    )


def limits_of(rows: Rows, tags: Sequence[str]) -> dict[str, list[StoredBudget]]:
    """Return the stored budgets of *tags*."""
    names = {f"tag{n}": tag for n, tag in enumerate(tags)}
    matches = rows.run(
        f"{SELECT_LIMITS} WHERE tag IN (:{', :'.join(names)}) ORDER BY tag, period", **names
    )
    limits: dict[str, list[StoredBudget]] = {}
    for one in map(read_limits, matches):
        limits.setdefault(one.tag, []).append(one)
    return limits


def limits_on(rows: Rows, tags: Sequence[str]) -> list[StoredBudget]:
    """Return the stored budgets of *tags*, and those of keys, which concern every purchase."""
    names = {f"tag{n}": tag for n, tag in enumerate(tags)}
    matches = rows.run(
        # A tag without "=" is a key alone. Each of these concerns every purchase, also one without
        # it.
        f"{SELECT_LIMITS} WHERE tag IN (:{', :'.join(names)}) OR replace(tag, '=', '') = tag "
        "ORDER BY tag, period", **names,
    )  # fmt: skip
    return [*map(read_limits, matches)]


def sums_of(rows: Rows, tag: str, first: int, last: int) -> list[str]:
    """Return the sums of some days, as they are written."""
    matches = rows.run(
        "SELECT sums FROM muybridge_spent WHERE tag = :tag AND day BETWEEN :first AND :last",
        tag=tag, first=first, last=last,
    )  # fmt: skip
    return [str(sums) for (sums,) in matches]


# Messages


REPAIR: Final = (
    "Nothing is sent. Repair it if you can. A copy does not know what was paid since it was made, "
    "and a new store knows nothing: with one, you could pay twice."
)
REPLACED: Final = (
    "was removed, or replaced by another store or an older copy. Nothing is sent. Put the latest "
    "one back. Another one does not know what was paid since: with it, you could pay twice. If the "
    "latest one is lost, see `muybridge store accept --help`."
)


def _missing(key: str) -> LookupError:
    return LookupError(f"there is no purchase {key}")


def of_version(version: int) -> str:
    """Return why a store of another version is not used, and what to do."""
    if version > VERSION:
        return (
            f"has version {version}, and this muybridge knows version {VERSION}. Nothing is sent. "
            "Upgrade muybridge: another store does not know what was paid."
        )
    return (
        f"has version {version}, and this muybridge needs version {VERSION}. Nothing is sent. "
        "Stop every program that uses it, make a copy, and upgrade it: `muybridge store upgrade`."
    )
