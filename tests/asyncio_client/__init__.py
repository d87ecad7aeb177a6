"""The client for asyncio: its cancellation, at every suspension of its tasks."""
