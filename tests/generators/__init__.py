"""What writes parts of the project from others: CONTRIBUTING.md lists the commands.

Each has a test that fails where the written part is not up to date, and prints the command.
"""
