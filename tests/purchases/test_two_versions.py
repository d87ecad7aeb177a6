"""Two versions of the package at one store: the newer one upgrades it, and then the older refuses.

Nothing is sent by whoever refuses, and nothing is lost that the older one was sending.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

import muybridge
import muybridge_protocol
from batch.billing import BillingServer
from batch.runner_process import KEY, horses
from muybridge.purchases import Store, StoreUnusable
from muybridge.purchases.schema import VERSION
from processes import Nursery

from .racer import order_of

ITEMS = 8
AT_ONCE = 3
NEEDS_UPGRADE = (
    rf"has version {VERSION}, and this muybridge needs version {VERSION + 1}\. Nothing is sent\. "
    r"Stop every program that uses it, make a copy, and upgrade it: `muybridge store upgrade`"
)
IS_NEWER = (
    rf"has version {VERSION + 1}, and this muybridge knows version {VERSION}\. Nothing is sent\. "
    "Upgrade muybridge"
)
UPGRADE = (
    '"ALTER TABLE muybridge_purchases ADD COLUMN newer text", '
    '"CREATE TABLE muybridge_newer (note text)", '
)


class Package:
    """The command of one version of the package, with a service and a store.

    Args:
        nursery: What runs it.
    """

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._settings: dict[str, str] = {}

    def use(self, server: BillingServer, place: str) -> Package:
        """Use a service and a store from now on."""
        self._settings = {
            "MUYBRIDGE_API_KEY": KEY, "MUYBRIDGE_BASE_URL": server.url, "MUYBRIDGE_STORE": place,
        }  # fmt: skip
        return self

    def start(self, *words: str) -> None:
        """Start the command."""
        self._nursery.start(words=words, settings=self._settings)

    def wait(self, code: int = 0) -> tuple[str, str]:
        """Wait for its end, and return what it has printed on both streams."""
        told = self._nursery.wait()
        assert isinstance(told, list), told
        found, printed, said = cast("list[Any]", told)
        assert found == code, (found, printed, said)
        return str(printed), str(said)

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Run the command, and return what it has printed on both streams."""
        self.start(*words)
        return self.wait(code)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package under test, with tables of the next version."""
    folder = tmp_path_factory.mktemp("newer")
    for package in (muybridge, muybridge_protocol):
        found = Path(str(package.__file__)).parent
        shutil.copytree(found, folder / found.name)
    schema = folder / "muybridge" / "purchases" / "schema.py"
    text = schema.read_text("utf-8")
    for pattern, after in (
        (rf"^VERSION: Final = {VERSION}$", f"VERSION: Final = {VERSION + 1}"),
        (r"^(UPGRADES: .* = )\{\}$", rf"\1{{{VERSION}: ({UPGRADE})}}"),
        (r'^    f"INSERT INTO muybridge_store ', rf"    {UPGRADE}\g<0>"),
    ):
        text, count = re.subn(pattern, after, text, flags=re.MULTILINE)
        assert count == 1, pattern
    schema.write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def packages(sources: Path) -> Iterator[list[Package]]:
    """The package under test, and the newer one in two processes."""
    tests = str(Path(__file__).parents[1])
    program = "purchases.commander"
    with (
        Nursery(program) as one,
        Nursery(program, PYTHONPATH=os.pathsep.join((str(sources), tests))) as other,
        Nursery(program, PYTHONPATH=os.pathsep.join((str(sources), tests))) as another,
    ):
        yield [*map(Package, (one, other, another))]


@pytest.fixture
def older(packages: list[Package], server: BillingServer, place: str) -> Package:
    """The package under test."""
    return packages[0].use(server, place)


@pytest.fixture
def newer(packages: list[Package], server: BillingServer, place: str) -> Package:
    """The newer one."""
    return packages[1].use(server, place)


@pytest.fixture
def items(tmp_path: Path) -> str:
    """A file of requests."""
    path = tmp_path / "horses.jsonl"
    path.write_text("\n".join(map(json.dumps, horses(ITEMS))), "utf-8")
    return str(path)


def spent(package: Package) -> int:
    """Return how many creates count as spent, all of them accepted."""
    found = json.loads(package.run("spent", "--json")[0])
    assert found["undecided"] == []
    return sum(int(one["requests"]) for one in found["spent"])


BUY = ("create", "imgb", "--model", "imgb-2", "--prompt", "horse 1")


def test_each_refuses_the_other_ones_store(
    older: Package, newer: Package, server: BillingServer, items: str, tmp_path: Path
) -> None:
    """The newer one until the store is upgraded, the older one ever after. Nothing is sent."""
    uses = (
        (BUY, 3),
        (("batch", "run", items, "--out", str(tmp_path / "out")), 6),
        (("batch", "submit", items, "--name", "horses"), 6),
        (("spent",), 3),
        (("undecided",), 3),
        (("store", "prune", "--before", "2026-01-01"), 3),
        (("budget", "set", "--max-creates", "9"), 3),
    )
    older.run(*BUY)
    assert server.posts == 1
    for words, code in uses:
        _, said = newer.run(*words, code=code)
        assert re.search(NEEDS_UPGRADE, said), said
    _, said = newer.run("store", "upgrade")
    assert f"upgraded from version {VERSION} to {VERSION + 1}" in said
    _, said = newer.run("store", "upgrade")
    assert f"has version {VERSION + 1} already" in said
    for words, code in (*uses, (("store", "upgrade"), 3)):
        _, said = older.run(*words, code=code)
        assert re.search(IS_NEWER, said), said
    assert server.posts == 1
    newer.run(*BUY)
    assert spent(newer) == server.posts == 2


def test_a_store_that_the_newer_one_has_begun(
    older: Package, newer: Package, server: BillingServer
) -> None:
    """The older one refuses it, too."""
    newer.run(*BUY)
    _, said = older.run(*BUY, code=3)
    assert re.search(IS_NEWER, said), said
    assert spent(newer) == server.posts == 1


@pytest.fixture
def upgrading(newer: Package, server: BillingServer) -> list[str]:
    """Let the newer package upgrade the store while three creates are accepted and unanswered."""
    said: list[str] = []

    def upgrade() -> None:
        said.append(newer.run("store", "upgrade")[1])

    met = threading.Barrier(AT_ONCE, action=upgrade)
    calls = iter(range(AT_ONCE))

    def meet(_: str) -> None:
        if server.posts > 1 and next(calls, None) is not None:
            met.wait(60)

    server.on_create = meet
    return said


def test_in_the_middle_of_a_batch(
    older: Package,
    newer: Package,
    server: BillingServer,
    items: str,
    tmp_path: Path,
    upgrading: list[str],
) -> None:
    """The older one stops and says why, and the newer one continues with what it has paid for."""
    run = ("batch", "run", items, "--out", str(tmp_path / "out"), "--concurrency", str(AT_ONCE))
    _, said = older.run(*run, code=6)
    assert upgrading
    assert re.search(IS_NEWER, said), said
    assert server.posts < ITEMS
    _, said = older.run(*run, code=6)  # which changes nothing
    assert re.search(IS_NEWER, said), said
    newer.run(*run)
    assert (server.posts, server.doubles) == (ITEMS, [])
    assert spent(newer) == ITEMS


def test_while_a_worker_works(
    older: Package,
    newer: Package,
    server: BillingServer,
    items: str,
    tmp_path: Path,
    upgrading: list[str],
) -> None:
    """It does not wait for a store that it will never understand, and a newer worker continues."""
    older.run("batch", "submit", items, "--name", "horses")
    work = ("worker", "--batch", "horses", "--out", str(tmp_path), "--creates", str(AT_ONCE))
    _, said = older.run(*work, code=6)
    assert upgrading
    assert re.search(IS_NEWER, said), said
    newer.run(*work)
    assert (server.posts, server.doubles) == (ITEMS, [])
    assert spent(newer) == ITEMS


def test_two_upgrades_at_once(
    older: Package, packages: list[Package], server: BillingServer, place: str
) -> None:
    """One of them upgrades the store, and the other one finds it upgraded."""
    older.run(*BUY)
    both = [one.use(server, place) for one in packages[1:]]
    for one in both:
        one.start("store", "upgrade", "--json")
    told = [json.loads(one.wait()[0]) for one in both]
    assert sorted(one["before"] for one in told) == [VERSION, VERSION + 1]
    assert {one["after"] for one in told} == {VERSION + 1}


def test_an_upgrade_waits_for_transactions_that_have_begun(newer: Package, store: Store) -> None:
    """What has seen the earlier version ends before the upgrade, and what begins later refuses."""
    store.arm(order_of())
    ends: list[str] = []

    def upgrade() -> None:
        newer.run("store", "upgrade")
        ends.append("upgrade")

    with ThreadPoolExecutor(1) as pool:
        with store.transaction():
            upgraded = pool.submit(upgrade)
            with suppress(TimeoutError):
                upgraded.result(1)
            ends.append("transaction")
        upgraded.result()
    assert ends == ["transaction", "upgrade"]
    with pytest.raises(StoreUnusable, match=IS_NEWER):
        store.arm(order_of())
