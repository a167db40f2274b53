from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.evidence.profile import PROFILE_NAME, Sample, fork_profiles, profile_of
from benchctl.results.model import BootRecord, ForkRecord
from benchctl.results.plan import task_named
from benchctl.results.samples import empty_columns
from benchctl.results.store import RunFolder
from benchctl.stats.metrics import places
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record

S = 10**9
BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 3, 3, (), "boots/x", origin_ns=-5 * S)
PLAN = make_plan(
    schedules=(
        Challenge("first", (Task("range"), Task("sort"))),
        Challenge("second", (Task("range"),)),
    )
)


def keep(folder: RunFolder, block: int, boot: int, *samples: Sample) -> None:
    target = folder.evidence_folder("es", block, boot)
    target.mkdir(parents=True)
    (target / PROFILE_NAME).write_bytes(msgspec.json.encode(profile_of(samples)))


def requests(folder: RunFolder) -> str:
    """Boot 0: `range` is warmed up in second 0, and measured in 1; `sort` in 3. Boot 1: `range` in 1."""
    columns = empty_columns(4)
    columns["schedule"] = np.array([0, 0, 0, 1], np.int16)
    columns["task"] = np.array([0, 0, 1, 0], np.int16)
    columns["boot"] = np.array([0, 0, 0, 1], np.int16)
    columns["warmup"] = np.array([True, False, False, False])
    columns["start_ns"] = np.array([0, 1, 3, 1], np.int64) * S
    columns["end_ns"] = columns["start_ns"] + S // 2
    return folder.write_samples([columns], "es", 0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.fixture
def fork(folder: RunFolder) -> ForkRecord:
    # The process was there 5 s before the fork's clock began: second 1 is second 6 of its uptime.
    times = [5.1, 6.1, 6.6, 8.2]
    keep(folder, 0, 0, *(Sample(round(at * S), (f"a.A.at{at}",)) for at in times))
    keep(folder, 0, 1, Sample(round(6.2 * S), ("a.A.again",)))
    return make_fork("es", 0, boots=(BOOT, BOOT), evidence=("profile",), samples=requests(folder))


def frames(folder: RunFolder, fork: ForkRecord, task: str) -> set[str]:
    record = make_record(plan=PLAN, forks=(fork,))
    (profile,) = fork_profiles(folder, record, "es")
    tasks = [task_named(PLAN, task)] if task else places(PLAN)
    return {stack[0] for stack in profile.count(folder, tasks)}


def test_all_measured_tasks_of_all_node_starts_of_a_fork_are_counted(folder: RunFolder, fork: ForkRecord):
    assert frames(folder, fork, "") == {"a.A.at6.1", "a.A.at8.2", "a.A.again"}


def test_a_task_has_the_samples_of_its_measured_window(folder: RunFolder, fork: ForkRecord):
    assert frames(folder, fork, "first/range") == {"a.A.at6.1"}
    assert frames(folder, fork, "second/range") == {"a.A.again"}
    assert frames(folder, fork, "sort") == {"a.A.at8.2"}


def test_forks_without_profiles_are_passed_over(folder: RunFolder, fork: ForkRecord):
    plain = make_fork("es", 1, boots=(BOOT,))
    lost = make_fork("es", 2, boots=(BOOT,), evidence=("profile",))
    failed = make_fork("es", 3, boots=(BOOT,), evidence=("profile",), status="failed")
    keep(folder, 3, 0)
    record = make_record(plan=PLAN, forks=(lost, failed, plain, fork))
    assert [found.fork.block for found in fork_profiles(folder, record, "es")] == [0]
    assert fork_profiles(folder, record, "os") == []


def test_without_samples_nobody_knows_when_a_task_ran(folder: RunFolder, fork: ForkRecord):
    (folder.path / "forks" / "000-es.parquet").unlink()
    with pytest.raises(BenchctlError, match="fork 0 of es are not there"):
        frames(folder, fork, "first/range")


def test_without_the_start_of_the_jvm_nobody_knows_either(folder: RunFolder, fork: ForkRecord):
    boot = msgspec.structs.replace(BOOT, origin_ns=None)
    older = msgspec.structs.replace(fork, boots=(boot, boot))
    with pytest.raises(BenchctlError, match="when the JVM of fork 0 started"):
        frames(folder, older, "first/range")
