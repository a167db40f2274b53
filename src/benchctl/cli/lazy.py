"""Groups of commands that are imported when they are asked for."""

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """A group that lists its commands without importing any.

    Attributes:
        table: name -> (module, attribute, help in one line), in the order of the help.
    """

    table: ClassVar[Mapping[str, tuple[str, str, str]]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, as in the help."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is no such."""
        del ctx
        if cmd_name not in self.table:
            return None
        module, attribute, _ = self.table[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without importing any."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in self.table.items()])
