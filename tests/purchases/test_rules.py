"""What news and people make of a purchase, as the tables of the rules have it."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import (
    CreateAmbiguous,
    NotSent,
    RateLimited,
    Refused,
    Unauthorized,
)
from muybridge_protocol.estimates import Quantities
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.purchases import (
    NAMED,
    NOTHING,
    UNKNOWN_END,
    Amounts,
    Budget,
    CannotDecide,
    Choice,
    Item,
    Measure,
    Order,
    Outcome,
    Purchase,
    Stage,
    State,
    all_countable,
    amounts_of,
    concluded,
    contested,
    decided,
    followed,
    judged,
    minus,
    plus,
    priced,
    read_amounts,
    read_sums,
    totals,
    written_amounts,
    written_sums,
)
from muybridge_protocol.records.tasks import Task

ONE: Amounts = {it: Decimal(1) if it is Measure.CREATES else Decimal(0) for it in Measure}
ARMED = Purchase(key="k", account="a", owner="o", state=State.ARMED, armed_at=0.0, amounts=ONE)
ACCEPTED = Outcome(state=State.ACCEPTED, task=Task(id="T"))
RELEASED = Outcome(state=State.RELEASED, reason="429")
AMBIGUOUS = Outcome(state=State.AMBIGUOUS, reason="cut off", candidate="C", response=b"{")
OUTCOMES = (ACCEPTED, RELEASED, AMBIGUOUS, UNKNOWN_END)


def in_state(state: State) -> Purchase:
    """Return a purchase that came to *state* as purchases do."""
    doubtful = concluded(ARMED, AMBIGUOUS)
    match state:
        case State.ARMED:
            return ARMED
        case State.ACCEPTED:
            return concluded(ARMED, ACCEPTED)
        case State.RELEASED:
            return concluded(ARMED, RELEASED)
        case State.AMBIGUOUS:
            return doubtful
        case State.ABANDONED:
            return decided(doubtful, Choice.ABANDON, 5.0)
        case State.RESUBMITTED:
            return decided(doubtful, Choice.RESUBMIT, 5.0)


@pytest.mark.parametrize(("state", "outcome"), [*product(State, OUTCOMES)])
def test_news_makes_nothing_armed_and_loses_no_id(state: State, outcome: Outcome) -> None:
    """Whatever arrives, whenever: the purchase is not armed again, and keeps or gets its task."""
    before = in_state(state)
    after = concluded(before, outcome)
    assert after.state is not State.ARMED
    known = {one for one in (before.task, outcome.task and outcome.task.id) if one is not None}
    assert known <= {after.task, after.late}


@pytest.mark.parametrize(("state", "outcome"), [*product(State, OUTCOMES)])
def test_news_that_is_repeated_changes_nothing(state: State, outcome: Outcome) -> None:
    """A conclusion may be recorded any number of times."""
    after = concluded(in_state(state), outcome)
    assert concluded(after, outcome) == after


@pytest.mark.parametrize("state", [State.RELEASED, State.ABANDONED, State.RESUBMITTED])
@pytest.mark.parametrize("outcome", [RELEASED, AMBIGUOUS, UNKNOWN_END])
def test_a_decision_stands_unless_a_task_arrives(state: State, outcome: Outcome) -> None:
    """Only a paid id is worth more than what a person has decided."""
    before = in_state(state)
    assert concluded(before, outcome) == before
    assert concluded(before, ACCEPTED).task == "T"


def test_a_task_that_a_person_named_stays_beside_the_one_that_arrives() -> None:
    """Both ids are known, and the person's stays the purchase's."""
    adopted = decided(in_state(State.AMBIGUOUS), Choice.ADOPT, 5.0, Task(id="GUESS"))
    after = concluded(adopted, ACCEPTED)
    assert after.task == "GUESS"
    assert after.late == Task(id="T").to_token()


def test_whoever_finds_the_sender_dead_takes_no_evidence_away() -> None:
    """The reason, the response and the candidate of the exchange stay."""
    before = in_state(State.AMBIGUOUS)
    assert concluded(before, UNKNOWN_END) == before


def test_evidence_replaces_that_nothing_is_known() -> None:
    """The sender was only paused: what it has seen says more."""
    after = concluded(concluded(ARMED, UNKNOWN_END), AMBIGUOUS)
    assert (after.reason, after.candidate, after.response) == ("cut off", "C", b"{")


@pytest.mark.parametrize("state", State)
def test_a_task_of_another_purchase_is_a_candidate(state: State) -> None:
    """It is never the task of two purchases, and it is not lost."""
    other = attrs.evolve(ARMED, key="other", name="once horse")
    after = contested(in_state(state), ACCEPTED, other)
    expected = {State.ARMED: State.AMBIGUOUS}.get(state, state)
    assert after.state is expected
    if state is State.ARMED:
        assert after.candidate == "T"
        assert "purchase other (horse)" in str(after.reason)
    elif state is not State.AMBIGUOUS:
        assert "T" in (after.task, after.late and Task.from_token(after.late).id)


@pytest.mark.parametrize(("state", "choice"), [*product(State, Choice)])
def test_only_ambiguous_purchases_are_decided(state: State, choice: Choice) -> None:
    """A person decides where nobody knows, and nowhere else."""
    task = Task(id="MINE") if choice is Choice.ADOPT else None
    if state is State.AMBIGUOUS:
        after = decided(in_state(state), choice, 5.0, task)
        assert after.decided_at == 5.0
        assert after.is_spent == (choice is not Choice.RELEASE)
        assert (after.state in NAMED) == (choice in (Choice.ADOPT, Choice.ABANDON))
    else:
        with pytest.raises(CannotDecide):
            decided(in_state(state), choice, 5.0, task)


def test_a_task_that_a_person_named_may_be_corrected() -> None:
    """The service's own word may not."""
    adopted = decided(in_state(State.AMBIGUOUS), Choice.ADOPT, 5.0, Task(id="WRONG"))
    assert decided(adopted, Choice.ADOPT, 6.0, Task(id="RIGHT")).task == "RIGHT"
    assert decided(adopted, Choice.ABANDON, 6.0).task is None
    with pytest.raises(CannotDecide):
        decided(adopted, Choice.RELEASE, 6.0)


