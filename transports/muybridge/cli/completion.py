"""`completion`: what makes a shell complete the command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_BASH = """\
# Ratios such as 16:9 have a colon, and local files an @.
COMP_WORDBREAKS=${COMP_WORDBREAKS//[:@]/}
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
@click.pass_context
def completion(context: click.Context, shell: str | None) -> None:
    """Print a shell completion script.

    It completes commands, families, models, values and files.

    \b
      eval "$(muybridge completion bash)"       in ~/.bashrc
      eval "$(muybridge completion zsh)"        in ~/.zshrc, after compinit
      muybridge completion fish | source        in ~/.config/fish/config.fish
    """  # noqa: D301  click's own mark for lines that stay as they are
    if shell is None:
        context.fail("Name the shell: muybridge completion bash, zsh or fish.")
    shell_class = get_completion_class(shell)
    assert shell_class is not None  # noqa: S101  click has these three
    script = shell_class(
        context.find_root().command, {}, "muybridge", "_MUYBRIDGE_COMPLETE"
    ).source()
    click.echo(f"{_BASH if shell == 'bash' else ''}{script}", nl=False)
