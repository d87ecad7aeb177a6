"""A picture and a text, on httpx2. It is given a folder."""

import sys

import muybridge

transport = muybridge.Httpx2Transport(http2=True)
with muybridge.Client(transport=transport, poll_interval=0.01) as client:
    result = client.run(muybridge.ImgaRequest(model="imga", prompt="a horse"))
    print(client.download(result, sys.argv[1]))
    print(client.generate_content("textg-2.5-pro", "Why?").text)
transport.close()
assert "requests" not in sys.modules