def test_adopting_needs_a_task_and_nothing_else_does() -> None:
    """A mistake of the caller's."""
    for choice, task in ((Choice.ADOPT, None), (Choice.RELEASE, Task(id="T"))):
        with pytest.raises(ValueError, match="name the task"):
            decided(in_state(State.AMBIGUOUS), choice, 5.0, task)


FAILURE = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)


@pytest.mark.parametrize(
    ("outcome", "state", "stage"),
    [
        (None, State.RELEASED, Stage.CLAIMED),
        (Task(id="T"), State.ACCEPTED, None),
        (CreateAmbiguous(reason="r", candidate_id="C", raw=b"x"), State.AMBIGUOUS, None),
        (NotSent(failure=FAILURE, attempts=3), State.RELEASED, Stage.QUEUED),
        (Refused(status=400), State.RELEASED, Stage.REFUSED),
        (Refused(status=402), State.RELEASED, Stage.QUEUED),
        (Unauthorized(status=401), State.RELEASED, Stage.QUEUED),
        (RateLimited(status=429), State.RELEASED, Stage.QUEUED),
        ("an answer", State.ACCEPTED, None),
        *((HttpResponse(it, (), b""), State.ACCEPTED, None) for it in (200, 204)),
        *((HttpResponse(it, (), b""), State.RELEASED, None) for it in (400, 404, 429)),
        *((HttpResponse(it, (), b""), State.AMBIGUOUS, None) for it in (302, 408, 409, 499, 500)),
    ],
    ids=str,
)
def test_the_verdict(outcome: object, state: State, stage: Stage | None) -> None:
    """Each end of a paid exchange has one meaning."""
    known = judged(outcome)
    assert known.state is state
    assert stage in (None, known.leads_to)
    assert known.candidate == getattr(outcome, "candidate_id", None)
    assert known.task == (outcome if isinstance(outcome, Task) else None)


def test_what_a_request_consumes() -> None:
    """What is not known is not zero."""
    wanted = Quantities(family="vidv", creates=1, seconds=None)
    assert amounts_of(wanted, None) == {
        Measure.CREATES: 1, Measure.PICTURES: 0, Measure.SECONDS: None, Measure.CALLS: 0,
        Measure.COST: None,
    }  # fmt: skip


AMOUNTS = st.fixed_dictionaries(
    dict.fromkeys(Measure, st.none() | st.decimals(min_value=0, allow_nan=True))
).map(all_countable)


@given(st.lists(AMOUNTS, max_size=8))
def test_sums_are_exact_and_whole_when_everything_is_taken_back(bought: list[Amounts]) -> None:
    """Whatever was added and taken away again leaves nothing, and JSON keeps all of it."""
    sums = NOTHING
    for one in bought:
        assert read_amounts(written_amounts(one)) == one
        sums = plus(sums, one)
    assert read_sums([written_sums(sums)]) == sums
    for one in bought[::-1]:
        sums = minus(sums, one)
    assert totals(sums) == dict.fromkeys(Measure, Decimal(0))


@given(st.decimals(min_value=0, allow_nan=True))
def test_an_amount_is_counted_in_full_or_unknown(amount: Decimal) -> None:
    """A budget never counts less than a request consumes."""
    known = all_countable({**ONE, Measure.COST: amount})[Measure.COST]
    assert known is None or known >= amount


