"""What the store keeps as the place for results, and what each worker makes of it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from muybridge.batch import PlaceUnusable
from muybridge.batch.results.places import open_store
from muybridge.batch.results.places.names import agreed_place, place_for_all
from muybridge.batch.results.places.opening import spool_of
from muybridge_protocol.errors import LocalError


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("s3://studio", "s3://studio"),
        ("s3://studio/", "s3://studio"),
        ("s3://studio/horses/", "s3://studio/horses"),
        ("s3://studio/horses/2026", "s3://studio/horses/2026"),
        ("/srv/horses/", "/srv/horses"),
        ("/srv/mules/../horses", "/srv/horses"),
        (Path("/srv/horses"), "/srv/horses"),
    ],
)
def test_equal_places_are_equal(given: str | Path, kept: str) -> None:
    """However a place is written, the store has it in one form, and a worker may use any."""
    assert place_for_all(given) == kept
    assert agreed_place(given, kept) == str(given)
    assert agreed_place(None, kept) == kept
    assert agreed_place(given, None) == str(given)


def test_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder means the same to all workers only if its path is absolute."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocalError, match="horses' is another folder on each machine"):
        place_for_all("horses")
    assert agreed_place("horses", str(tmp_path / "horses")) == "horses"
    with pytest.raises(LocalError, match=r"go to s3://studio, and this worker was given .*/horses"):
        agreed_place("horses", "s3://studio")
    with pytest.raises(LocalError, match="has no place for its results"):
        agreed_place(None, None)
    with pytest.raises(LocalError, match=r"\(got gs:\.\.\.\)"):
        agreed_place("gs://studio/horses", "/srv")


def test_a_folder_is_checked(tmp_path: Path) -> None:
    """A spool is made for its user alone; a folder and spool that work are left without a trace."""
    out, spool = tmp_path / "all" / "out", tmp_path / "my" / "spool"
    for _ in range(2):
        open_store(out, spool).check()
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    assert [*out.iterdir(), *spool.iterdir()] == []
    (tmp_path / "file").touch()
    with pytest.raises(PlaceUnusable, match="file: "):
        open_store(tmp_path / "file", spool).check()
    with pytest.raises(PlaceUnusable, match="file: "):
        open_store(out, tmp_path / "file").check()
    assert [*spool.iterdir()] == []
    open_store(tmp_path / "later").check()
    assert not (tmp_path / "later").exists()


def test_the_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the folder of the results, or in the user's state folder if those go to S3."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert spool_of("/srv/horses", None) == Path("/srv/horses")
    assert spool_of("/srv/horses", "mine") == spool_of("s3://studio", "mine") == Path("mine")
    in_state_folder = spool_of("s3://studio/horses", None)
    assert (in_state_folder.name, in_state_folder.parent.name) == ("spool", "muybridge")
