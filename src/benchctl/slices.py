"""The register of features on top of the core, and the hooks that the core calls."""

import importlib
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, Literal

Hook = Literal[
    "check_runtime", "collectors", "evidence_cost", "evidence_everywhere", "foreign_lines", "fork_runner",
    "imported", "listing", "micro_caveats", "micro_source", "micro_subjects", "redline_curves",
    "redline_doubts", "redline_search", "redline_steadiness", "references", "schemas", "sql_view", "sweep",
    "swept_curves", "whole",
]  # fmt: skip
"""What a slice may give in its `hooks.py`, or the `module:name` of it, which is imported when it is called:

- check_runtime(kinds of evidence, Java home): refuses a runtime that cannot provide them
- collectors(kinds of evidence, `engine.collecting.Scene`) -> their `Collector`s
- evidence_cost(record) -> a `stats.parts.EvidenceCost`; evidence_everywhere(kinds) -> a `Caveat`
- fork_runner(plan, run folder, home, stop event) -> a `run.fork.Runner` of forks without nodes
- foreign_lines(lines of standard output) -> those that are not of a JVM's own log
- imported(files, variant, tags) -> None, or (label, record, what keeps the rest) of JMH's
- listing: a command of `benchctl list`
- micro_caveats(plan), micro_source(path), micro_subjects(home, plan, progress): of microbenchmarks
- redline_curves, redline_doubts, redline_steadiness: of a search, as in `redline.judge`
- redline_search(plan, track, block, measure) -> `run.fork.SearchResult`
- references(home, unread) -> (id of a run or its resolved path, who refers to it); `unread` is told what
  cannot be read
- schemas: name -> (type, key of its version, version), for `benchctl schema`
- whole(home, id, tags of the run of that id) -> None, or a `cli.resume.Whole` to go on with: that of this id,
  or that the run is part of
- sql_view(home) -> a `results.sql.FileView`
- sweep(texts of `--sweep`) -> a `run.plan.Axes`
- swept_curves(rows, plan, paired, sequential) -> the `stats.parts.SweepCurve`s of a sweep
"""

# A slice is a folder and a line here: what its `hooks.py` gives.
SLICES: Mapping[str, tuple[Hook, ...]] = {
    "evidence": ("check_runtime", "collectors", "evidence_cost", "evidence_everywhere", "foreign_lines"),
    "experiment": ("references", "whole"),
    "micro": ("fork_runner", "imported", "micro_caveats", "micro_source", "micro_subjects"),
    "nightly": ("references", "schemas", "sql_view", "whole"),
    "redline": ("redline_curves", "redline_doubts", "redline_search", "redline_steadiness"),
    "search": ("listing", "references", "whole"),
    "sweep": ("sweep", "swept_curves"),
}


def hooks(name: Hook) -> list[Any]:
    """Return what the slices give by that name."""
    givers = [slice_ for slice_, given in SLICES.items() if name in given]
    found = [getattr(importlib.import_module(f"benchctl.{giver}.hooks"), name) for giver in givers]
    return [resolve_name(one) if isinstance(one, str) else one for one in found]


def hook(name: Hook) -> Any:
    """Return what the one slice that has it gives by that name."""
    (found,) = hooks(name)
    return found
