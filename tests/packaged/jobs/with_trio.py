"""A picture and a text, under trio. It is given a folder."""

import sys

import trio

import muybridge


async def main() -> None:
    """Print where the picture is, and the text."""
    async with muybridge.TrioClient(poll_interval=0.01) as client:
        result = await client.run(muybridge.ImgaRequest(model="imga", prompt="a horse"))
        print(await client.download(result, sys.argv[1]))
        print((await client.generate_content("textg-2.5-pro", "Why?")).text)
    async with muybridge.AsyncClient() as client:  # it finds out which event loop it is under
        await client.get(result)


trio.run(main)
