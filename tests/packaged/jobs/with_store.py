"""A create within a limit, on a fake transport, with the store where it is by default."""

import muybridge
from muybridge.testing import FakeTransport, json_response

REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")

transport = FakeTransport(json_response({"id": "task-1", "status": "queued"}))
with muybridge.Client(
    "key", "https://service.test", transport=transport, budget=muybridge.Budget(creates=1)
) as client:
    print(client.create(REQUEST).id)
    try:
        client.create(REQUEST)
    except muybridge.OverBudget:
        print("refused")
