"""Faults and attacks, really committed, against both drivers; `table.py` lists them."""
