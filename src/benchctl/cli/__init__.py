"""The command line: options in, one call, output out."""

import sys
from collections.abc import Mapping
from typing import ClassVar

import click

import benchctl
from benchctl.cli.boundary import end_soon, guarded
from benchctl.cli.lazy import LazyCommand, LazyGroup
from benchctl.errors import ExitCode
from benchctl.slices import commands

# Commands are imported when they are asked for: the libraries behind a run take a second to load, and neither
# `benchctl node status` nor `benchctl --help` needs them. So the help of all of them is here, and that of the
# slices' commands, which follow below each heading, in `slices.py`.
_SECTIONS: Mapping[str, Mapping[str, LazyCommand]] = {
    "Measure": {
        "run": (
            "benchctl.cli.run:run_command",
            "Measure challenges on fresh nodes, and compare the variants.",
        ),
        "resume": (
            "benchctl.cli.resume:resume_command",
            "Go on with a run, experiment, search or night that was cut off.",
        ),
        "extend": (
            "benchctl.cli.resume:extend_command",
            "Add forks to a run, experiment or search that is complete.",
        ),
        "plan": (
            "benchctl.cli.plan:plan_command",
            "Say how many forks a difference takes, before any of them runs.",
        ),
        "calibrate": (
            "benchctl.cli.plan:calibrate_command",
            "Measure what benchctl's own driver costs on this machine.",
        ),
    },
    "Read and compare": {
        "compare": (
            "benchctl.cli.compare:compare_command",
            "Compare stored results, such as `es os`; with --gate for CI.",
        ),
        "show": (
            "benchctl.cli.show:show_command",
            "Print a stored run again, with everything that belongs to it.",
        ),
        "report": (
            "benchctl.cli.report:report_command",
            "Write pages with the verdicts, all tables and plots of runs.",
        ),
        "list": (
            "benchctl.cli.listing:list_group",
            "List runs, searches, challenges, tracks, variants or operations.",
        ),
    },
    "Keep and exchange": {
        "runs": ("benchctl.cli.runs:runs_group", "Delete stored runs: named ones, or old ones."),
        "import": (
            "benchctl.cli.import_runs:import_command",
            "Take over results of Rally, OpenSearch Benchmark, JMH.",
        ),
        "export": (
            "benchctl.cli.export:export_command",
            "Export runs to a store of Rally's records, or to Parquet.",
        ),
        "sql": ("benchctl.cli.sql:sql_command", "Answer a query over stored runs and all their samples."),
        "schema": ("benchctl.cli.schema:schema_command", "Print the JSON Schema of what benchctl writes."),
    },
    "Unattended": {},
    "Tracks, corpora, nodes and hosts": {
        "track": ("benchctl.cli.track:track_group", "Check, show and make tracks."),
        "corpus": ("benchctl.cli.corpus:corpus_group", "Generate, fetch and list corpora."),
        "node": ("benchctl.cli.node:node_group", "Start, stop and look at single nodes, apart from any run."),
        "hosts": (
            "benchctl.cli.hosts:hosts_group",
            "Check the hosts that carry nodes, or that load comes from.",
        ),
        "lucene": ("benchctl.cli.lucene:lucene_group", "Build Lucene with a change to it."),
    },
}


class Commands(LazyGroup):
    """The commands of benchctl, in the order in which a newcomer meets them."""

    sections: ClassVar = {heading: {**own, **commands(heading)} for heading, own in _SECTIONS.items()}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(benchctl.__version__, "-V", "--version", prog_name="benchctl")
def root() -> None:
    """Is Elasticsearch or OpenSearch faster at this, by how much, and how sure are we?

    Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failed, 2 usage,
    3 and 4 regression and inconclusive (compare --gate), 130 interrupted, 141 output closed early.
    """


def main() -> None:
    """Run the `benchctl` command."""
    status: int = ExitCode.FAILED  # of a bug, which keeps its traceback
    try:
        status = guarded(root)
    finally:
        end_soon(status)
    sys.exit(status)
