"""The command, again and again, in processes that have loaded one version of the package."""

from __future__ import annotations

from click.testing import CliRunner

from processes import serve


def run(words: list[str], settings: dict[str, str]) -> tuple[int, str, str]:
    """Run the command with more environment; return its exit code and what it prints.

    Args:
        words: Its arguments.
        settings: The environment.
    """
    from muybridge.cli.commands import muybridge

    done = CliRunner().invoke(muybridge, words, env=settings)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


if __name__ == "__main__":
    serve(run, "muybridge.cli.commands", "muybridge.batch", "muybridge.purchases.sqlite")
