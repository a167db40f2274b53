"""The command line: options in, one call, output out."""

import sys
from collections.abc import Mapping

import click

import benchctl
from benchctl.cli.boundary import end_soon, guarded
from benchctl.cli.lazy import LazyCommand, LazyGroup
from benchctl.errors import ExitCode

# Commands are imported when they are asked for: the libraries behind a run take a second to load, and neither
# `benchctl node status` nor `benchctl --help` needs them. So the help of all of them is here.
_SECTIONS: Mapping[str, Mapping[str, LazyCommand]] = {
    "Measure": {
        "run": (
            "benchctl.cli.run",
            "run_command",
            "Measure challenges on fresh nodes, and compare the variants.",
        ),
        "redline": (
            "benchctl.redline.commands",
            "redline_command",
            "Find the highest rate at which an operation meets an objective.",
        ),
        "experiment": (
            "benchctl.experiment.commands",
            "experiment_group",
            "Measure what an experiment asks, and judge what it expects.",
        ),
        "ab": (
            "benchctl.search.commands.bisect",
            "ab_command",
            "Build two commits, measure them, and gate a pull request.",
        ),
        "bisect": (
            "benchctl.search.commands.bisect",
            "bisect_command",
            "Find the first commit, version or jar that differs.",
        ),
        "minimize": (
            "benchctl.search.commands.minimize",
            "minimize_command",
            "Find the smallest schedule that still shows an effect.",
        ),
        "resume": (
            "benchctl.cli.resume",
            "resume_command",
            "Go on with a run, experiment, search or night that was cut off.",
        ),
        "extend": (
            "benchctl.cli.resume",
            "extend_command",
            "Add forks to a run, experiment or search that is complete.",
        ),
        "plan": (
            "benchctl.cli.plan",
            "plan_command",
            "Say how many forks a difference takes, before any of them runs.",
        ),
        "calibrate": (
            "benchctl.cli.plan",
            "calibrate_command",
            "Measure what benchctl's own driver costs on this machine.",
        ),
    },
    "Read and compare": {
        "compare": (
            "benchctl.cli.compare",
            "compare_command",
            "Compare stored results, such as `es os`; with --gate for CI.",
        ),
        "show": (
            "benchctl.cli.show",
            "show_command",
            "Print a stored run again, with everything that belongs to it.",
        ),
        "report": (
            "benchctl.cli.report",
            "report_command",
            "Write pages with the verdicts, all tables and plots of runs.",
        ),
        "list": (
            "benchctl.cli.listing",
            "list_group",
            "List runs, searches, challenges, tracks, variants or operations.",
        ),
    },
    "Explain": {
        "profile": (
            "benchctl.evidence.commands.profile",
            "profile_command",
            "Say where nodes spent their time, as a table or a flame graph.",
        ),
        "inlining": (
            "benchctl.evidence.commands.inlining",
            "inlining_command",
            "Show what the JVM inlined, and where variants differ in that.",
        ),
        "evidence": (
            "benchctl.evidence.commands.evidence",
            "evidence_command",
            "Show what compilers, collectors and the kernel did in a run.",
        ),
    },
    "Keep and exchange": {
        "runs": (
            "benchctl.cli.runs",
            "runs_group",
            "Delete stored runs: named ones, or old ones.",
        ),
        "import": (
            "benchctl.cli.import_runs",
            "import_command",
            "Take over results of Rally, OpenSearch Benchmark, JMH.",
        ),
        "export": (
            "benchctl.cli.export",
            "export_command",
            "Export runs to a store of Rally's records, or to Parquet.",
        ),
        "sql": (
            "benchctl.cli.sql",
            "sql_command",
            "Answer a query over stored runs and all their samples.",
        ),
        "schema": (
            "benchctl.cli.schema",
            "schema_command",
            "Print the JSON Schema of what benchctl writes.",
        ),
    },
    "Unattended": {
        "nightly": (
            "benchctl.nightly.commands",
            "nightly_group",
            "Run suites on a schedule and alert on confirmed changes.",
        ),
    },
    "Tracks, corpora, nodes and hosts": {
        "track": (
            "benchctl.cli.track",
            "track_group",
            "Check, show and make tracks.",
        ),
        "corpus": (
            "benchctl.cli.corpus",
            "corpus_group",
            "Generate, fetch and list corpora.",
        ),
        "node": (
            "benchctl.cli.node",
            "node_group",
            "Start, stop and look at single nodes, apart from any run.",
        ),
        "hosts": (
            "benchctl.cli.hosts",
            "hosts_group",
            "Check the hosts that carry nodes, or that load comes from.",
        ),
        "micro": (
            "benchctl.micro.commands",
            "micro_group",
            "Measure microbenchmarks of JMH, and compare variants.",
        ),
        "lucene": (
            "benchctl.cli.lucene",
            "lucene_group",
            "Build Lucene with a change to it.",
        ),
    },
}


class Commands(LazyGroup):
    """The commands of benchctl, in the order in which a newcomer meets them."""

    sections = _SECTIONS


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
