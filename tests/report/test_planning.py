from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.report.planning import forecast_lines, next_command, planning_lines
from benchctl.report.table import Command
from benchctl.results.figures import RedlineEnd, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.plan import DEFAULT_LENGTH, EvidenceSpec, Place, Plan, PluginSpec, StopSpec, VariantSpec
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat
from benchctl.stats.forecast import Forecast
from benchctl.stats.history import History, Match, Noise, kind_of
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT, metric
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan, of_requests
from redlines import SEARCH, make_point, redline_fork, redline_plan
from report.conftest import complete_record
from sweeps import swept_record, timed_record

NO_CHANGES: Mapping[str, Any] = {}
Proposal = tuple[Analysis, Plan]


def changed(record: RunRecord, **changes: Any) -> Proposal:
    """What was found in a run, and a plan of it that was another one."""
    return analyse_run(record), msgspec.structs.replace(record.plan, **changes)


def doubting(record: RunRecord, *doubts: Caveat, **changes: Any) -> Proposal:
    analysis, plan = changed(record, **changes)
    return msgspec.structs.replace(analysis, caveats=(*analysis.caveats, *doubts)), plan


def metered(summary: TaskSummary, *_: object) -> TaskSummary:
    return msgspec.structs.replace(summary, meters={"index_size": 1.0, "cpu": 2.0})


def heavier(metrics: str = "") -> Proposal:
    """One that was shown by the size of its index."""
    record = complete_record(edit=metered)
    plan = msgspec.structs.replace(record.plan, metrics=metrics)
    return analyse_run(record, metrics=[metric("index_size")]), plan


def judged(analysis: Analysis, change: Callable[[int, Any], Any]) -> Analysis:
    rows = tuple(
        msgspec.structs.replace(row, comparisons=tuple(change(place, one) for one in row.comparisons))
        for place, row in enumerate(analysis.rows)
    )
    return msgspec.structs.replace(analysis, rows=rows)


def decided(*, doubtful: bool) -> Proposal:
    """Every verdict stands; or the first is provisional."""
    analysis, plan = changed(complete_record())
    return judged(
        analysis,
        lambda place, one: msgspec.structs.replace(
            one, verdict="slower", provisional=doubtful and place == 0
        ),
    ), plan


def settled(block_s: float) -> Proposal:
    """Tasks had settled: so many seconds a block, and forecasts of 5 and 30 further forks."""
    analysis, plan = changed(complete_record(), settled=True)
    rows = tuple(
        msgspec.structs.replace(row, caveats=tuple(one for one in row.caveats if one.code != "not-steady"))
        for row in analysis.rows
    )
    costs = tuple(
        msgspec.structs.replace(analysis.costs[0], block_s=block_s, further=Forecast(forks, 2, None, 45, 0.7))
        for forks in (5, 30, None)
    )
    return msgspec.structs.replace(analysis, rows=rows, costs=costs), plan


def few_requests() -> Proposal:
    """Of counts that benchctl chose, and nothing is forecast."""
    analysis, plan = changed(complete_record(edit=lambda summary, *_: of_requests(summary, 5)), settled=True)
    return msgspec.structs.replace(analysis, costs=()), plan


def tasks(record: RunRecord, **changes: Any) -> tuple[Challenge, ...]:
    return tuple(
        msgspec.structs.replace(
            one, schedule=tuple(msgspec.structs.replace(task, **changes) for task in one.schedule)
        )
        for one in record.plan.schedules
    )


def ended_early() -> Proposal:
    record = complete_record(forks=10)
    plan = msgspec.structs.replace(record.plan, forks=50, stop=StopSpec(decided=True))
    return analyse_run(msgspec.structs.replace(record, plan=plan)), plan


def built_twice() -> Proposal:
    record = complete_record(forks=6)
    forks = tuple(msgspec.structs.replace(fork, index_build=fork.block % 2) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, index_builds=2)
    return analyse_run(msgspec.structs.replace(record, forks=forks, plan=plan)), plan


def searched(*ends: RedlineEnd, search: Mapping[str, Any] = NO_CHANGES, **changes: Any) -> Proposal:
    """Searches of one variant that ended so."""
    plan = redline_plan(msgspec.structs.replace(SEARCH, **search), workers=2)
    forks = [
        redline_fork("es", block, 80.0 + block, [make_point(150, 40.0)], redline_end=end, **changes)
        for block, end in enumerate(ends)
    ]
    return analyse({"es": forks}, plan), plan


