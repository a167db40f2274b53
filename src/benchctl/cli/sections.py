"""Help in sections: options of a command under headings that are named where the options are declared."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args

import click

from benchctl.spec import Heading

F = TypeVar("F", bound=Callable[..., Any])

_OWN: Final = "Options"
_HEADINGS: Final = "__headings__"


def under(heading: Heading, option: Callable[[F], F]) -> Callable[[F], F]:
    """An option under a heading in the help of a `SectionedCommand`.

    Args:
        heading: the section.
        option: click's decorator.
    """

    def decorate(command: F) -> F:
        command = option(command)
        # Click itself keeps the options of what is no command yet in a list on the function, the newest last.
        known = vars(command)
        known.setdefault(_HEADINGS, {})[known["__click_params__"][-1].name] = heading
        return command

    return decorate


class SectionedCommand(click.Command):
    """A command with so many options that its help has sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, section by section."""
        headings = getattr(self.callback, _HEADINGS, {})
        sections: dict[str, list[tuple[str, str]]] = {one: [] for one in (_OWN, *get_args(Heading))}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                usual = "Output" if "--help" in param.opts else _OWN
                sections[headings.get(param.name, usual)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
