"""Let a person decide about items, which means: about their purchases.

An ambiguous item follows its last purchase, so a decision about the item is one about that purchase
(`Store.decide_all`), and the item goes where the purchase leads. Two decisions concern an item
alone: to abandon one that is not sent yet, and to send a refused one again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import attrs

from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.running.recovery import recover
from muybridge.batch.shared import Place, folder_of, open_batch
from muybridge.purchases.consent import check_consent
from muybridge.purchases.errors import Lost
from muybridge.purchases.store import Choosing
from muybridge_protocol.purchases import CannotDecide, Choice, Stage
from muybridge_protocol.records.tasks import Task, as_task

if TYPE_CHECKING:
    from collections.abc import Generator

_UNSENT = (Stage.QUEUED, Stage.JOINED)


@attrs.frozen(kw_only=True)
class ItemDecision:
    """What a person has decided about an item.

    Args:
        entry: The item.
        choice: The decision.
        task: The task to adopt, or None.
    """

    entry: Entry
    choice: Choice
    task: Task | None = None

    @property
    def concerns_item(self) -> bool:
        """Whether it concerns the item alone, because nothing was sent for it."""
        return self.choice is Choice.ABANDON and self.entry.state in _UNSENT

    def check(self, *, not_charged: bool, i_may_pay_twice: bool) -> None:
        """Check that it applies, as far as the item says, and that what it requires was said.

        Raises:
            CannotDecide: It does not, or it was not.
        """
        entry = self.entry
        if (self.task is not None) != (self.choice is Choice.ADOPT):
            raise CannotDecide(
                f"to adopt {entry.label}, give its task"
                if self.task is None
                else f"a task is given, but the decision is {self.choice}"
            )
        if self.concerns_item and entry.owner is None:
            return
        # A person who has named a task may correct that as long as it has not ended.
        corrects = entry.state is Stage.SUBMITTED and entry.decided_at is not None
        if entry.state is Stage.JOINED:
            raise CannotDecide(
                f"{entry.label} waits for the purchase {entry.purchase} of an identical request: "
                "decide about that, or abandon the item"
            )
        if entry.state is not Stage.AMBIGUOUS and not corrects:
            raise CannotDecide(
                f"{entry.label} is {entry.state}: there is nothing to decide about it"
            )
        check_consent(
            {self.choice}, entry.label, not_charged=not_charged, i_may_pay_twice=i_may_pay_twice
        )


def adopt(out: Place, item: int | str, task: Task | str) -> Entry:
    """Declare that an ambiguous item was accepted as *task*. The next run waits for it.

    Until the task has ended, you can name another one, in case the first was wrong.

    Args:
        out: The folder of the batch, or a batch in a store.
        item: The item's number or name.
        task: The task, its token or its id.

    Raises:
        CannotDecide: The item is not ambiguous, or another purchase has this task.
        LocalError: *task* is not a valid id.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    return _decide(out, item, Choice.ADOPT, as_task(task))


def abandon(out: Place, item: int | str) -> Entry:
    """Leave an ambiguous item as it is: it is neither waited for nor resubmitted.

    This also applies to an item whose task was named by `adopt`, and to one that is not sent yet.

    Args:
        out: The folder of the batch, or a batch in a store.
        item: The item's number or name.

    Raises:
        CannotDecide: The item is neither ambiguous nor queued, or its response has arrived.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    return _decide(out, item, Choice.ABANDON)


def release(out: Place, item: int | str, *, not_charged: bool = False) -> Entry:
    """Declare that an ambiguous item was not accepted. The next run sends it again.

    Args:
        out: The folder of the batch, or a batch in a store.
        item: The item's number or name.
        not_charged: Required: the account shows that it was not charged.

    Raises:
        CannotDecide: The item is not ambiguous, *not_charged* is missing, or its response has an
            id, so that it was probably accepted.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    return _decide(out, item, Choice.RELEASE, not_charged=not_charged)


