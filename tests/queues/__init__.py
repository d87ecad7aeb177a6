"""Job queues and durable workflows that rerun what was killed, against a service with books."""
