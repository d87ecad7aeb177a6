"""A name that a family's request does not have: the error says where it belongs."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import muybridge
from muybridge_protocol.families.family import ALIKE
from muybridge_protocol.families.naming import OF_CALLS

REQUESTS: dict[str, tuple[type[muybridge.MediaRequest], dict[str, Any]]] = {
    "imga": (muybridge.ImgaRequest, {"model": "imga", "prompt": "a horse"}),
    "imgb": (muybridge.ImgbRequest, {"model": "imgb-2", "prompt": "a horse"}),
    "vidc": (muybridge.VidcRequest, {"model": "vidc_o3", "prompt": "a horse"}),
    "vidg": (muybridge.VidgRequest, {"model": "vidg_video3", "prompt": "a horse"}),
    "vidsb": (muybridge.VidsbRequest, {"model": "vidsb_2_0_pro", "prompt": "a horse"}),
}


@pytest.mark.parametrize(
    ("family", "name", "told"),
    [
        ("imga", "aspect_ratio", "did you mean size?"),
        ("imga", "ratio", "did you mean size?"),
        ("imgb", "aspect_ratio", "did you mean ratio?"),
        ("vidg", "ratio", "did you mean aspect_ratio?"),
        ("vidg", "seconds", "did you mean duration?"),
        ("vidc", "image", "did you mean first_image?"),
        ("vidsb", "image_urls", "did you mean reference_images?"),
        ("imga", "promt", "did you mean prompt?"),
        ("imga", "timeout", r"write client\.run\(request, timeout=\.\.\.\)"),
        ("imga", "poll_interval", r"write muybridge\.Client\(poll_interval=\.\.\.\)"),
        ("imga", "n", r"write client\.run_all\(\[request\] \* n\)"),
        ("vidg", "seed", r"image_urls; extra=\{'seed': \.\.\.\} sends it unchecked"),
    ],
)
def test_where_a_name_belongs(family: str, name: str, told: str) -> None:
    """It is another field's, a client's or a call's, or goes into `extra`."""
    request, fields = REQUESTS[family]
    told = rf"{name}: family {family} has no such field; .*{told}"
    with pytest.raises(muybridge.InvalidRequest, match=told):
        request(**fields, **{name: 4})


def test_the_lines_can_be_written() -> None:
    """What the errors name exists: the client's arguments, and the fields that are alike."""
    arguments = {
        "muybridge.Client(": muybridge.Client,
        "client.run(": muybridge.Client.run,
        "client.run_all(requests": muybridge.Client.run_all,
    }
    for name, line in OF_CALLS.items():
        for begin, function in arguments.items():
            if line.startswith(begin):
                assert name in inspect.signature(function).parameters
    known = {field.wire for family in muybridge.FAMILIES.values() for field in family.fields}
    assert {name for names in ALIKE for name in names} <= known
