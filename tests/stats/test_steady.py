import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.figures import TaskSummary
from benchctl.stats.analysis import Figures, Steadiness, provisional
from benchctl.stats.compare import Comparison
from benchctl.stats.doubts import advice, steadiness
from benchctl.track.model import Task
from builders import make_driver, make_summary

DRIFTS = st.lists(st.floats(-2, 2), min_size=2, max_size=20)
COUNTED = Task("range", iterations=300)


def of_drifts(drifts: Sequence[float | None], **changes: Any) -> list[TaskSummary]:
    return [make_summary("range", 1.0, drift=drift, **changes) for drift in drifts]


def of_task(drifts: Sequence[float | None], **changes: Any) -> Steadiness:
    """A run of this task alone."""
    return steadiness({"task": of_drifts(drifts, **changes)})["task"]


@pytest.mark.parametrize(
    ("drifts", "state", "trend", "text"),
    [
        (
            [-0.42, -0.43, -0.41],
            "not steady",
            "not warmed up",
            "was still getting faster: last third 34% faster",
        ),
        ([0.17, 0.18, 0.19], "not steady", "drifting", "was getting slower: last third 20% slower"),
        # One fork of many, and what is significant and under 5%.
        ([0.0, 0.01, -0.01, 0.5], "steady", None, ""),
        ([0.030, 0.031, 0.029], "steady", None, ""),
        # Without a spread over forks nothing is tested.
        ([], "unknown", None, ""),
        ([None, None], "unknown", None, ""),
        ([None, 0.7], "unknown", None, ""),
        ([0.1, 0.1], "unknown", None, ""),
    ],
)
def test_drifts_and_what_they_say(drifts: list[float | None], state: str, trend: str | None, text: str):
    found = of_task(drifts)
    assert (found.state, found.trend) == (state, trend)
    assert found.text.startswith(text)


def test_what_stalls_and_changing_documents_did_is_not_the_engine_s():
    drifts = [math.log(0.66), math.log(0.65), math.log(0.67)]
    assert of_task(drifts, hits_least=1, hits_most=2).state == "unknown"
    assert (
        of_task(drifts, driver=make_driver(window_s=2.0), stalled=3, stalled_s=1.0, stalled_share=0.5).state
        == "unknown"
    )


def test_the_test_is_adjusted_over_the_rows_of_a_run():
    drifts = of_drifts([-0.2, -0.1, -0.15, -0.05, -0.12])
    still = of_drifts([0.01, -0.02, 0.03, -0.01, 0.02])
    alone = steadiness({"range": drifts})["range"]
    among = steadiness({"range": drifts, **{f"task {number}": still for number in range(19)}})["range"]
    assert alone.p < 0.05 < among.p == pytest.approx(20 * alone.p)
    assert (alone.state, among.state) == ("not steady", "steady")
    # Holm's method: where others have not settled, they do not count against it.
    cold = steadiness({"range": drifts, **{f"task {number}": drifts for number in range(19)}})
    assert [one.p for one in cold.values()] == pytest.approx([20 * alone.p] * 20)


def test_a_task_too_short_to_show_it_lacks_the_warm_up_that_its_operation_needs():
    task = Task("range", iterations=100, warmup_iterations=200, clients=2)
    brief = [make_summary("range", 10.0, drift=None, lacking_warmup=lacking) for lacking in (600, 590, 0)]
    found = steadiness({"task": brief})["task"]
    assert (found.state, found.trend) == ("not steady", "little warm-up")
    assert "600 requests" in found.text
    assert advice("little warm-up", brief, task) == "raise warmup-iterations to 500"
    # What is seen says more.
    assert of_task([math.log(0.70), math.log(0.71)], lacking_warmup=600).trend == "not warmed up"


@pytest.mark.parametrize(
    ("low", "high", "drifts", "changes", "said"),
    [
        # ln .64 is -.446; what is ahead is twice the spread of the drifts, and of none.
        (-40, -36, (-0.08, 0.05), {}, "firm"),
        (-40, -36, (-0.15, 0.08), {}, "provisional"),
        (56, 67, (-0.15, 0.06), {}, "firm"),
        (56, 67, (-0.15, 0.08), {}, "provisional"),
        (6, 9, (-0.06, -0.06), {}, "provisional"),
        # Levels that fell alike say nothing about how much more each will fall.
        (-40, -36, (-0.3, -0.3), {}, "provisional"),
        (-40, -36, (-0.08, None), {}, "provisional"),
        (None, None, (-0.08, 0.05), {}, "provisional"),
        (-2, 2, (-0.08, 0.05), {"verdict": "equivalent"}, "provisional"),
        # What drifts of requests say nothing about: memory, rare requests, queues, differences.
        (-40, -36, (-0.08, 0.05), {"metric": "cpu"}, "provisional"),
        (-40, -36, (-0.08, 0.05), {"metric": "service_time_p99"}, "provisional"),
        (-40, -36, (-0.08, 0.05), {"metric": "latency_p50"}, "provisional"),
        (-40, -36, (-0.08, 0.05), {"compared_as": "difference"}, "provisional"),
    ],
)
def test_a_difference_is_firm_if_one_side_s_trend_could_not_undo_it(
    low: float | None,
    high: float | None,
    drifts: Sequence[float | None],
    changes: dict[str, Any],
    said: str,
):
    by_name = dict(zip(("es", "os"), drifts, strict=True))
    found = Comparison(
        **{
            "metric": "throughput",
            "baseline": "es",
            "contender": "os",
            "higher_is_better": True,
            "paired": True,
            "judged": True,
            "n_baseline": 12,
            "n_contender": 12,
            "margin_percent": 3.0,
            "low_percent": low,
            "high_percent": high,
            "verdict": "different",
            **changes,
        }
    )
    sides = [
        Figures(name, (), (), 1.0, 1.0, 100, Steadiness("not steady", drift=drift, trend="not warmed up"))
        for name, drift in by_name.items()
    ]
    assert provisional(found, sides).provisional == (said == "provisional")
    # What was not seen cannot go on.
    brief = Steadiness("not steady", drift=0.0, trend="little warm-up")
    assert provisional(found, [msgspec.structs.replace(side, steady=brief) for side in sides]).provisional


TIMED = {"iterations": None, "time_period": 60, "warmup_time_period": 5}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        # As many as were measured and warmed up in the longest fork, by client.
        ({}, "raise warmup-iterations to about 400"),
        ({"clients": 3}, "raise warmup-iterations to about 140"),
        (TIMED, "raise warmup-time-period to about 70 s"),
        ({"iterations": None}, ""),
    ],
)
def test_advice(task: dict[str, Any], expected: str):
    asked = msgspec.structs.replace(COUNTED, **task)
    forks = [make_summary("range", 1.0, samples=300, warmup_samples=warmup) for warmup in (100, 90)]
    assert advice("not warmed up", forks, asked) == expected


@settings(deadline=None)
@given(DRIFTS)
def test_reversed_time_gives_the_same_state(drifts: list[float]):
    forward, backward = of_task(drifts), of_task([-drift for drift in drifts])
    assert forward.state == backward.state
    assert forward.drift == pytest.approx(-backward.drift)


@settings(deadline=None)
@given(DRIFTS)
def test_never_unsteady_below_five_percent_or_with_zero_inside(drifts: list[float]):
    found = of_task(drifts)
    if found.state == "not steady":
        assert abs(found.drift) > math.log(1.05)
        assert not found.low <= 0 <= found.high
