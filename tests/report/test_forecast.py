"""What a run says that it will see, in words."""

from collections.abc import Mapping

import pytest

from benchctl.report.planning import forecast_lines
from benchctl.results.plan import EvidenceSpec, Plan, StopSpec
from benchctl.stats.history import History, Match, Noise, kind_of
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan

NOTHING = History({}, {}, frozenset(), 0, ())


def plan_of(*labels: str, **changes: object) -> Plan:
    schedule = Challenge("c", tuple(Task(label, iterations=3) for label in labels))
    return make_plan(**{"schedules": (schedule,), "forks": 10, **changes})


def history(
    plan: Plan, sds: Mapping[str, float], match: Match = "same", fork_s: float | None = 18.0
) -> History:
    noises = {
        ((schedule, task), metric.key, kind_of(spec)): Noise(sds[one.label], 9, 10, match)
        for schedule, challenge in enumerate(plan.schedules)
        for task, one in enumerate(challenge.schedule)
        if one.label in sds
        for metric in (THROUGHPUT, SERVICE_TIME)
        for spec in (ES, OS)
    }
    seconds = {} if fork_s is None else {kind_of(ES): fork_s, kind_of(OS): fork_s}
    return History(noises, seconds, frozenset(), 20, ("a",))


def test_two_lines_for_a_usual_plan():
    plan = plan_of("sort", "range")
    first, second = forecast_lines(history(plan, {"sort": 0.02, "range": 0.15}), plan)
    assert first == (
        "this run (10 forks a side, about 6 min 00 s): minimum detectable effect in throughput "
        "sort 2.7 %, range 22 %"
    )
    assert second == "  in p90 service time sort 2.7 %, range 22 % (80 % power, from 20 earlier forks)"


def test_forks_for_evidence_take_their_time():
    plan = plan_of("range", evidence=EvidenceSpec(("jit",), 2))
    text = forecast_lines(history(plan, {"range": 0.15}), plan)[0]
    assert text.startswith(
        "this run (10 forks a side, 2 more for evidence, about 7 min 12 s): minimum detectable"
    )


def test_of_many_tasks_the_middle_and_both_ends():
    labels = [f"task{number}" for number in range(7)]
    plan = plan_of(*labels)
    found = history(plan, {label: 0.01 * (1 + number) for number, label in enumerate(labels)})
    assert (
        "throughput 1.3 % (task0) to 9.7 % (task6), half of the tasks up to 5.4 %"
        in (forecast_lines(found, plan)[0])
    )


def test_other_sizes_and_unknown_tasks_are_said():
    plan = plan_of("sort", "range")
    text = forecast_lines(history(plan, {"sort": 0.02}, "similar", None), plan)[-1]
    assert text.endswith("from 20 earlier forks of other sizes or settings); no earlier run has c: range")
    assert "about" not in text


def test_without_earlier_runs_nothing_is_promised():
    (line,) = forecast_lines(NOTHING, plan_of("range"))
    assert line == (
        "this run (10 forks a side): never made here before, so its first 6 forks will show what it can "
        "detect"
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"forks": 2},
            "this run (2 forks a side, about 1 min 12 s) gets no verdicts: these take 3 forks a side",
        ),
        (
            {"variants": (ES,)},
            "this run (10 forks a side, about 3 min 00 s): one variant, nothing to compare",
        ),
        ({"forks": 1}, "this run (1 fork a side, about 36 s) gets no verdicts"),
    ],
)
def test_what_no_difference_can_come_from(changes: dict[str, object], text: str):
    plan = plan_of("range", **changes)
    assert forecast_lines(history(plan, {"range": 0.1}), plan)[0].startswith(text)


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (StopSpec(precision=0.05), "(probably 34 forks a side, at most 50, about 20 min 24 s)"),
        (StopSpec(precision=0.001), "(at most 50 forks a side, about 30 min 00 s)"),
        (
            StopSpec(precision=0.05, budget_s=360.0),
            "(probably 10 forks a side, at most 50, about 6 min 00 s)",
        ),
    ],
)
def test_a_stop_rule_is_taken_into_account(stop: StopSpec, text: str):
    plan = plan_of("range", forks=50, stop=stop)
    assert text in forecast_lines(history(plan, {"range": 0.1}), plan)[0]


def test_several_challenges_name_theirs_and_the_worst_contender_counts():
    third = ES.__class__("third", "elasticsearch", "8.11.0", jvm_flags=("-Xint",))
    once = plan_of("range")
    plan = plan_of("range", schedules=(*once.schedules, *once.schedules), variants=(ES, OS, third))
    found = history(plan, {"range": 0.1})
    assert "c: range 14 %, c: range 14 %" in forecast_lines(found, plan)[0]
