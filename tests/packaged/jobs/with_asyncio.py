"""A request to the service, under asyncio."""

import asyncio
import os

import muybridge
from muybridge.wire.async_transport import exchange


async def main() -> None:
    """Print the status of the service's OpenAPI document."""
    transport = muybridge.AsyncioTransport()
    url = f"{os.environ['MUYBRIDGE_BASE_URL']}/openapi.json"
    request = muybridge.HttpRequest(method="GET", url=url, body_limit=None)
    print((await exchange(transport, request, timeout=60)).status)
    await transport.close()


asyncio.run(main())
