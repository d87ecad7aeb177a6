"""Serve until standard input ends, and print where."""

import sys

from muybridge.local import LocalService

with LocalService(speed=1000) as service:
    print(service.api_key, service.base_url, service.text_base_url, flush=True)
    sys.stdin.read()
