"""The help of a family, generated from its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from muybridge.cli.examples import example
from muybridge.cli.options import option_name
from muybridge_protocol.families import Family, Media, Model, Pacing

_PURPOSES: Mapping[str, str] = {
    "create": "Create a task for",
    "run": "Generate",
    "check": "Check the reference media of a request for",
}
"""What a command for one family does."""


class FamilyCommand(click.Command):
    """A command for one family, whose help comes from its tables."""

    def __init__(
        self,
        family: Family,
        verb: str,
        options: list[click.Parameter],
        callback: Callable[..., None],
    ) -> None:
        self._family = family
        self._verb = verb
        super().__init__(
            family.name,
            params=options,
            callback=callback,
            context_settings={"allow_extra_args": True},  # `parse_args` says what is wrong
            short_help=summary(family),
            help=f"{_PURPOSES[verb]} {_made(family)}.",
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. In place of an unknown option, suggest a field of the family."""
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            field = self._family.suggestion(name.removeprefix("--").replace("-", "_"))
            if field is not None:
                advice = f"Did you mean '{option_name(field)}'?"
                raise click.UsageError(f"No such option '{name}'. {advice}", ctx) from None
            hidden = {opt for option in self.params for opt in option.opts if _is_hidden(option)}
            close = [one for one in error.possibilities or () if one not in hidden]
            raise click.NoSuchOption(name, possibilities=close, ctx=ctx) from None
        if rest and not ctx.resilient_parsing:
            from muybridge.cli.mistakes import unexpected

            ctx.fail(unexpected(self._family, self._verb, rest[0]))
        return rest

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the family is, an example, its models, and how long things take."""
        super().format_help_text(ctx, formatter)
        family = self._family
        with formatter.section("Example"):
            formatter.write_text(f"\b\n{example(family, self._verb)}")
        if family.models:
            with formatter.section("Models"):
                formatter.write_dl([(model.name, model_summary(model)) for model in family.models])
        with formatter.section("Good to know"):
            for line in sentences(family):
                formatter.write_text(line)


def _is_hidden(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.hidden


def summary(family: Family) -> str:
    """Return what *family* makes, in a few words."""
    return ", ".join((f"{family.media}s", *_limits(family)))


def _limits(family: Family) -> list[str]:
    known = family.resolution and not family.resolution.startswith("varies")
    resolution = f"up to {family.resolution}" if known else ""
    return [limit for limit in (resolution, family.duration) if limit]


def model_summary(model: Model) -> str:
    """Return the note of *model*, its own limits and how it is billed."""
    limits = model_limits(model)
    billing = f"billed {model.billing}" if model.billing else ""
    pace = f"polled every {pace_of(model.pacing)}" if model.pacing is not None else ""
    return "; ".join(part for part in (model.note, *limits, billing, pace) if part) or "-"


def model_limits(model: Model) -> list[str]:
    """Return the limits that hold for *model* alone, by option."""
    return [
        f"{option_name(wire)}: {rule.accepted}"
        for wire, rules in model.limits.items()
        for rule in rules
    ]


def pace_of(pacing: Pacing) -> str:
    """Return the interval of *pacing*, for people."""
    return f"{pacing.shortest:g}-{pacing.longest:g} s"


def pacing_sentence(pacing: Pacing) -> str:
    """Return how often results are polled, as a sentence."""
    least = f", never below {pacing.minimum:g} s" if pacing.minimum is not None else ""
    assumed = " (an assumption: the service does not say)" if pacing.assumed else ""
    return f"The result is polled every {pace_of(pacing)}{least}{assumed}."


def kept_sentence(family: Family) -> str:
    """Return how long results are kept, as a sentence."""
    return f"How long results are kept: {family.retention.note}."


def sentences(family: Family) -> list[str]:
    """Return what else there is to know about *family*."""
    hidden = "Fields that the specification does not list can be sent with --extra."
    return [
        *([] if family.models else ["The specification does not list the models."]),
        *([] if family.body_shown else [hidden]),
        *(relation.sentence(option_name) for relation in family.relations),
        *(f"{option_name(rule.field)} {rule.message(option_name)}." for rule in family.ineffective),
        *(
            f"{option_name(alias.legacy)} is the old name of {option_name(alias.field)}."
            for alias in family.aliases
        ),
        pacing_sentence(family.pacing),
        kept_sentence(family),
        *family.notes,
    ]


def _made(family: Family) -> str:
    article = "an" if family.media is Media.IMAGE else "a"
    limits = ", ".join(_limits(family))
    return f"{article} {family.media} with family {family.name}{limits and f' ({limits})'}"
