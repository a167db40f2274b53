"""Groups of commands that are imported when they are asked for, and help in two lengths."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, ClassVar

import click
from click.shell_completion import CompletionItem

from benchctl.cli.streams import say

LazyCommand = tuple[str, str]
"""(`module:attribute`, help in one line)."""

_EVERYTHING = "benchctl.help-all"


def _help_all(context: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not context.resilient_parsing:
        show_everything(context)
        say(context.get_help())
        context.exit()


def help_all_option(what: str) -> click.Option:
    """Return `--help-all`, for commands and groups whose `--help` is a first page."""
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_help_all,
        help=f"Show all {what} and exit.",
    )


def show_everything(context: click.Context) -> None:
    """Make the help of a command, and of all below it, that of `--help-all`."""
    context.meta[_EVERYTHING] = True


def shows_everything(context: click.Context) -> bool:
    """Return whether help is that of `--help-all`."""
    return bool(context.meta.get(_EVERYTHING))


class LazyGroup(click.Group):
    """A group that lists its commands without importing any."""

    # Heading -> name -> command, in the order of the help.
    sections: ClassVar[Mapping[str, Mapping[str, LazyCommand]]] = {}
    # Headings that only --help-all has.
    rare: ClassVar[frozenset[str]] = frozenset()
    # Other names of commands, which are not listed.
    aliases: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.rare:
            self.params.append(help_all_option("commands"))

    @property
    def table(self) -> dict[str, LazyCommand]:
        """Return all commands by name."""
        return {name: one for section in self.sections.values() for name, one in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, as in the help."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is no such."""
        del ctx
        name = self.aliases.get(cmd_name, cmd_name)
        if name not in self.table:
            return None
        command: click.Command = resolve_name(self.table[name][0])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them, section by section, without importing any."""
        widest = max(map(len, self.table))
        for heading, section in self.sections.items():
            if heading not in self.rare or shows_everything(ctx):
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in section.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Point from the first page to everything."""
        if self.rare and not shows_everything(ctx):
            formatter.write_paragraph()
            formatter.write_text(f"All commands: {ctx.command_path} --help-all")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing any, or an option of the group."""
        names = [(name, text) for name, (_, text) in self.table.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=text) for name, text in names), *options]
