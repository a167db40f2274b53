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
        "run": ("benchctl.cli.run:run_command", "Run challenges on fresh nodes and compare the variants."),
        "resume": (
            "benchctl.cli.resume:resume_command",
            "Resume an interrupted run, experiment, search or night.",
        ),
        "extend": (
            "benchctl.cli.resume:extend_command",
            "Add forks to a finished run, experiment or search.",
        ),
    },
    "Prepare": {
        "doctor": ("benchctl.cli.doctor:doctor_command", "Check whether this host is fit to measure."),
        "plan": (
            "benchctl.cli.plan:plan_command",
            "Estimate the forks and time needed to detect a difference.",
        ),
        "list": (
            "benchctl.cli.listing:list_group",
            "List challenges, tracks, variants, metrics and searches.",
        ),
        "track": ("benchctl.cli.track:track_group", "Create, validate and inspect tracks."),
    },
    "Read results": {
        "compare": (
            "benchctl.cli.compare:compare_command",
            "Compare stored results, optionally as a CI gate.",
        ),
        "show": ("benchctl.cli.compare:show_command", "Show the results of a stored run."),
        "runs": ("benchctl.cli.runs:runs_group", "List, delete, import and export stored runs."),
    },
    "Automate": {},
    "Search and experiment": {},
    "Documents and nodes": {
        "corpus": ("benchctl.cli.corpus:corpus_group", "Generate, download and list corpora."),
        "node": ("benchctl.cli.node:node_group", "Start, stop and inspect standalone nodes."),
        "lucene": ("benchctl.cli.lucene:lucene_group", "Build patched Lucene jars."),
    },
    "Integrate": {
        "sql": ("benchctl.cli.sql:sql_command", "Query stored runs and samples with SQL."),
        "schema": ("benchctl.cli.schema:schema_command", "Print the JSON Schema of an output format."),
    },
}


class Commands(LazyGroup):
    """The commands of benchctl, in the order in which a newcomer meets them."""

    sections: ClassVar = {heading: {**own, **commands(heading)} for heading, own in _SECTIONS.items()}
    rare = frozenset({"Search and experiment", "Documents and nodes", "Integrate"})
    aliases: ClassVar = {"capacity": "redline"}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(benchctl.__version__, "-V", "--version", prog_name="benchctl")
def root() -> None:
    """Benchmark Elasticsearch and OpenSearch, and quantify the differences.

    Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 failed, 2 usage,
    3 regression or alarm, 4 inconclusive, 130 interrupted, 141 output closed early.
    """


def main() -> None:
    """Run the `benchctl` command."""
    status: int = ExitCode.FAILED  # of a bug, which keeps its traceback
    try:
        status = guarded(root)
    finally:
        end_soon(status)
    sys.exit(status)
