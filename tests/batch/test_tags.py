"""The tags of what a batch buys: the client's, and the batch's own, which nobody else may set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muybridge import Client, batch
from muybridge.batch import SharedBatch, Stage
from muybridge.purchases import Budget, open_store
from muybridge_protocol.families import ImgbRequest
from stores import purchases_at

from .billing import BillingServer
from .conftest import Run, Work
from .fixtures import submit
from .runner_process import KEY, horses

HORSE = ImgbRequest(model="imgb-2", prompt="horse 1")


@pytest.fixture(autouse=True)
def _for_a_customer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUYBRIDGE_TAGS", "customer=acme")


def test_each_purchase_has_them(
    server: BillingServer, run: Run, path: Path, tmp_path: Path
) -> None:
    """They are in the store and in the sidecars."""
    assert run(server, horses(2), sidecar=True).done
    assert [one.tags for one in purchases_at(path)] == [("batch=out", "customer=acme")] * 2
    sidecar = json.loads((tmp_path / "out" / "h1.png.json").read_bytes())
    assert sidecar["tags"] == {"batch": "out", "customer": "acme"}


def test_a_worker_has_those_of_its_client(
    server: BillingServer, work: Work, shared: SharedBatch
) -> None:
    """An item has the tags of the run that sends it."""
    submit(server, shared, 2)
    assert work(server, shared).done
    tags = [one.tags for one in purchases_at(str(shared.store))]
    assert tags == [(f"batch={shared.name}", "customer=acme")] * 2


def test_a_budget_for_each_customer(server: BillingServer, run: Run, path: Path) -> None:
    """A budget for a key holds for a batch, and for its own key as well."""
    with open_store(path) as store:
        store.limit("customer", Budget(creates=2))
        store.limit("batch", Budget(creates=1))
    report = run(server, horses(2))
    assert report.counts == {Stage.QUEUED: 1, Stage.DOWNLOADED: 1}
    assert "It is the stored budget of batch=out" in report.stopped
    assert server.posts == 1


@pytest.mark.parametrize("customer", ["acme", "bear"])
def test_identical_requests_join_outside_a_batch(
    server: BillingServer, run: Run, path: Path, customer: str
) -> None:
    """They do if the rest of their tags agrees: the batch's own makes no difference."""
    with Client(KEY, server.url, dedupe=True, tags={"customer": customer}, store=path) as client:
        client.create(HORSE)
    assert run(server, horses(1), dedupe=True).done
    assert server.posts == (1 if customer == "acme" else 2)


def test_a_name_with_a_space_at_its_end(server: BillingServer, path: Path, tmp_path: Path) -> None:
    """The folder of a batch may be called so, and a tag may not."""
    with Client(KEY, server.url, poll_interval=0.005) as client:
        assert batch.run(client, horses(1), tmp_path / " in spring ").done
    [bought] = purchases_at(path)
    assert bought.tags == ("batch=in spring", "customer=acme")