def resubmit(out: Place, item: int | str, *, i_may_pay_twice: bool = False) -> Entry:
    """Let the next run send an ambiguous item again.

    Args:
        out: The folder of the batch, or a batch in a store.
        item: The item's number or name.
        i_may_pay_twice: Required: it may have been charged.

    Raises:
        CannotDecide: The item is not ambiguous, or *i_may_pay_twice* is missing.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    return _decide(out, item, Choice.RESUBMIT, i_may_pay_twice=i_may_pay_twice)


def retry(out: Place, *items: int | str) -> tuple[Entry, ...]:
    """Queue refused items, which were not charged. The next run sends them again.

    Args:
        out: The folder of the batch, or a batch in a store.
        *items: Their numbers or names, or none for all refused items.

    Raises:
        CannotDecide: One of them is not refused. None was queued.
        StoreUnusable: The store cannot be used. None was queued.
    """
    with opened_to_decide(out) as batch:
        named = [find(batch, item) for item in items] or batch.entries(Stage.REFUSED)
        # An item may be given twice, by its name and by its number.
        entries = [*{entry.number: entry for entry in named}.values()]
        for entry in entries:
            if entry.state is not Stage.REFUSED:
                raise CannotDecide(f"{entry.label} is {entry.state}, and not refused")
        moves = [(batch.item(entry.number), Stage.QUEUED) for entry in entries]
        try:
            batch.store.decide_all([], moves=moves)
        except CannotDecide as error:
            now = batch.entry(entries[min(error.reasons)].number)
            raise CannotDecide(f"{now.label} is {now.state} by now, and not refused") from None
        return tuple(batch.entry(entry.number) for entry in entries)


def decide_items(
    batch: Batch,
    decisions: Sequence[ItemDecision],
    *,
    not_charged: bool = False,
    i_may_pay_twice: bool = False,
    only_checked: bool = False,
) -> tuple[Entry, ...]:
    """Record decisions, all or none, and return the items as they are then.

    Args:
        batch: The batch.
        decisions: The decisions.
        not_charged: Whether the account shows that what is released was not charged.
        i_may_pay_twice: Whether what is resubmitted may be paid twice.
        only_checked: Whether nothing is recorded, so that `CannotDecide` is raised in any case.

    Raises:
        CannotDecide: Some do not apply. It has the reason of each, by its place.
        StoreUnusable: The store cannot be used. Nothing was decided.
    """
    wrong: dict[int, Exception] = {}
    for n, one in enumerate(decisions):
        try:
            one.check(not_charged=not_charged, i_may_pay_twice=i_may_pay_twice)
        except CannotDecide as error:
            wrong[n] = error
    # All or none: the others are only checked then, to report all problems at once.
    only_checked |= bool(wrong)
    rest = [n for n in range(len(decisions)) if n not in wrong]
    of_items = [n for n in rest if decisions[n].concerns_item]
    of_purchases = [n for n in rest if not decisions[n].concerns_item]
    try:
        batch.store.decide_all(
            (
                Choosing(str(decisions[n].entry.purchase), decisions[n].choice, decisions[n].task)
                for n in of_purchases
            ),
            moves=[(batch.item(decisions[n].entry.number), Stage.ABANDONED) for n in of_items],
            only_checked=only_checked,
        )
    except CannotDecide as error:
        # The order in which the store was given them.
        places = [*of_purchases, *of_items]
        for n, reason in error.reasons.items():
            wrong[places[n]] = reason
            if isinstance(reason, Lost):
                now = batch.entry(decisions[places[n]].entry.number)
                wrong[places[n]] = CannotDecide(f"{now.label} is {now.state} by now: look again")
        raise CannotDecide.several(wrong) from None
    return tuple(batch.entry(one.entry.number) for one in decisions)


def find(batch: Batch, item: int | str) -> Entry:
    """Return the item with this name or number.

    Raises:
        CannotDecide: There is none, or there are several.
    """
    match batch.called(str(item)):
        case [entry]:
            return entry
        case []:
            raise CannotDecide(f"there is no item {str(item)!r} in the batch")
        case several:
            raise CannotDecide(f"{len(several)} items are called {str(item)!r}; give the number")


@contextmanager
def opened_to_decide(out: Place) -> Generator[Batch, None, None]:
    """Open a batch, after what its dead runners have heard, and nobody has read, is recorded."""
    with ExitStack() as stack:
        batch = stack.enter_context(open_batch(out))
        folder = folder_of(out)
        if folder is not None:
            recover(batch, folder)
        yield batch


def _decide(
    out: Place,
    item: int | str,
    choice: Choice,
    task: Task | None = None,
    *,
    not_charged: bool = False,
    i_may_pay_twice: bool = False,
) -> Entry:
    with opened_to_decide(out) as batch:
        decision = ItemDecision(entry=find(batch, item), choice=choice, task=task)
        try:
            [entry] = decide_items(
                batch, [decision], not_charged=not_charged, i_may_pay_twice=i_may_pay_twice
            )
        except CannotDecide as error:
            reason = error.reasons[0]
            if isinstance(reason, CannotDecide):
                raise reason from None
            raise CannotDecide(str(reason)) from None
        return entry
