"""Whatever a request class accepts, the emulator accepts: on purpose, too."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.caller import LATER, Caller
from families.test_properties import QUICK, every_class, made_of, make, slugs
from muybridge_protocol.families import Unlisted


@every_class
@QUICK
@given(data=st.data())
def test_what_is_sent_makes_a_task(request_class: Any, data: st.DataObject) -> None:
    """A request, with an unlisted model and unknown fields or not, becomes a completed task."""
    body, extra = data.draw(made_of(request_class))
    if request_class.family.models and data.draw(st.booleans()):
        body = {**body, "model": Unlisted(data.draw(slugs))}
    request = make(request_class, body, extra)
    caller = Caller()
    sent = json.dumps(request.to_body()).encode()
    reply = caller.send("POST", request_class.family.create_path, sent)
    assert reply.status == 200, reply.body
    task = caller.emulator.task("task-1")
    assert task is not None
    assert task.seconds is None or 1 <= task.seconds <= 30
    result = caller.result("task-1", LATER)
    if not task.assets and "[" not in task.prompt:  # no asset is missing, and no marker is there
        assert result["status"] == "completed"