def test_a_person_gives_an_unknown_amount() -> None:
    """Only what was given changes."""
    unknown = attrs.evolve(ARMED, amounts={**ONE, Measure.COST: None, Measure.SECONDS: None})
    after = priced(unknown, {Measure.COST: Decimal("0.04")})
    assert after.amounts == {**ONE, Measure.COST: Decimal("0.04"), Measure.SECONDS: None}


MIDNIGHT = 1_772_323_200.0  # 2026-03-01, 00:00 UTC


@pytest.mark.parametrize(
    ("per", "wall", "first", "last"),
    [
        ("day", MIDNIGHT, 20513, 20513),
        ("day", MIDNIGHT - 0.001, 20512, 20512),
        ("month", MIDNIGHT, 20513, 20543),
        ("month", MIDNIGHT - 0.001, 20485, 20512),
    ],
)
def test_the_days_of_a_period(per: str, wall: float, first: int, last: int) -> None:
    """The last moment of February belongs to the 28 days of February."""
    assert Budget(creates=1, per=per).days(wall) == (first, last)  # type: ignore[arg-type]
    assert Budget(creates=1).days(wall) is None


@pytest.mark.parametrize("text", ["", "a\nb", "\x00", "\ud800", "x" * 501])
def test_names_and_tags_are_what_every_database_keeps(text: str) -> None:
    """A name that a database changed would be another name."""
    with pytest.raises(ValueError, match="printable"):
        Order(account="a", amounts=ONE, name=text)
    with pytest.raises(ValueError, match="printable"):
        Order(account="a", amounts=ONE, tags=(text and f"customer={text}",))


@pytest.mark.parametrize("text", ["customer", "=acme"])
def test_a_tag_is_a_key_and_a_value(text: str) -> None:
    """A budget for a key alone would not know whom it concerns."""
    with pytest.raises(ValueError, match="is no tag: write KEY=VALUE"):
        Order(account="a", amounts=ONE, tags=(text,))


ITEM = Item(
    batch=1, number=2, name="", stem="s", family="imga", body="{}", stage=Stage.ARMED, owner="w",
    purchase="k",
)  # fmt: skip
OF_ITEM = attrs.evolve(ARMED, batch=1, number=2)


@pytest.mark.parametrize(
    ("outcome", "stage", "owner"),
    [
        (ACCEPTED, Stage.SUBMITTED, "w"),
        (AMBIGUOUS, Stage.AMBIGUOUS, None),
        (Outcome(state=State.RELEASED), Stage.CLAIMED, "w"),
        (Outcome(state=State.RELEASED, leads_to=Stage.QUEUED), Stage.QUEUED, None),
        (Outcome(state=State.RELEASED, leads_to=Stage.REFUSED), Stage.REFUSED, None),
    ],
)
def test_an_item_follows_its_purchase(outcome: Outcome, stage: Stage, owner: str | None) -> None:
    """It is never judged a second time."""
    after = followed(ITEM, concluded(OF_ITEM, outcome), outcome)
    assert (after.stage, after.owner) == (stage, owner)


@pytest.mark.parametrize(
    ("outcome", "stage"),
    [(ACCEPTED, Stage.SUBMITTED), (AMBIGUOUS, Stage.JOINED), (RELEASED, Stage.QUEUED)],
)
def test_an_item_that_has_joined_follows_the_other_purchase(outcome: Outcome, stage: Stage) -> None:
    """It waits while nobody knows, and its own turn comes if nothing was bought."""
    joined = attrs.evolve(ITEM, number=3, stage=Stage.JOINED, owner=None)
    assert followed(joined, concluded(OF_ITEM, outcome), outcome).stage is stage


def test_an_item_that_has_gone_on_is_left_alone() -> None:
    """A late outcome of an earlier purchase cannot reach it."""
    later = attrs.evolve(ITEM, purchase="another")
    assert followed(later, concluded(OF_ITEM, RELEASED), RELEASED) == later
    done = attrs.evolve(ITEM, stage=Stage.DOWNLOADED, owner=None)
    assert followed(done, concluded(OF_ITEM, ACCEPTED), ACCEPTED) == done


@pytest.mark.parametrize("stage", [Stage.QUEUED, Stage.ABANDONED])
def test_a_late_task_reaches_an_item_for_which_nothing_was_bought_since(stage: Stage) -> None:
    """Otherwise, the item would be paid for again, or its picture be lost."""
    waiting = attrs.evolve(ITEM, stage=stage, owner=None)
    bought = concluded(attrs.evolve(OF_ITEM, state=State.RESUBMITTED), ACCEPTED)
    assert followed(waiting, bought, ACCEPTED).stage is Stage.SUBMITTED
