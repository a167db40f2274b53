"""Charts of a run's evidence: of every task that is reported, the forks that carried some."""

from collections.abc import Iterator

import numpy as np

from benchctl.errors import BenchctlError
from benchctl.report.chart import Chart
from benchctl.report.charts.jit import jit_chart
from benchctl.report.charts.panels import Frame
from benchctl.report.layout import task_name
from benchctl.results.evidence import JIT_DTYPES, JIT_FILE, fork_evidence
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import SampleFile
from benchctl.results.samples import Columns, select
from benchctl.results.store import RunFolder
from benchctl.results.windows import task_windows
from benchctl.stats.analysis import Analysis
from benchctl.stats.jit_course import JitCourse, jit_course


def evidence_charts(folder: RunFolder, record: RunRecord, analysis: Analysis) -> list[Chart]:
    """Draw what was collected; what cannot be read is not drawn.

    Args:
        folder: of the run.
        record: of it.
        analysis: of it; its rows say which tasks are reported.
    """
    carrying = [fork for fork in record.forks if fork.status == "done" and "jit" in fork.evidence]
    found: dict[Place, list[JitCourse]] = {}
    for fork in sorted(carrying, key=lambda one: (analysis.variants.index(one.variant), one.block)):
        try:
            for place, course in _courses(folder, fork):
                found.setdefault(place, []).append(course)
        except BenchctlError:
            # `benchctl evidence` says why; figures and other charts do not depend on it.
            continue
    groups = {(row.schedule, row.task): task_name(row, analysis) for row in analysis.rows}
    charts = [
        jit_chart(found.get(place, []), Frame(f"{place[0]}-{place[1]}", group, analysis.variants))
        for place, group in groups.items()
    ]
    return [chart for chart in charts if chart is not None]


def _courses(folder: RunFolder, fork: ForkRecord) -> Iterator[tuple[Place, JitCourse]]:
    events = fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES)
    if events is None or fork.samples is None:
        return
    windows = task_windows(folder, fork)
    requests = _by_place(folder, fork.samples)
    for place, window in windows.items():
        yield place, jit_course(fork.variant, fork.block, requests[place], events, window)


def _by_place(folder: RunFolder, samples: str) -> dict[Place, Columns]:
    """All samples of a fork, by task."""
    chunks = list(SampleFile(folder.inside(samples)))
    rows = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    keys = set(zip(rows["schedule"].tolist(), rows["task"].tolist(), strict=True))
    return {
        (schedule, task): select(rows, (rows["schedule"] == schedule) & (rows["task"] == task))
        for schedule, task in keys
    }
