"""`mcp` and `skill`: for agents that act for a person."""

from __future__ import annotations

from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_args

import attrs
import click

from muybridge.cli import options
from muybridge.cli.connection import open_client
from muybridge.cli.invocation import Invocation, pass_invocation
from muybridge.cli.terminal import say
from muybridge.configuration import read_service
from muybridge.credentials import Credentials
from muybridge.purchases import Budget, open_store
from muybridge_protocol.purchases import read_tags
from muybridge_protocol.purchases.budget import Period
from muybridge_protocol.purchases.tags import OwnTags

_EVER: Final = "ever"
_PERIODS: Final = (*get_args(Period), _EVER)


@click.command(
    params=[
        *options.PERIOD_LIMITS[:-1],
        options.PRICES,
        options.STORE,
        options.TEXT_BASE_URL,
        options.INSECURE_DOWNLOADS,
        options.LOCAL,
        options.WAITING[0],
        *options.CONNECTION,
    ]
)
@click.option(
    "--per",
    type=click.Choice(_PERIODS),
    default=_PERIODS[0],
    show_default=True,
    help="The period of the budget, in UTC.",
)
@click.option(
    "--tag",
    metavar="KEY=VALUE",
    help="The tag of the purchases and of their budget, such as project=film [default: via=mcp].",
)
@click.option(
    "--folder",
    metavar="PATH",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where results are saved; tools read and write nothing else [default: muybridge in your "
    "pictures folder].",
)
@pass_invocation
def mcp(invocation: Invocation, *, per: str, tag: str | None, folder: Path | None) -> None:
    """Serve agents on stdin and stdout (Model Context Protocol).

    An agent can then create pictures, videos and text. Before anything is paid, the host asks the
    person, or a budget that you give here covers it:

    \b
      muybridge mcp --max-creates 5
      muybridge mcp --max-cost 10 --prices prices.toml --per month --tag project=film

    The budget is kept in the store under the tag, so that restarting the server does not renew it.
    Without a budget, a host that cannot ask is refused, and text is not sent. Identical requests
    are paid once. `muybridge skill` prints instructions for agents.

    Needs `pip install "muybridge[mcp]"`. Messages go to stderr, and only the protocol to stdout.
    """  # noqa: D301  click's own mark for lines that stay as they are
    invocation.connection.refuse_with_local("base_url", "text_base_url", "api_key_file")
    from muybridge.mcp import Folder, Setup, serve_stdio

    budget = _budget(invocation, per)
    tags = OwnTags(via="mcp") if tag is None else read_tags([tag], "--tag")
    with ExitStack() as stack:
        connection, spending = invocation.connection, invocation.spending
        settings: dict[str, Any] = connection.settings(stack, text=False)
        place = spending.store
        if connection.local:
            place = f"{stack.enter_context(TemporaryDirectory())}/store.sqlite3"
        else:
            settings["text_base_url"] = connection.text_base_url
        store = stack.enter_context(open_store(place))
        prices = spending.read_prices()
        client = open_client(stack, **settings, store=store, prices=prices)
        stack.enter_context(invocation.log())
        try:
            setup = Setup(
                client=client, store=store, credentials=_credentials(settings),
                folder=Folder(_folder() if folder is None else folder), budget=budget,
                prices=prices, tags=tags,
            )  # fmt: skip
        except ValueError as error:
            raise click.UsageError(f"--tag {tag}: {error}") from None
        leave = "asks the person" if budget is None else "has a budget"
        say(f"serving agents on stdin and stdout; {leave}; results go to {setup.folder.root}")
        serve_stdio(setup)


@click.command()
def skill() -> None:
    """Print a SKILL.md that tells agents how to use the server."""
    click.echo(resources.files("muybridge.mcp").joinpath("SKILL.md").read_text("utf-8"), nl=False)


def _budget(invocation: Invocation, per: str) -> Budget | None:
    """Return the budget of the options, or None if none was given."""
    budget = invocation.spending.read_budget()
    period: Any = None if per == _EVER else per
    return None if budget is None else attrs.evolve(budget, per=period)


def _credentials(settings: dict[str, Any]) -> Credentials:
    names = (
        "api_key", "base_url", "text_base_url", "allow_plain_http", "allow_insecure_downloads",
    )  # fmt: skip
    return read_service(**{name: settings[name] for name in names})[1]


def _folder() -> Path:
    from platformdirs import user_pictures_path

    return user_pictures_path() / "muybridge"
