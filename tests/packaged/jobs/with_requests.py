"""A picture and a text, with the client for ordinary code. It is given a folder."""

import sys

import muybridge

with muybridge.Client(poll_interval=0.01) as client:
    result = client.run(muybridge.ImgaRequest(model="imga", prompt="a horse"))
    print(client.download(result, sys.argv[1]))
    print(client.generate_content("textg-2.5-pro", "Why?").text)
