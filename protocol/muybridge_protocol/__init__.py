"""The pure core of Muybridge: requests, responses and their rules as values.

It does no I/O, knows no clock, draws no random number and holds no key.
"""
