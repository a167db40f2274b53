"""Runs on disk made by hand, samples included: what pages and their charts are tried on."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from benchctl.results.model import RunRecord
from benchctl.results.samples import Columns
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from sampled import make_samples

TYPICAL_MS = {"es": 4.0, "os": 5.0}


def draw_run(
    store: RunStore, run_id: str, *, tasks: Sequence[str] = ("range", "sort"), forks: int = 4, **changes: Any
) -> tuple[RunFolder, RunRecord]:
    """A complete run of both engines; `os` is slower, and no two forks are alike."""
    folder = store.create(run_id)
    draw = np.random.default_rng(1)
    done = []
    for block in range(forks):
        for place, (variant, typical_ms) in enumerate(TYPICAL_MS.items()):
            mean_ms = typical_ms * (1 + 0.02 * ((block * 3 + place) % 5))
            chunks = [_samples(draw, mean_ms, task) for task in range(len(tasks))]
            done.append(
                make_fork(
                    variant,
                    block,
                    *(make_summary(label, mean_ms, task=task) for task, label in enumerate(tasks)),
                    samples=folder.write_samples(iter(chunks), variant, block),
                )
            )
    schedule = Challenge("c", tuple(Task(name, iterations=200) for name in tasks))
    plan = make_plan(schedules=(schedule,), forks=forks)
    record = make_record(run_id, status="complete", forks=tuple(done), plan=plan)
    record = msgspec.structs.replace(record, **changes)
    folder.save(record)
    return folder, record


def _samples(draw: np.random.Generator, mean_ms: float, task: int) -> Columns:
    """Thirty warm-up requests, then two hundred, of which the first forty are slower."""
    factor = np.concatenate([np.full(70, 2.0), np.ones(160)])
    service_ms = mean_ms * factor * draw.lognormal(0.0, 0.2, 230)
    hits = np.array([10, 1_000, 100_000])[np.arange(230) % 3]
    return make_samples(
        service_ms.tolist(), start_ms=2_000.0 * task, task=task, warmup=np.arange(230) < 30, hits=hits
    )
