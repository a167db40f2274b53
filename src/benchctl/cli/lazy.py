"""Groups of commands that are imported when they are asked for."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

LazyCommand = tuple[str, str]
"""(`module:attribute`, help in one line)."""


class LazyGroup(click.Group):
    """A group that lists its commands without importing any."""

    # Heading -> name -> command, in the order of the help.
    sections: ClassVar[Mapping[str, Mapping[str, LazyCommand]]] = {}

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
        if cmd_name not in self.table:
            return None
        command: click.Command = resolve_name(self.table[cmd_name][0])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them, section by section, without importing any."""
        del ctx
        widest = max(map(len, self.table))
        for heading, section in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in section.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing any, or an option of the group."""
        names = [(name, text) for name, (_, text) in self.table.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=text) for name, text in names), *options]
