"""The kit refuses databases that are wrong on purpose, and says what that would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from muybridge.purchases.sqlite import SqliteDatabase
from muybridge.testing.conformance import NotConforming
from muybridge.testing.store_conformance import StoreCapabilities, StoreConformance
from muybridge.testing.store_conformance.races import Races

from . import wrong_stores as wrong
from .kits import OnPostgres, OnSqlite

if TYPE_CHECKING:
    from batch.postgres_server import Postgres

ROWS: list[tuple[type[SqliteDatabase], str]] = [
    (wrong.Undone, "test_smoke"),
    (wrong.Truncating, "test_a_purchase_is_read_as_it_was_written"),
    (wrong.Indexing, "test_the_longest_id_is_kept"),
    (wrong.Truncating, "test_an_item_is_read_as_it_was_written"),
    (wrong.Caseless, "test_texts_are_compared_byte_by_byte"),
    (wrong.Padding, "test_texts_are_compared_byte_by_byte"),
    (wrong.Piecemeal, "test_a_transaction_that_fails_changes_nothing"),
    (wrong.Piecemeal, "test_a_transaction_that_fails_creates_no_table"),
    (wrong.Nameless, "test_what_violates_a_unique_index_is_a_conflict"),
    (wrong.Unyielding, "test_what_violates_a_unique_index_is_a_conflict"),
    (wrong.Outspoken, "test_any_other_error_is_store_unusable"),
    (wrong.Miscounting, "test_rows_that_change_are_counted"),
    (wrong.Timeless, "test_the_clock_goes_on_within_a_transaction"),
    (wrong.Overwriting, "test_it_is_created_once"),
    (wrong.Unforked, "test_a_forked_child_is_another_owner"),
    (wrong.Nameless, "test_a_name_is_paid_for_once"),
    (wrong.Piecemeal, "test_a_budget_is_used_up_and_not_exceeded"),
    (wrong.Piecemeal, "test_a_budget_while_people_decide_and_prune"),
    (wrong.Piecemeal, "test_midnight_and_the_end_of_a_month"),
    (wrong.Deaf, "test_conclusions_repeated_and_late"),
    (wrong.Shared, "test_a_task_belongs_to_one_purchase"),
    (wrong.Piecemeal, "test_an_item_is_taken_once"),
    (wrong.Piecemeal, "test_everything_at_once"),
    (wrong.Murderous, "test_a_dead_sender_is_buried_and_a_living_one_is_not"),
    (wrong.Immortal, "test_a_dead_sender_is_buried_and_a_living_one_is_not"),
    (wrong.Alone, "test_another_owner_is_one_of_its_own"),
    (wrong.Murderous, "test_the_items_of_a_dead_worker_are_free_and_those_of_a_living_one_are_not"),
    (wrong.Immortal, "test_the_items_of_a_dead_worker_are_free_and_those_of_a_living_one_are_not"),
    (wrong.Forgetful, "test_a_killed_process_has_recorded_what_it_was_about_to_send"),
    (wrong.Piecemeal, "test_a_process_killed_within_a_transaction_leaves_nothing"),
    (wrong.Hogging, "test_a_process_killed_within_a_transaction_leaves_nothing"),
    (wrong.Relaxed, "test_a_purchase_is_on_the_disk_before_it_is_sent"),
    (wrong.Folderless, "test_a_purchase_is_on_the_disk_before_it_is_sent"),
    (wrong.Remembering, "test_an_older_copy_is_noticed"),
    (wrong.Negligent, "test_an_older_copy_is_noticed_by_a_later_process"),
]


RACES = {name for name in dir(Races) if name.startswith("test_")}
TRIES = 20
"""A mistake in what happens at once shows in most races, and not in all."""


def check(kit: StoreConformance, name: str) -> Exception:
    """Return what one check of the kit finds."""
    # The smoke check shows the database's own exceptions.
    expected = Exception if name == "test_smoke" else NotConforming
    for _ in range(TRIES if name in RACES else 1):
        kit.setup_method()
        try:
            getattr(kit, name)()
        except expected as error:
            return error
        finally:
            kit.teardown_method()
    pytest.fail(f"{name} passes")


@pytest.mark.parametrize(
    ("kind", "name"), ROWS, ids=[f"{kind.__name__} {name}" for kind, name in ROWS]
)
def test_a_mistake_is_noticed(kind: type[SqliteDatabase], name: str, tmp_path: Path) -> None:
    """The check says what was expected and found, what it would cost, and where to look."""
    kit = OnSqlite()
    kit.kind, kit.folder = kind, tmp_path
    error = check(kit, name)
    if name == "test_smoke":
        return
    message = str(error)
    for words in ("expected: ", "found: ", "why: ", "look at: "):
        assert words in message


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("holds", "test_a_budget_is_used_up_and_not_exceeded"),
        ("holds for all days", "test_midnight_and_the_end_of_a_month"),
        ("a clock", "test_a_dead_sender_is_buried_and_a_living_one_is_not"),
        ("a clock", "test_the_items_of_a_dead_worker_are_free_and_those_of_a_living_one_are_not"),
    ],
)
def test_a_mistake_for_many_machines_is_noticed(what: str, name: str, postgres: Postgres) -> None:
    """Where statements of several processes meet, and only the clock tells who is alive."""
    kit = OnPostgres()
    kit.kind, kit.postgres = wrong.postgres_without(what), postgres
    check(kit, name)


def test_each_check_has_a_database_that_fails_it() -> None:
    """So that no check passes whatever a database does."""
    checks = {name for name in dir(StoreConformance) if name.startswith("test_")}
    assert checks == {name for _, name in ROWS}


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ("shows_syncs", "test_a_purchase_is_on_the_disk_before_it_is_sent"),
        ("notices_copies_later", "test_an_older_copy_is_noticed_by_a_later_process"),
        ("undoes_tables", "test_a_transaction_that_fails_creates_no_table"),
    ],
)
def test_what_is_declared_must_be_true(capability: str, name: str, tmp_path: Path) -> None:
    """A database that does what it declares not to do is refused."""

    class Modest(OnSqlite):
        capabilities = StoreCapabilities(**{capability: False})

    kit = Modest()
    kit.folder = tmp_path
    assert f"declare {capability}=True" in str(check(kit, name))


def test_what_is_not_declared_is_named(tmp_path: Path) -> None:
    """The message names the capability, and a declaration is reported as not shown."""
    kit: Any = OnSqlite()
    kit.kind, kit.folder = wrong.Relaxed, tmp_path
    name = "test_a_purchase_is_on_the_disk_before_it_is_sent"
    assert "StoreCapabilities(shows_syncs=False)" in str(check(kit, name))

    class Modest(OnSqlite):
        capabilities = StoreCapabilities(shows_syncs=False)

    kit = Modest()
    kit.kind, kit.folder = wrong.Relaxed, tmp_path
    kit.setup_method()
    with pytest.raises(pytest.xfail.Exception, match="not shown: shows_syncs=False"):
        getattr(kit, name)()
    kit.teardown_method()
