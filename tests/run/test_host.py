"""What is said about a host, and its CPUs: chosen, kept to and given back."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.plan import PinSpec
from benchctl.run.host import (
    AUTO,
    cores_of,
    describe_host,
    pin_caveats,
    pin_of,
    pinned,
    thread_on,
)
from benchctl.run.orchestrate import environment_changes, pin_changes
from builders import make_plan
from golden import Cases


def test_a_host_is_described_alike_every_time():
    first, second = describe_host(), describe_host()
    assert first.fingerprint == second.fingerprint
    assert environment_changes(first, second) == []
    assert first.cpus > 0
    assert first.memory_bytes > 2**28
    assert first.libcurl.startswith("libcurl/")


@pytest.mark.parametrize(
    "name", ["hostname", "kernel", "cpu_model", "python", "benchctl", "libcurl", "governor"]
)
def test_what_a_run_may_not_cross_is_named(name: str):
    before = describe_host()
    now = msgspec.structs.replace(before, **{name: "other"})
    (change,) = environment_changes(before, now)
    assert name.replace("_", " ") in change
    assert "is other" in change


NOWHERE = 4095
MINE = sorted(os.sched_getaffinity(0))

needs_two = pytest.mark.skipif(len(MINE) < 2, reason="one CPU cannot be divided")


def pin(text: str, cpus: Sequence[int], *, workers: int = 1, threads: int = 1) -> PinSpec:
    """What `--pin` means on a host with so many hardware threads a core, numbered one after the other."""
    cores = [tuple(cpus[at : at + threads]) for at in range(0, len(cpus), threads)]
    return pin_of(text, workers=workers, allowed=cpus, cores=cores)


@pytest.mark.parametrize(
    ("cpus", "threads", "workers", "node", "driver"),
    [
        (range(2), 1, 1, (0,), (1,)),
        (range(4), 1, 1, (0, 1, 2), (3,)),
        (range(8), 1, 3, (0, 1, 2, 3, 4), (5, 6, 7)),
        (range(4), 1, 9, (0, 1), (2, 3)),
        (range(8), 2, 1, (0, 1, 2, 3, 4, 5), (6, 7)),
        (range(8), 2, 3, (0, 1, 2, 3), (4, 5, 6, 7)),
        (range(2), 2, 1, (0,), (1,)),
        (range(3), 1, 2, (0, 1), (2,)),
        ((3, 5, 9), 1, 1, (3, 5), (9,)),
    ],
)
def test_the_driver_gets_the_last_cores_and_the_node_the_rest(
    cpus: Sequence[int], threads: int, workers: int, node: tuple[int, ...], driver: tuple[int, ...]
):
    assert pin(AUTO, tuple(cpus), workers=workers, threads=threads) == PinSpec(node, driver)


@given(
    cores=st.integers(1, 16), threads=st.sampled_from([1, 2, 4]), workers=st.integers(1, 64), data=st.data()
)
def test_all_cpus_are_given_and_none_twice(cores: int, threads: int, workers: int, data: st.DataObject):
    every = [core * threads + thread for core in range(cores) for thread in range(threads)]
    allowed = tuple(sorted(data.draw(st.sets(st.sampled_from(every), min_size=min(2, len(every))))))
    if len(allowed) < 2:
        return
    groups = sorted({tuple(cpu for cpu in allowed if cpu // threads == one // threads) for one in allowed})
    found = pin_of(AUTO, workers=workers, allowed=allowed, cores=groups)
    assert found.node
    assert found.driver
    assert sorted((*found.node, *found.driver)) == list(allowed)
    if len(groups) > 1:
        for group in groups:
            assert set(group) <= set(found.node) or set(group) <= set(found.driver)


def test_cpus_are_taken_as_written():
    assert pin("node=0-2,5,driver=3,4", tuple(range(6))) == PinSpec((0, 1, 2, 5), (3, 4))
    assert pin("driver=0,node=1", (0, 1, 2)) == PinSpec((1,), (0,))


def test_what_makes_no_sense_is_refused(cases: Cases):
    cases("pins", lambda text: pin(text, tuple(range(4))))


def test_one_cpu_cannot_be_divided():
    with pytest.raises(UsageError, match="may use only CPU 3"):
        pin(AUTO, (3,))


def test_cores_are_as_the_kernel_says(tmp_path: Path):
    for cpu, siblings in ((0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings)
    assert cores_of(range(4), tmp_path) == ((0, 2), (1, 3))
    assert cores_of((0, 1, 3), tmp_path) == ((0,), (1, 3))
    assert cores_of((0, 7), tmp_path) == ((0,), (7,))


def test_a_reader_is_told_what_a_pin_costs():
    plain = make_plan()
    assert pin_caveats(plain, [(0,), (1,)]) == ()
    wide = make_plan(pin=PinSpec((0, 1), (2, 3)))
    assert pin_caveats(wide, [(0, 1), (2, 3)]) == ()
    (shared,) = pin_caveats(wide, [(0, 2), (1, 3)])
    assert "share a core: CPUs 0,2 and 1,3" in shared
    (narrow,) = pin_caveats(make_plan(pin=PinSpec((4,), (5,))), [(4,), (5,)])
    assert narrow == (
        "nodes were pinned to CPU 4: the JVM saw 1 CPU, GC and JIT threads share it with searches"
    )


def test_a_run_can_go_on_where_its_cpus_can_be_had():
    plan = make_plan(pin=PinSpec((0, 1), (2,)))
    assert pin_changes(plan, (0, 1, 2, 3)) == []
    assert pin_changes(make_plan(), (0,)) == []
    assert pin_changes(plan, (0, 1)) == ["CPUs 2, which it was pinned to, are not available"]


@needs_two
def test_all_threads_are_moved_and_moved_back():
    usual, one = set(MINE), MINE[-1]
    ended = threading.Event()
    seen: list[set[int]] = []

    def look() -> None:
        seen.append(os.sched_getaffinity(0))
        ended.wait(30)

    older = threading.Thread(target=ended.wait, args=(30,))
    older.start()
    assert older.native_id is not None
    try:
        with pinned(PinSpec((MINE[0],), (one,))):
            assert os.sched_getaffinity(0) == os.sched_getaffinity(older.native_id) == {one}
            newer = threading.Thread(target=look)
            newer.start()
            assert newer.native_id is not None
        assert os.sched_getaffinity(0) == os.sched_getaffinity(older.native_id) == usual
        assert os.sched_getaffinity(newer.native_id) == usual
    finally:
        ended.set()
        older.join()
    newer.join()
    assert seen == [{one}]


def test_cpus_that_the_kernel_refuses_are_named_and_nothing_stays_moved():
    with (
        pytest.raises(BenchctlError, match=f"cannot run on CPU {NOWHERE}"),
        pinned(PinSpec((MINE[0],), (NOWHERE,))),
    ):
        pass
    assert os.sched_getaffinity(0) == set(MINE)


@needs_two
def test_a_thread_may_go_elsewhere_for_a_while():
    with thread_on((MINE[0],)):
        assert os.sched_getaffinity(0) == {MINE[0]}
        with thread_on(None):
            assert os.sched_getaffinity(0) == {MINE[0]}
    assert os.sched_getaffinity(0) == set(MINE)