BOUNDED: tuple[RedlineEnd, ...] = ("max-rate", "found", "max-rate")
COLD = Caveat("not-steady", "not warmed up: es was 9% faster at the end")
TRIAL = {"track": "/my books", "plugin": PluginSpec("/my books/track.py", "d"), "test_mode": True}
PROPOSALS: dict[str, Callable[[], Proposal]] = {
    **{f"{forks} forks": partial(changed, complete_record(forks=forks)) for forks in (1, 3, 5, 10)},
    "few iterations": lambda: changed(complete_record(edit=lambda summary, *_: of_requests(summary, 5))),
    "what it was shown by is measured again": heavier,
    "and what the plan had": lambda: heavier("cpu"),
    "usual metrics need no word": lambda: changed(complete_record(edit=metered)),
    "every verdict stands": lambda: decided(doubtful=False),
    "a verdict is provisional": lambda: decided(doubtful=True),
    "tasks had settled": lambda: settled(19.8),
    "and further blocks take long": lambda: settled(20.2),
    "few requests, of counts that benchctl chose": few_requests,
    "it must not end as early again": ended_early,
    "a plug-in is trusted again, and it is no trial": lambda: changed(complete_record(), **TRIAL),
    "what had not settled warms up longer": lambda: doubting(complete_record(), COLD),
    "tasks of a given time do not": lambda: doubting(
        complete_record(),
        COLD,
        schedules=tasks(complete_record(), iterations=None, time_period=60.0),
    ),
    "counts that benchctl chose are kept": lambda: doubting(
        complete_record(), COLD, settled=True, schedules=tasks(complete_record(), warmup_iterations=200)
    ),
    "more index builds where they are the unit": built_twice,
    "swept iterations": lambda: doubting(swept_record(sweep=("iterations=100,200",)), COLD),
    "swept warm-ups": lambda: doubting(swept_record(sweep=("param:warmup_iterations=100,200",)), COLD),
    "the highest rate is raised": lambda: searched(*BOUNDED, search={"max_per_s": 90.0}),
    "benchctl was the limit": lambda: searched("driver-limited", "found", "found"),
    "a search that ended": lambda: searched("found", "found", "found"),
    "a search without a red line": lambda: searched("missed", "missed", "missed", redline_per_s=None),
}


def test_proposals_are_those_that_would_help(request: pytest.FixtureRequest):
    texts = []
    for name, proposal in PROPOSALS.items():
        analysis, plan = proposal()
        found = next_command(analysis, plan)
        screen = "nothing" if found is None else f"{found.purpose}: {found.line}"
        tables = [one.line for one in planning_lines(analysis, plan) if isinstance(one, Command)]
        texts.append("\n".join([f"# {name}", screen, *tables, ""]))
    golden.agree(request.config, Path(__file__).parent / "golden" / "proposals.txt", "\n".join(texts))


@pytest.mark.parametrize(
    ("factor", "asked", "decided"), [(1.55, "inconclusive", False), (1.65, "slower", True)]
)
def test_more_forks_are_proposed_until_it_is_known_whether_the_difference_depends(
    factor: float, asked: str, *, decided: bool
):
    plan = swept_record(sweep=("history=fresh,polluted",)).plan
    factors = {"fresh": 1.5, "polluted": factor}

    def typical_ms(spec: VariantSpec, place: Place) -> float:
        return 2 * (factors[plan.history(place[0]) or ""] if spec.name == "os" else 1.0)

    analysis = analyse_run(timed_record(plan, typical_ms, sd=0.03))
    rows = [one for row in analysis.task_rows for one in row.comparisons]
    assert {one.verdict for one in rows} == {"slower"}
    assert {one.verdict for curve in analysis.curves for one in curve.pairs[0].interactions} == {asked}
    found = next_command(analysis, plan)
    assert (found is None) == decided
    assert decided or "benchctl extend" in getattr(found, "line", "")


def test_without_a_plan_there_is_no_command(record: RunRecord):
    assert not any(isinstance(line, Command) for line in planning_lines(analyse_run(record), None))


