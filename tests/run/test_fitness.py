"""Whether a host is fit to measure."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import OtherLoad
from benchctl.results.plan import TargetSpec
from benchctl.run.fitness import HostLimits, Snapshot, check_quiet, settle, snapshot
from benchctl.spec import BusyAction
from builders import ES, make_plan

GB = 10**9
QUIET = Snapshot(busy=0.03, others=None, steal=0.0, free_disk_bytes=50 * GB, free_memory_bytes=20 * GB)


def seen(**changes: Any) -> Snapshot:
    return dataclasses.replace(QUIET, **changes)


def other(used: float) -> OtherLoad:
    return OtherLoad(2, used, {"java pid 7": used})


def test_too_little_disk_or_memory_is_lacking():
    assert QUIET.lacks(HostLimits(), 1024) == []
    (disk,) = seen(free_disk_bytes=5 * GB - 1).lacks(HostLimits(), 1024)
    assert disk == "5.0 GB are free on the disk of benchctl's home, 5 GB are required"
    assert seen(free_disk_bytes=0).lacks(HostLimits(least_free_gb=0), 1024) == []
    needed = (1024 + 1024) * 2**20
    assert seen(free_memory_bytes=needed).lacks(HostLimits(), 1024) == []
    (memory,) = seen(free_memory_bytes=needed - 1).lacks(HostLimits(), 1024)
    assert memory.endswith("2.1 GB are required for a node with a heap of 1024 MiB")


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, duration: float) -> None:
        assert duration > 0
        self.now += duration


@pytest.mark.parametrize(
    ("longest_s", "quiet_from_s", "waits_s"), [(600, 0, 0), (600, 55, 60), (95, 10**6, 95), (0, 10**6, 0)]
)
def test_a_job_that_ends_is_waited_for_but_no_longer_than_asked(
    longest_s: float, quiet_from_s: float, waits_s: float
):
    clock, notes = Clock(), list[str]()
    busy = seen(others=other(1.7))
    found = settle(
        lambda: QUIET if clock.now >= quiet_from_s else busy,
        Snapshot.noise,
        longest_s,
        notes.append,
        clock=clock,
        pause=clock.pause,
    )
    assert clock.now == waits_s
    assert found is (QUIET if quiet_from_s <= longest_s else busy)
    assert len(notes) == (waits_s > 0)


def test_this_host_can_be_looked_at(tmp_path: Path):
    found = snapshot(Home(tmp_path), sample_s=0.05, free=lambda _: 17)
    assert found.free_disk_bytes == 17
    assert found.free_memory_bytes > 0
    assert 0 <= found.busy <= 1
    assert found.steal is None or 0 <= found.steal <= 1


def check(found: Callable[[], Snapshot], on_busy: BusyAction | None, clock: Clock, **plan: Any) -> list[str]:
    said: list[str] = []
    check_quiet(
        Home(Path("/nowhere")),
        [make_plan(**{"heap_mb": 1024, **plan})],
        said.append,
        on_busy,
        glance=lambda _: found(),
        clock=clock,
        pause=clock.pause,
    )
    return said


@pytest.mark.parametrize(("apart", "wanted"), [("", "4.3 GB are required"), ("--one-by-one", "2.1 GB")])
def test_nodes_that_are_up_together_need_memory_together(apart: str, wanted: str):
    (said,) = check(lambda: seen(free_memory_bytes=2 * GB), None, Clock(), apart=apart)
    assert wanted in said


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (QUIET, ""),
        (seen(busy=0.9, others=other(0.0)), ""),  # that may be this process
        (seen(busy=0.21), "the CPUs are 21% busy"),
        (seen(others=other(0.2)), ""),
        (seen(others=other(0.21)), "other processes use 0.21 of 2 CPUs (java pid 7: 0.21)"),
        (seen(steal=0.02), ""),
        (seen(steal=0.03), "the hypervisor took 3%"),
        (seen(free_memory_bytes=GB), "1.0 GB of memory are free, 4.3 GB are required"),
        (seen(free_disk_bytes=GB), "1.0 GB are free on the disk"),
    ],
)
def test_a_run_warns_of_a_busy_host_or_fails(found: Snapshot, wrong: str):
    said = check(lambda: found, None, Clock())
    assert said == check(lambda: found, "warn", Clock())
    assert len(said) == bool(wrong)
    assert wrong in "".join(said)
    assert check(lambda: found, "warn", Clock(), test_mode=True) == []
    if wrong:
        with pytest.raises(BenchctlError) as caught:
            check(lambda: found, "fail", Clock(), test_mode=True)
        assert (wrong in caught.value.message, caught.value.exit_code) == (True, 1)
    else:
        assert check(lambda: found, "fail", Clock()) == []


@pytest.mark.parametrize(("quiet_from_s", "waits_s", "lines"), [(0, 0, 0), (55, 60, 1), (10**6, 600, 2)])
def test_a_run_waits_for_a_quiet_host_and_then_warns(quiet_from_s: float, waits_s: float, lines: int):
    clock = Clock()
    busy = seen(others=other(1.7))
    said = check(lambda: QUIET if clock.now >= quiet_from_s else busy, "wait", clock)
    assert ["1.70 of 2 CPUs" in line for line in said] == [True] * lines
    assert clock.now == waits_s


def test_a_run_without_nodes_of_its_own_needs_no_heap():
    spec = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",)))
    assert check(lambda: QUIET, "fail", Clock(), variants=(spec,), heap_mb=10**6) == []
