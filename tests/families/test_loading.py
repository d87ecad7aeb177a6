"""A family is loaded when it is asked for, and is the same whatever was loaded before it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

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
assert len(FAMILIES) == 11 and list(FAMILIES)[0] == "imga" and "videos" in FAMILIES
assert FAMILIES.get("none") is None and "none" not in FAMILIES
before = [name for name in sys.modules if name.startswith("muybridge_protocol.families.")]
FAMILIES["vidc"]
print(json.dumps([sorted(before), sorted(set(sys.modules) - set(before))]))
"""
    before, after = json.loads(json.dumps(fresh(code)))
    assert before == ["muybridge_protocol.families.family", "muybridge_protocol.families.request"]
    loaded = {name for name in after if name.startswith("muybridge_protocol.families.")}
    assert loaded == {"muybridge_protocol.families.vidc"}


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
    for wrong in ("Imga", "imgarequest", "nothing", "family_request"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(families, wrong)


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
