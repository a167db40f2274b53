"""The register of features on top of the core, and the hooks that the core calls."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

Hook = Literal[
    "collectors", "details", "foreign_lines", "micro", "micro_source",
    "page", "redline", "redline_search", "references", "report", "sweep",
    "swept_curves", "whole",
]  # fmt: skip
"""Hooks that a slice may give, each a `module` or `module:name` of it, imported when called:

- collectors: the module with check_runtime(kinds of evidence, Java home), which refuses a runtime that cannot
  provide them, and collectors(kinds of evidence, `engine.node.Scene`) -> their `Collector`s
- details(folder and record of a run) -> tables of details of its report that are made from files
- foreign_lines(lines of standard output) -> those that are not of a JVM's own log
- micro: the module with MicroRunner(plan, run folder, home, stop event), a `run.fork.Runner` of forks without
  nodes, prepare_micro(home, plan, progress), and micro_caveats(plan); micro_source(path) -> its `MicroSpec`
- page(analysis, folder and record of its run if it is of one) -> (charts, tables of details) of its page
- redline: the module with redline_curves, redline_doubts and unsteady_nodes, as in `redline.report`
- redline_search(plan, track, block, measure) -> `run.fork.SearchResult`
- references(home, unread) -> (id of a run or its resolved path, who refers to it); `unread` is told what
  cannot be read
- report(analysis, notes or None) -> None, or a `report.table.Addition`
- whole(home, id, tags of the run of that id) -> None, or a `cli.run.Whole` to go on with: that of this id,
  or that the run is part of
- sweep(texts of `--sweep`) -> a `run.plan.Axes`
- swept_curves(rows, plan, margins, method, looks) -> the `stats.analysis.SweepCurve`s of a run
"""


class Slice(NamedTuple):
    """A feature, in a directory that is imported when one of its hooks or commands is called.

    Commands: name -> (heading in `benchctl --help`, `module:attribute`, help in one line).
    """

    hooks: Mapping[Hook, str]
    commands: Mapping[str, tuple[str, str, str]] = {}


SLICES: Mapping[str, Slice] = {
    "redline": Slice(
        {
            "page": "report:page",
            "redline": "report",
            "redline_search": "search:search_redline",
            "report": "report:report",
        },
        {
            "redline": (
                "Measure",
                "commands:redline_command",
                "Find the maximum request rate that meets a latency objective.",
            ),
        },
    ),
    "experiment": Slice(
        {"references": "record:references", "whole": "commands:whole"},
        {
            "experiment": (
                "Measure",
                "commands:experiment_group",
                "Run an experiment and evaluate its expectations.",
            ),
        },
    ),
    "evidence": Slice(
        {
            "collectors": "collectors",
            "details": "inlining_report:history_tables",
            "foreign_lines": "inlining_log:foreign_lines",
            "page": "profile_report:page",
        },
        {
            "explain": (
                "Read results",
                "commands:explain_group",
                "Explain results: inlining and profiles.",
            ),
        },
    ),
    "nightly": Slice(
        {"references": "records:references"},
        {
            "nightly": (
                "Automate",
                "commands:nightly_group",
                "Run suites on a schedule and alert on confirmed changes.",
            ),
        },
    ),
    "micro": Slice(
        {"micro": "conduct", "micro_source": "jmh:read_source"},
        {
            "micro": (
                "Measure",
                "commands:micro_group",
                "Run JMH microbenchmarks and compare variants.",
            ),
        },
    ),
    "sweep": Slice(
        {
            "page": "report:page",
            "report": "report:report",
            "sweep": "points:Sweep.of",
            "swept_curves": "curve:swept_curves",
        }
    ),
}


def hooks(name: Hook) -> list[Any]:
    """Return what the slices give by that name."""
    return [
        resolve_name(f"benchctl.{giver}.{slice_.hooks[name]}")
        for giver, slice_ in SLICES.items()
        if name in slice_.hooks
    ]


def hook(name: Hook) -> Any:
    """Return what the one slice that has it gives by that name."""
    (found,) = hooks(name)
    return found


def commands(heading: str) -> dict[str, tuple[str, str]]:
    """Return the slices' commands below a heading: name -> (`module:attribute`, help in one line)."""
    return {
        name: (f"benchctl.{giver}.{place}", text)
        for giver, slice_ in SLICES.items()
        for name, (section, place, text) in slice_.commands.items()
        if section == heading
    }
