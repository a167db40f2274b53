"""CPU of other processes, by clocks that a test sets, and once by those of this host."""

import os
import subprocess
import sys

import pytest

from benchctl.results.model import OtherLoad
from benchctl.run.host import Look, Seen, look, used_by_others

OWN = 100


def seen(name: str, own_s: float, *, parent: int = 1, ended_s: float = 0.0, started_s: float = 1.0) -> Seen:
    return Seen(parent, started_s, name, own_s, own_s + ended_s)


def at(at_s: float, busy_s: float, processes: dict[int, Seen], *, total_s: float | None = None) -> Look:
    return Look(at_s, 2, 2 * at_s if total_s is None else total_s, busy_s, processes)


BEFORE = at(
    0.0,
    50.0,
    {
        OWN: seen("benchctl", 5.0),
        7: seen("python3", 30.0),
        8: seen("cron", 1.0),
        9: seen("make", 4.0),
    },
)


def test_what_is_neither_ours_nor_idle_is_that_of_others():
    after = at(
        10.0,
        # 3 s of benchctl, 4 of a node that ended, 2 of one of its own, 5 of the spinner, 0.5 of cc1, 0.5
        # of what had ended.
        65.0,
        {
            OWN: seen("benchctl", 8.0, ended_s=4.0),
            200: seen("keeper", 0.5, parent=OWN),
            201: seen("java", 1.5, parent=200),
            7: seen("python3", 35.0),
            8: seen("cron", 1.0),
            9: seen("cc1", 0.5, started_s=5.0),
        },
    )
    found = used_by_others(BEFORE, after, OWN)
    names = {"python3 pid 7": 0.5, "cc1 pid 9": 0.05}
    assert found == OtherLoad(2, pytest.approx(0.6), names, own=pytest.approx(0.6))
    assert found.share == pytest.approx(1.0)


def test_processes_of_a_name_count_together_and_only_the_largest_are_named():
    names = ["a", "b", "b", "c", "d"]
    after = at(
        10.0, 60.0, BEFORE.processes | {300 + place: seen(name, 1.0) for place, name in enumerate(names)}
    )
    found = used_by_others(BEFORE, after, OWN)
    assert found is not None
    assert len(found.processes) == 3
    assert next(iter(found.processes.items())) == ("b", pytest.approx(0.2))


@pytest.mark.parametrize(
    ("total_s", "busy_s", "own_s"),
    [(0.0, 50.0, 5.0), (20.0, 50.0, 9.0)],
    ids=["clocks that stand still", "less than our own"],
)
def test_clocks_that_are_not_the_hosts_are_unknown(total_s: float, busy_s: float, own_s: float):
    after = at(10.0, busy_s, {OWN: seen("benchctl", own_s)}, total_s=total_s)
    assert used_by_others(BEFORE, after, OWN) is None


def test_a_child_is_ours_and_for_another_process_it_is_not():
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    before = look()
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = look()
    ours, theirs = (used_by_others(before, after, own) for own in (os.getpid(), 0))
    assert ours is not None, "the clocks of this host cannot be read"
    assert theirs is not None
    assert 0 <= ours.used <= theirs.used
    assert ours.own * (after.at_s - before.at_s) >= 0.4
    assert (theirs.used - ours.used) * (after.at_s - before.at_s) >= 0.4
