from collections.abc import Callable
from typing import Any

import pytest

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, HostProbe
from benchctl.stats.disturbed import disturbances, stalled, stalls
from builders import make_driver


def probe(cpu_ns: int = 100, memory_ns: int = 100):
    return HostProbe(cpu_ns, memory_ns, None, 0.0, None)


def test_a_slow_host_during_one_fork(fork: Callable[..., ForkRecord]):
    quiet = [fork("es", block, probes=(probe(), probe(cpu_ns=104))) for block in range(4)]
    loud = fork("os", 2, probes=(probe(), probe(memory_ns=130)))
    found = disturbances({"es": quiet, "os": [loud]})
    assert [(one.variant, one.block, one.kernel) for one in found] == [("os", 2, "memory")]
    assert found[0].text == "the host's memory probe ran 30 % slower than usual"


def test_without_probes_nothing_is_known(fork: Callable[..., ForkRecord]):
    assert disturbances({"es": [fork("es", 0)]}) == []


@pytest.mark.parametrize(
    ("driver", "texts", "large"),
    [
        ({}, [], False),
        ({"window_s": None, "longest_ns": 20e9}, [], False),
        ({"longest_ns": 20e9}, ["one request took 20.0 s, 45 % of the measured time"], True),
        # A collection of garbage; one in a long task; and one where all requests take long.
        ({"window_s": 4.0, "longest_ns": 0.9e9}, [], False),
        ({"longest_ns": 2e9}, [], False),
        ({"window_s": 80.0, "longest_ns": 9e9, "usual_ms": 1000}, [], False),
        # What benchctl itself did, or what was done to it, is told however short it was.
        (
            {"stopped_s": 1.0, "longest_ns": 1.1e9},
            ["benchctl itself did not run for 1.0 s, 2.3 % of the measured time"],
            False,
        ),
        (
            {"stopped_s": 6.0, "longest_ns": 6.1e9, "lag_max_ns": 6e9},
            ["benchctl itself did not run for 6.0 s, 14 % of the measured time"],
            True,
        ),
        (
            {"lag_max_ns": 9e9},
            ["benchctl paused between requests for 9.0 s, 20 % of the measured time"],
            True,
        ),
        ({"suspended_s": 3600.0}, ["the machine was suspended for 3,600 s"], False),
    ],
)
def test_waits_that_are_told(
    driver: dict[str, Any], texts: list[str], *, large: bool, summary: Callable[..., TaskSummary]
):
    changes = {"window_s": 44.0, "longest_ns": 2e7, "usual_ms": 10.0, **driver}
    found = summary(changes.pop("usual_ms"), driver=make_driver(**changes))
    assert [stall.text for stall in stalls(found)] == texts
    assert stalled(found) == large
