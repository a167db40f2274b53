"""The command line: options in, one call, output out."""

import sys

import click

import benchctl
from benchctl.cli.boundary import guarded
from benchctl.cli.compare import compare_command
from benchctl.cli.corpus import corpus_group
from benchctl.cli.listing import list_group
from benchctl.cli.node import node_group
from benchctl.cli.run import run_command
from benchctl.cli.show import show_command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(benchctl.__version__, prog_name="benchctl")
def root() -> None:
    """Is Elasticsearch or OpenSearch faster at this, by how much, and how sure are we?

    Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failed, 2 usage,
    130 interrupted.
    """


root.add_command(run_command)
root.add_command(compare_command)
root.add_command(show_command)
root.add_command(list_group)
root.add_command(corpus_group)
root.add_command(node_group)


def main() -> None:
    """Entry point of the `benchctl` command."""
    sys.exit(guarded(root))
