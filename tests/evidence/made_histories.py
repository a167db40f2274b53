"""A fork whose `range` ran on a fresh node and after `sort`, with inlining logs."""

import numpy as np

from benchctl.results.model import BootRecord, RunRecord
from benchctl.results.samples import empty_columns
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record
from jvm_logs import INLINED_VISIT, INTS, VIRTUAL_VISIT, head, in_file, thread

S = 10**9
FRESH, AFTER = "on a fresh node", "after sort"
PLAN = make_plan(
    schedules=(
        Challenge("debug", (Task("sort"), Task("range"), Task("terms"))),
        Challenge("alone", (Task("range"),)),
    )
)
# The process began 2 s before the fork's clock; `range` ends at 3 s of the fork, 5 s of the JVM.
BOOTS = tuple(BootRecord((place,), 1.0, 0.1, 0.1, 3, 3, (), "", origin_ns=-2 * S) for place in (0, 1))
INLINED = "inlined: NumericComparator$NumericLeafComparator$1, PointRangeQuery$1$1"


def compiled(number: int, stamp_ms: int, *lines: str) -> tuple[str, ...]:
    return (head(stamp_ms, number, 4, INTS, 198), *lines)


def on_the_other_side(lines: tuple[str, ...], bci: int) -> list[str]:
    return [line.replace("@ 35", f"@ {bci}") for line in lines]


def requests(folder: RunFolder, variant: str) -> str:
    columns = empty_columns(4)
    columns["schedule"] = np.array([0, 0, 0, 1], np.int16)
    columns["task"] = np.array([0, 1, 2, 0], np.int16)
    columns["boot"] = np.array([0, 0, 0, 1], np.int16)
    columns["start_ns"] = np.array([1, 2, 4, 2], np.int64) * S
    columns["end_ns"] = columns["start_ns"] + S
    return folder.write_samples([columns], variant, 0)


def keep(folder: RunFolder, boot: int, name: str, data: bytes, variant: str = "os") -> None:
    path = folder.evidence_folder(variant, 0, boot) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def recorded(folder: RunFolder, *variants: str, kinds: tuple[str, ...] = ("inlining",)) -> RunRecord:
    forks = tuple(
        make_fork(name, 0, boots=BOOTS, evidence=kinds, samples=requests(folder, name)) for name in variants
    )
    return make_record(plan=PLAN, forks=forks)


def logs(folder: RunFolder, variant: str = "os") -> None:
    """Virtual when `range` ends behind `sort`, but not when `terms` ends; inlined where it is alone."""
    eight = [line for bci in (35, 50) for line in on_the_other_side(VIRTUAL_VISIT, bci)]
    later = compiled(2, 5500, *INLINED_VISIT)
    keep(folder, 0, "jvm.log", in_file(thread(1), *compiled(1, 4900, *eight), *later), variant)
    eight = [line for bci in (35, 50) for line in on_the_other_side(INLINED_VISIT, bci)]
    keep(folder, 1, "jvm.log", in_file(thread(1), *compiled(1, 4900, *eight)), variant)
