"""What the driver costs here, and how many processes a load needs."""

import threading

import msgspec
import psutil
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.figures import Calibration, PacedLag
from benchctl.results.model import RunRecord
from benchctl.run.fitness import calibrate, most_offered_per_s, needs_calibration, with_workers
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_plan, make_record, make_summary
from observed import Told
from redlines import SEARCH


def test_a_calibration_that_is_stopped_leaves_no_server_behind():
    stop, told = threading.Event(), Told()
    stop.set()
    with pytest.raises(BenchctlError, match="was interrupted"):
        calibrate(told, stop)
    assert told.stages == ["calibration: overhead of the driver itself"]
    children = [child.cmdline() for child in psutil.Process().children()]
    assert not any("benchctl.load.floor_stub" in command for command in children)


def test_a_record_keeps_the_calibration_and_what_the_driver_did():
    paced = (PacedLag(100.0, 1, 2, 3),)
    calibration = Calibration(41_000, 95_000, 28_400, 14_800.5, 8, 30_120.0, paced, 2.9)
    fork = make_fork("es", 0, make_summary("range", 5.0, driver=make_driver(possible_per_s=100.0)))
    record = make_record(calibration=calibration, forks=(fork,))
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record


FLOOR = Calibration(
    error_p50_ns=20_000, error_p99_ns=50_000, cpu_ns_per_request=20_000, one_client_per_s=9_000.0, clients=8,
    clients_per_s=10_000.0, paced=(), seconds=3.0,
)  # fmt: skip


def plan(*tasks: Task, **changes: object):
    return make_plan(schedules=(Challenge("c", tasks),), **changes)


def test_tasks_of_one_step_add_up_and_steps_do_not():
    together = (Task("a", target_throughput=900.0, group=1), Task("b", target_interval=0.002, group=1))
    assert most_offered_per_s(plan(*together)) == 1400
    assert (
        most_offered_per_s(plan(Task("a", target_throughput=900.0), Task("b", target_interval=0.002))) == 900
    )
    assert most_offered_per_s(plan(Task("a"))) == 0


def test_documents_a_second_are_counted_in_bodies():
    assert most_offered_per_s(plan(Task("send", target_throughput=50_000.0, per_request=500.0))) == 100


@pytest.mark.parametrize(("most", "offered"), [(None, 0), (4e3, 4_000)])
def test_a_search_may_go_up_to_its_bound(most: float | None, offered: float):
    search = msgspec.structs.replace(SEARCH, max_per_s=most)
    assert most_offered_per_s(plan(Task("a", target_throughput=30.0), redline=search)) == offered


def test_a_warm_up_counts_as_well():
    heavy = Challenge("w", (Task("a", target_throughput=5_000.0),))
    assert needs_calibration(plan(Task("a"), warmup_challenges=(heavy,)))
    assert not needs_calibration(plan(Task("a", target_throughput=1_000.0)))


@pytest.mark.parametrize(
    ("rate", "cpus", "workers"), [(4_000, 8, 1), (5_100, 8, 2), (60_000, 8, 8), (9_000, 1, 1)]
)
def test_as_many_processes_as_the_load_needs(rate: float, cpus: int, workers: int):
    assert with_workers(plan(Task("a", target_throughput=rate)), FLOOR, cpus).workers == workers
