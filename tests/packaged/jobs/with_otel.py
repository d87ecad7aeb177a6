"""A call that is traced, on a fake transport."""

import muybridge
from muybridge.observability.opentelemetry import Tracing
from muybridge.testing import FakeTransport, json_response

transport = FakeTransport(json_response({"id": "task-1", "status": "queued"}))
with muybridge.Client(
    "key", "https://service.test", transport=transport, on_event=Tracing()
) as client:
    print(client.create(muybridge.ImgaRequest(model="imga", prompt="a horse")).id)
