"""The command line: options in, one call, output out."""

import importlib
import sys

import click

import benchctl
from benchctl.cli.boundary import guarded

# Commands are imported when they are asked for: the libraries behind a run take a second to load, and
# `benchctl node status` needs none of them.
_COMMANDS = {
    "run": ("benchctl.cli.run", "run_command"),
    "redline": ("benchctl.cli.redline", "redline_command"),
    "plan": ("benchctl.cli.plan", "plan_command"),
    "compare": ("benchctl.cli.compare", "compare_command"),
    "report": ("benchctl.cli.report", "report_command"),
    "show": ("benchctl.cli.show", "show_command"),
    "list": ("benchctl.cli.listing", "list_group"),
    "import": ("benchctl.cli.import_runs", "import_command"),
    "sql": ("benchctl.cli.sql", "sql_command"),
    "export": ("benchctl.cli.export", "export_command"),
    "schema": ("benchctl.cli.schema", "schema_command"),
    "corpus": ("benchctl.cli.corpus", "corpus_group"),
    "node": ("benchctl.cli.node", "node_group"),
    "calibrate": ("benchctl.cli.calibrate", "calibrate_command"),
}


class Commands(click.Group):
    """The commands of benchctl, in the order in which a newcomer meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, as in the help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is no such."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(benchctl.__version__, prog_name="benchctl")
def root() -> None:
    """Is Elasticsearch or OpenSearch faster at this, by how much, and how sure are we?

    Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failed, 2 usage,
    3 and 4 regression and inconclusive (compare --gate), 130 interrupted.
    """


def main() -> None:
    """Entry point of the `benchctl` command."""
    sys.exit(guarded(root))
