"""`python -m muybridge` is the command `muybridge`."""

from muybridge.cli import main

main()
