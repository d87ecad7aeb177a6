"""A picture and a text, under asyncio. It is given a folder."""

import asyncio
import sys

import muybridge


async def main() -> None:
    """Print where the picture is, and the text."""
    async with muybridge.AsyncClient(poll_interval=0.01) as client:
        result = await client.run(muybridge.ImgaRequest(model="imga", prompt="a horse"))
        print(await client.download(result, sys.argv[1]))
        print((await client.generate_content("textg-2.5-pro", "Why?")).text)


asyncio.run(main())
assert "trio" not in sys.modules
