"""The core of Muybridge, without I/O: requests, responses and their rules as immutable values.

It does no I/O, reads no clock, generates no random numbers and does not hold the API key. Begin
with `muybridge_protocol.operations`.
"""
