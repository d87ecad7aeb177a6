"""A family is loaded when it is asked for, and is the same whatever was loaded before it."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol
from muybridge_protocol import families
from muybridge_protocol.families import FAMILIES, Family, ImgaRequest

HOME = str(Path(muybridge_protocol.__file__).parent.parent)


def fresh(code: str) -> object:
    """Return what *code* prints, as JSON, in an interpreter that has loaded nothing of ours."""
    prelude = f"import json, sys; sys.path.insert(0, {HOME!r})\n"
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-W", "error", "-I", "-c", prelude + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_one_family_alone() -> None:
    """What is known of all families loads none, and asking for one loads that one."""
    code = """
from muybridge_protocol.families import FAMILIES, MediaRequest
assert len(FAMILIES) == len(list(FAMILIES)) > 0 and "imga" in FAMILIES and "videos" in FAMILIES
assert FAMILIES.get("none") is None and "none" not in FAMILIES
def loaded():
    return [name for name in FAMILIES if f"muybridge_protocol.families.{name}" in sys.modules]
before = loaded()
FAMILIES["vidc"]
print(json.dumps([before, loaded()]))
"""
    assert fresh(code) == [[], ["vidc"]]


@pytest.mark.parametrize("turn", [1, -1], ids=["forwards", "backwards"])
def test_the_order_of_loading(turn: int) -> None:
    """The values that a field accepts stand in the same order, whichever family is loaded first."""
    code = f"""
from muybridge_protocol.families import FAMILIES
for name in sorted(FAMILIES)[::{turn}]:
    FAMILIES[name]
print(json.dumps([
    [field.wire, [rule.accepted for rule in field.rules]]
    for family in FAMILIES.values() for field in family.fields
]))
"""
    here = [
        [field.wire, [rule.accepted for rule in field.rules]]
        for family in FAMILIES.values()
        for field in family.fields
    ]
    assert fresh(code) == here


def test_options_stand_as_written() -> None:
    """The values of a field are told in the order of its annotation."""
    (ratio,) = (field for field in families.VIDEOS.fields if field.name == "ratio")
    assert ratio.rules[0].accepted == "use 16:9, 9:16 or 1:1"
    (size,) = (field for field in families.IMGA.fields if field.name == "size")
    assert size.rules[0].accepted == ("use 1:1, 16:9, 9:16, 4:3, 3:4, 3:2, 2:3, 5:4, 4:5 or 21:9")


def test_the_table() -> None:
    """The table holds each family under its name, gives the same one each time, and no other."""
    assert all(isinstance(family, Family) for family in FAMILIES.values())
    assert all(FAMILIES[name] is FAMILIES[name] for name in FAMILIES)
    assert all(family.name == name for name, family in FAMILIES.items())
    assert FAMILIES["imga"] is families.IMGA is ImgaRequest.family
    assert dict(FAMILIES) == FAMILIES
    with pytest.raises(KeyError):
        FAMILIES["family"]
    with pytest.raises(TypeError):
        FAMILIES["new"] = families.IMGA  # type: ignore[index]  # pyright: ignore[reportIndexIssue]  that is it


def test_names() -> None:
    """Every public name is there, `dir` lists it, and a wrong one is told."""
    assert set(families.__all__) <= set(dir(families))
    for name in families.__all__:
        value = getattr(families, name)
        assert not isinstance(value, type) or value.__name__ == name
    for wrong in (
        "Imga",
        "imgarequest",
        "nothing",
        "family_request",
        "VidwRequest",
        "REQUEST",
        "A.B",
    ):
        with pytest.raises(AttributeError, match=wrong):
            getattr(families, wrong)


def test_a_family_of_a_zip_file(tmp_path: Path) -> None:
    """Families are found in a zip file as in a folder: all of them, and nothing that is none."""
    archive = shutil.make_archive(str(tmp_path / "core"), "zip", HOME, "muybridge_protocol")
    code = f"""
sys.path.insert(0, {archive!r})
from muybridge_protocol import families
assert {archive!r} in families.__file__, families.__file__
print(json.dumps([[name, family.name] for name, family in families.FAMILIES.items()]))
"""
    assert fresh(code) == [[name, name] for name in FAMILIES]


def test_the_first_family_is_not_looked_for() -> None:
    """To name a request and to look up its family lists no folder; a name from elsewhere does."""
    code = """
from muybridge_protocol.families import FAMILIES, ImgbRequest
assert FAMILIES["imgb"] is FAMILIES.get("imgb") is ImgbRequest.family and "imgb" in FAMILIES
before = "pkgutil" in sys.modules
assert FAMILIES["vidc"].name == "vidc"
print(json.dumps([before, "pkgutil" in sys.modules]))
"""
    assert fresh(code) == [False, True]


def test_a_new_family(tmp_path: Path) -> None:
    """A family that is named nowhere has its public names, like the others."""
    core = tmp_path / "core" / "muybridge_protocol"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(muybridge_protocol.__file__).parent, core, ignore=ignored)
    folder = core / "families"
    text = (folder / "vidm.py").read_text("utf-8")
    for old, new in (("vidm", "vidx"), ("VIDM", "VIDX"), ("VidmRequest", "VidxRequest")):
        text = text.replace(old, new)
    (folder / "vidx.py").write_text(text, "utf-8")
    (folder / "vidy.py").write_text("import vidz\n", "utf-8")
    code = f"""
sys.path[:0] = [{str(core.parent)!r}, {str(Path(muybridge.__file__).parent.parent)!r}]
import muybridge
from muybridge_protocol import families
assert {{"VIDX", "VidxRequest"}} <= set(dir(families))
assert muybridge.VidxRequest is families.VidxRequest is families.VIDX.request
assert families.FAMILIES["vidx"] is families.VIDX
assert not hasattr(families, "VidwRequest") and not hasattr(muybridge, "VidwRequest")
assert not hasattr(muybridge, "Problem")
try:
    families.VidyRequest
except ModuleNotFoundError as error:
    print(json.dumps(error.name))
"""
    assert fresh(code) == "vidz"


def test_pickling() -> None:
    """A request can be unpickled where its family has not been loaded."""
    request = ImgaRequest(model="imga", prompt="a horse")
    data = pickle.dumps(request)
    assert pickle.loads(data) == request  # noqa: S301  our own
    code = f"""
import pickle
print(json.dumps(pickle.loads({data!r}).to_body()))
"""
    assert fresh(code) == request.to_body()
