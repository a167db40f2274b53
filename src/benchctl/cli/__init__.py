"""The command line: options in, one call, output out."""

import traceback
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

import benchctl
from benchctl.cli.boundary import end, guarded
from benchctl.cli.streams import WORDS
from benchctl.errors import ExitCode
from benchctl.slices import commands

LazyCommand = tuple[str, str]
"""(`module:attribute`, help in one line)."""

# Commands are imported when they are asked for: the libraries behind a run take a second to load, and neither
# `benchctl runs list` nor `benchctl --help` needs them. So the help of all of them is here, and that of the
# slices' commands, which follow below each heading, in `slices.py`.
_SECTIONS: Mapping[str, Mapping[str, LazyCommand]] = {
    "Measure": {
        "run": ("benchctl.cli.run:run_command", "Run challenges on fresh nodes and compare the variants."),
        "resume": ("benchctl.cli.run:resume_command", "Resume an interrupted run or experiment."),
        "extend": ("benchctl.cli.run:extend_command", "Add forks to a finished run or experiment."),
    },
    "Prepare": {
        "doctor": ("benchctl.cli.doctor:doctor_command", "Check whether this host is fit to measure."),
        "list": (
            "benchctl.cli.listing:list_group",
            "List challenges, tracks, operations, metrics and variants.",
        ),
        "track": ("benchctl.cli.track:track_group", "Create, validate and inspect tracks."),
        "corpus": ("benchctl.cli.track:corpus_group", "Generate, download and list corpora."),
    },
    "Read results": {
        "compare": (
            "benchctl.cli.compare:compare_command",
            "Compare stored results, optionally as a CI gate.",
        ),
        "show": ("benchctl.cli.compare:show_command", "Show the results of a stored run."),
        "help": ("benchctl.cli.listing:help_command", "Read the documentation, page by page."),
        "runs": ("benchctl.cli.runs:runs_group", "List and delete stored runs."),
    },
    "Automate": {},
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing any."""

    # Heading -> name -> command, in the order of the help.
    sections: ClassVar[Mapping[str, Mapping[str, LazyCommand]]] = {}

    @property
    def table(self) -> dict[str, LazyCommand]:
        """Return all commands by name."""
        return {name: command for section in self.sections.values() for name, command in section.items()}

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


class Commands(LazyGroup):
    """The commands of benchctl, in the order in which a newcomer meets them."""

    sections: ClassVar = {heading: {**own, **commands(heading)} for heading, own in _SECTIONS.items()}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, for the record of a run that they ask for."""
        ctx.meta[WORDS] = tuple(args)
        return super().parse_args(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(benchctl.__version__, "-V", "--version", prog_name="benchctl")
def root() -> None:
    """Benchmark Elasticsearch and OpenSearch, and quantify the differences.

    Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failed, 2 usage,
    3 regression or alarm, 4 inconclusive, 130 interrupted, 141 output closed early.
    """


def main() -> None:
    """Run the `benchctl` command."""
    try:
        status = guarded(root)
    except Exception:  # noqa: BLE001 - a bug keeps its traceback, and ends the process as well
        traceback.print_exc()
        status = ExitCode.FAILED
    end(status)
