"""A host that starts the server, makes a picture, and prints where it is."""

import asyncio
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

program, folder = sys.argv[1:]
arguments = ["mcp", "--max-creates", "1", "--folder", folder, "--poll-interval", "0.1"]
server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))


async def main() -> None:
    """Make a picture."""
    async with Client(server) as host:
        horse = {"family": "imga", "fields": {"model": "imga", "prompt": "a horse"}}
        made = await host.call_tool("generate", horse)
        token = {"token": made.structured_content["token"]}
        await host.call_tool("wait", token)
        saved = await host.call_tool("save", token)
        print(saved.structured_content["path"])


asyncio.run(main())