def test_precision_counts_pairs(record: RunRecord):
    shaken = []
    for fork in record.forks:
        factor = 1 + 0.03 * (fork.block % 3) * (fork.variant == "os")
        summaries = [
            msgspec.structs.replace(one, throughput_per_s=one.throughput_per_s * factor)
            for one in fork.summaries
        ]
        shaken.append(msgspec.structs.replace(fork, summaries=tuple(summaries)))
    analysis = analyse_run(msgspec.structs.replace(record, forks=tuple(shaken)))
    assert planning_lines(analysis, None)[0] == (
        "Precision of the noisiest row: minimum detectable effect 8.0% with 5 forks, 4.6% with 10; "
        "5% takes 13 (6 to 26) forks per variant (80% power)"
    )


def test_what_would_take_hundreds_of_forks_is_not_achievable(build: Callable[..., RunRecord]):
    def noisy(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(
            summary, throughput_per_s=20.0 + 200 * ((block + (variant == "os")) % 3)
        )

    lines = planning_lines(analyse_run(build(edit=noisy)), None)
    assert "5% is not achievable on this host (80% power)" in str(lines[-1])


NOTHING = History({}, {}, frozenset(), 0, ())


def plan_of(*labels: str, **changes: object) -> Plan:
    schedule = Challenge("c", tuple(Task(label, iterations=3) for label in labels))
    return make_plan(**{"schedules": (schedule,), "forks": 10, **changes})


def history(plan: Plan, sds: Mapping[str, float], match: Match = "same") -> History:
    noises = {
        ((schedule, task), metric.key, (kind_of(spec),)): Noise(sds[one.label], 9, 10, match)
        for schedule, challenge in enumerate(plan.schedules)
        for task, one in enumerate(challenge.schedule)
        if one.label in sds
        for metric in (THROUGHPUT, SERVICE_TIME)
        for spec in (ES, OS)
    }
    return History(noises, {}, frozenset(), 20, ("a",))


def forecast(
    sds: Mapping[str, float],
    labels: Sequence[str] = ("range",),
    match: Match = "same",
    **changes: object,
) -> list[str]:
    plan = plan_of(*labels, **changes)
    return forecast_lines(history(plan, sds, match), plan, 18.0 * len(plan.variants))


MANY = {f"task{number}": 0.01 * (1 + number) for number in range(7)}
BOTH = ("sort", "range")
ONE = {"range": 0.1}
TWICE = (Challenge("c", (Task("range", iterations=3),)),) * 2
THIRD = msgspec.structs.replace(ES, name="third", jvm_flags=("-Xint",))
HISTORIES = msgspec.structs.replace(swept_record(sweep=("history=fresh,polluted",)).plan, forks=6)
ALONE = swept_record(sweep=("history=fresh,polluted",), variants=(ES,)).plan
FORECASTS: dict[str, Callable[[], list[str]]] = {
    "a usual plan": lambda: forecast({"sort": 0.02, "range": 0.15}, BOTH),
    "forks for evidence": lambda: forecast({"range": 0.15}, evidence=EvidenceSpec(("profile",), 2)),
    "many tasks": lambda: forecast(MANY, tuple(MANY)),
    "other sizes, and a task that is unknown": lambda: forecast({"sort": 0.02}, BOTH, "similar"),
    "no earlier run": lambda: forecast_lines(NOTHING, plan_of("range"), 36.0),
    "too few forks": lambda: forecast(ONE, forks=2),
    "one fork": lambda: forecast(ONE, forks=1),
    "one variant": lambda: forecast(ONE, variants=(ES,)),
    "until the budget is spent": lambda: forecast(ONE, forks=50, stop=StopSpec(decided=True, budget_s=360.0)),
    "by time": lambda: forecast(ONE, forks=50, stop=DEFAULT_LENGTH),
    "by time, and no earlier run": lambda: forecast_lines(
        NOTHING, plan_of("range", forks=50, stop=DEFAULT_LENGTH), 66.0
    ),
    "histories": lambda: forecast_lines(history(HISTORIES, ONE), HISTORIES, 36.0),
    "histories, and no earlier run": lambda: forecast_lines(NOTHING, HISTORIES, 36.0),
    "a history of one variant": lambda: forecast_lines(NOTHING, ALONE, 36.0),
    "several challenges, and the worst contender": lambda: forecast(
        ONE, schedules=TWICE, variants=(ES, OS, THIRD)
    ),
}


def test_forecasts_say_what_a_run_can_detect_and_how_long_it_takes(request: pytest.FixtureRequest):
    texts = ("\n".join([f"# {name}", *lines(), ""]) for name, lines in FORECASTS.items())
    golden.agree(request.config, Path(__file__).parent / "golden" / "forecasts.txt", "\n".join(texts))
