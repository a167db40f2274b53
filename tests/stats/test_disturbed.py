from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, HostProbe
from benchctl.stats.disturbed import disturbances, stalled, stalls
from builders import make_driver, make_fork


def probe(cpu_ns: int = 100, memory_ns: int = 100):
    return HostProbe(cpu_ns, memory_ns, None, 0.0, None)


def test_a_slow_host_during_one_fork(fork: Callable[..., ForkRecord]):
    quiet = [fork("es", block, probes=(probe(), probe(cpu_ns=104))) for block in range(4)]
    loud = fork("os", 2, probes=(probe(), probe(memory_ns=130)))
    found = disturbances({"es": quiet, "os": [loud]})
    assert [(one.variant, one.block, one.kernel) for one in found] == [("os", 2, "memory")]
    assert found[0].text == "the host's memory probe ran 30 % slower than its median in this run"


def test_a_host_that_is_never_quiet_marks_few_forks(fork: Callable[..., ForkRecord]):
    """A mark that nearly all forks bear says nothing."""
    ran = (100, 130, 80, 112, 95, 121, 88, 104, 140, 92)
    forks = [fork("es", block, probes=(probe(cpu_ns=cpu),)) for block, cpu in enumerate(ran)]
    assert disturbances({"es": forks}) == []
    loud = fork("os", 3, probes=(probe(cpu_ns=300),))
    assert [(one.variant, one.block) for one in disturbances({"es": forks, "os": [loud]})] == [("os", 3)]


@given(st.lists(st.integers(50, 400), min_size=2, max_size=40), st.integers(1, 1000))
def test_at_most_half_of_the_forks_stand_out_whatever_the_unit(cpu: list[int], factor: int):
    marked = [
        [
            one.block
            for one in disturbances(
                {"es": [make_fork("es", block, probes=(probe(ns * by),)) for block, ns in enumerate(cpu)]}
            )
        ]
        for by in (1, factor)
    ]
    assert marked[0] == marked[1]
    assert 2 * len(marked[0]) <= len(cpu)


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
