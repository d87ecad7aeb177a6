"""The client as its users see it, end to end.

Each behaviour is written once, against the fixture `make_client`, and holds for every driver.
"""
