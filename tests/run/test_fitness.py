"""Whether a host is fit to measure."""

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import OtherLoad
from benchctl.results.plan import TargetSpec
from benchctl.run.fitness import (
    SAMPLE_S,
    Fitness,
    HostLimits,
    Snapshot,
    check_quiet,
    examine,
    settle,
    snapshot,
)
from benchctl.spec import BusyAction
from builders import ES, make_environment, make_plan

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
GB = 10**9
QUIET = Snapshot(
    now=NOW, load1=0.2, busy=0.03, others=None, steal=0.0, free_disk_bytes=50 * GB, free_memory_bytes=20 * GB
)


def seen(**changes: Any) -> Snapshot:
    return dataclasses.replace(QUIET, **changes)


def night_at(started: datetime) -> tuple[int, str]:
    return 7, started.isoformat()


def fitness(
    found: Snapshot = QUIET,
    limits: HostLimits | None = None,
    last: tuple[int, str] | None = None,
    heap_mb: int = 1024,
    on_busy: BusyAction = "warn",
    **host: Any,
) -> Fitness:
    return examine(
        make_environment(**host),
        found,
        limits or HostLimits(),
        heap_mb,
        last,
        on_busy,
    )


def test_a_quiet_host_is_fit():
    assert fitness() == Fitness()
    assert fitness(last=night_at(NOW - timedelta(days=1))) == Fitness()


@pytest.mark.parametrize(
    ("found", "host", "limits", "reason"),
    [
        (seen(load1=1.01), {}, {}, "the load is 1.0 on 2 CPUs, more than 0.5 each"),
        (seen(load1=0.6), {"cpus": 1}, {}, "the load is 0.6 on 1 CPU, more than 0.5 each"),
        (seen(load1=0.3), {}, {"max_load": 0.1}, "the load is 0.3 on 2 CPUs, more than 0.1 each"),
        (seen(busy=0.21), {}, {}, "the CPUs are 21% busy, more than 20%"),
        (seen(busy=0.06), {}, {"max_busy": "5%"}, "the CPUs are 6% busy, more than 5%"),
        (seen(steal=0.03), {}, {}, "the hypervisor took 3% of the CPUs' time"),
        (QUIET, {"governor": "powersave"}, {"governor": "performance"}, "'powersave', not 'performance'"),
    ],
)
def test_a_host_that_is_not_quiet_marks_the_night_or_has_it_refused(
    found: Snapshot, host: dict[str, Any], limits: dict[str, Any], reason: str
):
    marked = fitness(found, HostLimits(**limits), **host)
    assert marked.refused == ()
    assert reason in marked.noise[0]
    assert len(marked.noise) == 1
    refused = fitness(found, HostLimits(**limits), on_busy="fail", **host)
    assert refused == Fitness(refused=marked.noise)


def test_limits_themselves_are_still_fit():
    assert fitness(seen(load1=1.0, busy=0.2, steal=0.02), governor="powersave") == Fitness()
    assert fitness(seen(steal=None)) == Fitness()
    assert fitness(limits=HostLimits(governor="performance"), governor="performance") == Fitness()


def test_other_java_processes_have_a_policy_of_their_own():
    java = ("pid 7",)
    assert fitness(other_java=java).noise == ("other Java processes are up: pid 7",)
    limits = HostLimits(other_java="refuse")
    assert fitness(seen(load1=9.0), limits, other_java=java) == Fitness(
        refused=("other Java processes are up: pid 7",),
        noise=("the load is 9.0 on 2 CPUs, more than 0.5 each",),
    )


def test_too_little_disk_or_memory_is_always_refused():
    assert fitness(seen(free_disk_bytes=5 * GB - 1)).refused == (
        "5.0 GB are free on the disk of benchctl's home, 5 GB are wanted",
    )
    assert fitness(seen(free_disk_bytes=0), HostLimits(least_free_gb=0)) == Fitness()
    needed = (1024 + 1024) * 2**20
    assert fitness(seen(free_memory_bytes=needed)) == Fitness()
    assert fitness(seen(free_memory_bytes=needed - 1)).refused == (
        "2.1 GB of memory are free, 2.1 GB are wanted for a node with a heap of 1024 MiB",
    )
    limits = HostLimits(least_free_memory_gb=30)
    assert fitness(QUIET, limits).refused == ("20.0 GB of memory are free, 30.0 GB are wanted",)


def test_a_clock_that_cannot_be_right_is_told_and_refuses_nothing():
    later = night_at(NOW + timedelta(hours=2))
    back = fitness(last=later)
    said = "the clock went back: it says 2026-11-21 03:00, and night 7 before this one began at"
    assert back == Fitness(notes=(f"{said} 2026-11-21T05:00:00+00:00",))
    assert fitness(last=night_at(NOW + timedelta(minutes=4))) == Fitness()
    unset = fitness(seen(now=datetime(1970, 1, 1, tzinfo=UTC)))
    assert unset == Fitness(notes=("the clock says 1970-01-01: it has not been set",))


def test_a_governor_that_nobody_knows_is_told():
    assert fitness(limits=HostLimits(governor="performance")) == Fitness(
        notes=("the kernel does not say whether the CPU governor is 'performance'",)
    )


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, duration: float) -> None:
        assert duration > 0
        self.now += duration


def settled(limits: HostLimits, quiet_from_s: float) -> tuple[float, list[str]]:
    clock, notes = Clock(), list[str]()
    waited = settle(
        limits,
        notes.append,
        cpus=2,
        look=lambda: (0.1, 0.0) if clock.now >= quiet_from_s else (3.0, 0.5),
        clock=clock,
        pause=clock.pause,
    )
    assert waited == clock.now
    return waited, notes


def test_a_quiet_host_is_not_waited_for():
    assert settled(HostLimits(), 0) == (0.0, [])


def test_a_job_that_ends_is_waited_for():
    waited, notes = settled(HostLimits(), 55)
    assert 55 <= waited <= 65
    load, busy = "the load is 3.0 on 2 CPUs, more than 0.5 each", "the CPUs are 50% busy, more than 20%"
    assert notes == [f"{load}; {busy}: waiting for a quiet host, 10m at most"]


def test_nobody_waits_for_longer_than_the_suite_says():
    assert settled(HostLimits(settle="95s"), 10**6)[0] == 95
    assert settled(HostLimits(settle="0s"), 10**6) == (0.0, [])


def test_this_host_can_be_looked_at(tmp_path: Path):
    waits: list[float] = []
    found = snapshot(Home(tmp_path), pause=waits.append, now=lambda: NOW, free=lambda _: 17)
    assert waits == [SAMPLE_S]
    assert found.now == NOW
    assert found.free_disk_bytes == 17
    assert found.free_memory_bytes > 0
    assert found.load1 >= 0
    assert 0 <= found.busy <= 1
    assert found.steal is None or 0 <= found.steal <= 1


def other(used: float) -> OtherLoad:
    return OtherLoad(2, used, {"java pid 7": used})


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


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (QUIET, ""),
        (seen(load1=9.0), ""),  # that may have been the run before
        (seen(busy=0.9), ""),  # and that this process
        (seen(others=other(0.2)), ""),
        (seen(others=other(0.21)), "other processes use 0.21 of 2 CPUs (java pid 7: 0.21)"),
        (seen(steal=0.03), "the hypervisor took 3%"),
        (seen(free_memory_bytes=GB), "1.0 GB of memory are free, 2.1 GB are wanted"),
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
