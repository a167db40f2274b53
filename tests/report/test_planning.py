from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.report.blocks import Command
from benchctl.report.planning import forecast_lines, next_command, planning_lines, proposed_forks
from benchctl.results.figures import RedlineEnd, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.plan import EvidenceSpec, Plan, PluginSpec, RedlineSpec, StopSpec
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat, small_scale
from benchctl.stats.forecast import Forecast
from benchctl.stats.history import History, Match, Noise, kind_of
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT, metric
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan, of_requests
from redlines import SEARCH, make_point, redline_fork, redline_plan
from sweeps import swept_record


def following(analysis: Analysis, plan: Plan) -> Command:
    """The command on the screen."""
    found = next_command(analysis, plan)
    assert found is not None
    return found


def proposed(analysis: Analysis, plan: Plan) -> str:
    """The command below the tables."""
    last = planning_lines(analysis, plan)[-1]
    assert isinstance(last, Command)
    return last.line


@pytest.mark.parametrize(("forks", "number"), [(1, 6), (3, 6), (5, 10), (10, 20)])
def test_more_forks_are_proposed(build: Callable[..., RunRecord], forks: int, number: int):
    assert proposed_forks(analyse_run(build(forks=forks))) == number


def test_more_iterations_only_where_they_would_help(build: Callable[..., RunRecord]):
    settled = build()
    assert "iterations=300 " in proposed(analyse_run(settled), settled.plan)
    few = build(edit=lambda summary, *_: of_requests(summary, 20))
    assert "iterations=900 " in proposed(analyse_run(few), few.plan)


def test_what_results_were_shown_by_is_measured_again(build: Callable[..., RunRecord]):
    record = build(
        edit=lambda summary, *_: msgspec.structs.replace(summary, meters={"heap": 1.0, "cpu": 2.0})
    )
    shown = analyse_run(record, metrics=[metric("heap")])
    assert "--metric throughput,service_time,latency,heap " in proposed(shown, record.plan)
    plan = msgspec.structs.replace(record.plan, metrics="cpu")
    assert "--metric cpu,heap " in proposed(shown, plan)
    assert "--metric" not in proposed(analyse_run(record), record.plan)


def test_without_a_plan_there_is_no_command(record: RunRecord):
    assert not any(isinstance(line, Command) for line in planning_lines(analyse_run(record), None))


def test_precision_counts_pairs_where_blocks_are_pairs(record: RunRecord):
    paired = msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, paired=True))
    shaken = []
    for fork in record.forks:
        factor = 1 + 0.03 * (fork.block % 3) * (fork.variant == "os")
        summaries = [
            msgspec.structs.replace(one, throughput_per_s=one.throughput_per_s * factor)
            for one in fork.summaries
        ]
        shaken.append(msgspec.structs.replace(fork, summaries=tuple(summaries)))
    analysis = analyse_run(msgspec.structs.replace(paired, forks=tuple(shaken)))
    assert planning_lines(analysis, None)[0] == (
        "Precision of the noisiest row: minimum detectable effect 4.8% with 5 forks, 2.7% with 10; "
        "5% takes 7 (4 to 11) forks a side (80% power)"
    )


def test_what_would_take_hundreds_of_forks_is_not_achievable(build: Callable[..., RunRecord]):
    def noisy(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=20.0 + 200 * (block % 3))

    lines = planning_lines(analyse_run(build(edit=noisy)), None)
    assert "5% is not achievable on this host (80% power)" in str(lines[-1])


def test_nothing_more_is_to_be_run_once_every_verdict_stands(build: Callable[..., RunRecord]):
    record = build()
    analysis = analyse_run(record)
    assert following(analysis, record.plan) == Command(
        "Next (1m documents are few; more than 5 forks)", proposed(analysis, record.plan)
    )
    rows = tuple(
        msgspec.structs.replace(
            row, comparisons=tuple(msgspec.structs.replace(one, verdict="slower") for one in row.comparisons)
        )
        for row in analysis.rows
    )
    decided = msgspec.structs.replace(analysis, rows=rows)
    assert next_command(decided, record.plan) is None
    (first, *rest) = rows
    doubtful = msgspec.structs.replace(first.comparisons[0], provisional=True)
    rows = (msgspec.structs.replace(first, comparisons=(doubtful,)), *rest)
    assert next_command(msgspec.structs.replace(decided, rows=rows), record.plan)


def test_where_tasks_had_settled_more_blocks_are_what_is_lacking(build: Callable[..., RunRecord]):
    record = build()
    analysis = analyse_run(record)
    assert "extend" not in following(analysis, record.plan).line
    settled = msgspec.structs.replace(record.plan, settled=True)
    rows = tuple(
        msgspec.structs.replace(
            row, caveats=tuple(doubt for doubt in row.caveats if doubt.code != "not-steady")
        )
        for row in analysis.rows
    )
    cost = analysis.costs[0]
    for block_s, lacking in ((19.8, 30), (20.2, 5)):
        costs = tuple(
            msgspec.structs.replace(cost, block_s=block_s, further=Forecast(forks, 2, None, 45, 0.7))
            for forks in (5, 30, None)
        )
        found = following(msgspec.structs.replace(analysis, rows=rows, costs=costs), settled)
        assert found.line == f"benchctl extend {record.id} --forks {lacking}"
        assert found.purpose == ("Next, about 10 min" if lacking == 30 else "Next, about 2 min")


def test_chosen_counts_are_chosen_anew_for_more_documents(build: Callable[..., RunRecord]):
    record = build()
    schedules = tuple(
        msgspec.structs.replace(
            one, schedule=tuple(msgspec.structs.replace(task, warmup_iterations=200) for task in one.schedule)
        )
        for one in record.plan.schedules
    )
    plan = msgspec.structs.replace(record.plan, settled=True, params={}, schedules=schedules)
    cold = (Caveat("not-steady", "not warmed up: es was still getting faster"), small_scale("1000"))
    analysis = msgspec.structs.replace(analyse_run(record), caveats=cold)
    line = following(analysis, plan).line
    assert line.endswith("--docs 4m --unpaired --heap 1024m --forks 6")
    assert not any(word in line for word in ("--until-steady", "iterations", "--as-written"))
    whole = msgspec.structs.replace(plan, corpus=msgspec.structs.replace(plan.corpus, documents=4_000_000))
    line = following(msgspec.structs.replace(analysis, documents=4_000_000), whole).line
    assert "--until-steady" in line
    assert "iterations=300" in line


def test_to_see_more_a_run_must_not_end_as_early_again(build: Callable[..., RunRecord]):
    record = build(forks=10)
    plan = msgspec.structs.replace(record.plan, forks=50, stop=StopSpec(precision=0.05))
    line = proposed(analyse_run(msgspec.structs.replace(record, plan=plan)), plan)
    assert "--precision" not in line
    assert line.endswith("--forks 20")


def test_to_see_more_a_plug_in_is_trusted_again_and_the_run_is_no_trial(build: Callable[..., RunRecord]):
    record = build()
    changes = {"track": "/my books", "plugin": PluginSpec("/my books/track.py", "d"), "test_mode": True}
    plan = msgspec.structs.replace(record.plan, **changes)
    line = proposed(analyse_run(record), plan)
    assert "--track '/my books'" in line
    assert "--trust" in line
    assert "--test-mode" not in line


def doubting(record: RunRecord, *doubts: Caveat) -> Analysis:
    found = analyse_run(record)
    return msgspec.structs.replace(found, caveats=(*found.caveats, *doubts))


def test_what_had_not_settled_asks_for_pilot_forks_and_keeps_its_iterations(build: Callable[..., RunRecord]):
    record = build()
    found = doubting(record, Caveat("not-steady", "not warmed up: es was 9% faster at the end"))
    line = proposed(found, record.plan)
    assert "--until-steady" in line
    assert "iterations=300 " in line
    tasks = tuple(
        msgspec.structs.replace(task, iterations=None, time_period=60.0)
        for task in record.plan.schedules[0].schedule
    )
    timed = msgspec.structs.replace(record.plan.schedules[0], schedule=tasks)
    plan = msgspec.structs.replace(record.plan, schedules=(timed,))
    assert "--until-steady" not in proposed(found, plan)


def test_warm_ups_are_looked_for_anew_on_a_larger_corpus(build: Callable[..., RunRecord]):
    record = build()
    params = {**record.plan.params, "c.warmup_iterations": 470}
    plan = msgspec.structs.replace(record.plan, params=params)
    larger = proposed(doubting(record, small_scale("20")), plan)
    assert "warmup_iterations" not in larger
    assert "--until-steady" in larger


def test_more_index_builds_where_they_are_the_unit(build: Callable[..., RunRecord]):
    record = build(forks=6)
    forks = tuple(msgspec.structs.replace(fork, index_build=fork.block % 2) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, index_builds=2)
    record = msgspec.structs.replace(record, forks=forks, plan=plan)
    line = proposed(analyse_run(record), plan)
    assert "--index-builds 4 " in line
    assert line.endswith("--forks 8")


@pytest.mark.parametrize("sweep", ["iterations=100,200", "param:warmup_iterations=100,200"])
def test_what_is_swept_is_not_proposed_as_well(sweep: str):
    record = swept_record(sweep=(sweep,))
    found = doubting(record, Caveat("not-steady", "not warmed up: es was 9% faster at the end"))
    line = proposed(found, record.plan)
    assert f"--sweep {sweep}" in line
    unfit = "--param iterations" if sweep.startswith("iterations") else "--until-steady"
    assert unfit not in line


def test_where_documents_are_swept_there_are_no_more_of_them_to_propose():
    record = swept_record(sweep=("docs=1k,2k",))
    plan = msgspec.structs.replace(record.plan, settled=True)
    found = doubting(record, Caveat("not-steady", "not warmed up: es "), small_scale("1000"))
    assert "--until-steady" in proposed(found, plan)


def searched(*ends: RedlineEnd, search: RedlineSpec = SEARCH, **changes: Any) -> Command | None:
    """What is proposed after searches of one variant that ended so."""
    plan = redline_plan(search, workers=2)
    forks = [
        redline_fork("es", block, 80.0 + block, [make_point(150, 40.0)], redline_end=end, **changes)
        for block, end in enumerate(ends)
    ]
    return next_command(analyse({"es": forks}, plan), plan)


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"max_per_s": 90.0}, "--max-rate 360 "),
        ({"max_per_s": 8.0, "by": "factor"}, "--max-factor 32 "),
        ({"by": "clients", "least_clients": 2}, "--clients 2..64 "),
    ],
)
def test_a_bound_of_a_search_is_raised_and_not_repeated(search: dict[str, Any], said: str):
    found = searched("max-rate", "found", "max-rate", search=msgspec.structs.replace(SEARCH, **search))
    assert found is not None
    assert said in found.line
    assert found.line.endswith("--forks 3")
    assert found.purpose == "Next (the most that was tried met the objective)"


def test_where_benchctl_was_the_limit_of_a_search_it_gets_more_processes():
    found = searched("driver-limited", "found", "found")
    assert found is not None
    assert "--workers 4 " in found.line
    assert found.purpose == "Next (benchctl was the limit)"


def test_a_search_that_ended_wants_more_forks_and_one_without_a_red_line_nothing():
    found = searched("found", "found", "found")
    assert found is not None
    assert (found.purpose, found.line[-9:]) == ("Next (more than 3 forks)", "--forks 6")
    assert searched("missed", "missed", "missed", redline_per_s=None) is None


def test_steps_on_few_requests_are_to_be_longer():
    found = searched("found", "found", "found", samples=60)
    assert found is not None
    assert "--step-time 15 " in found.line
    assert found.purpose == "Next (few requests a step)"


NOTHING = History({}, {}, frozenset(), 0, ())


def plan_of(*labels: str, **changes: object) -> Plan:
    schedule = Challenge("c", tuple(Task(label, iterations=3) for label in labels))
    return make_plan(**{"schedules": (schedule,), "forks": 10, **changes})


def history(
    plan: Plan, sds: Mapping[str, float], match: Match = "same", fork_s: float | None = 18.0
) -> History:
    noises = {
        ((schedule, task), metric.key, (kind_of(spec),)): Noise(sds[one.label], 9, 10, match)
        for schedule, challenge in enumerate(plan.schedules)
        for task, one in enumerate(challenge.schedule)
        if one.label in sds
        for metric in (THROUGHPUT, SERVICE_TIME)
        for spec in (ES, OS)
    }
    seconds = {} if fork_s is None else {kind_of(ES): fork_s, kind_of(OS): fork_s}
    return History(noises, seconds, frozenset(), 20, ("a",))


def forecast(
    sds: Mapping[str, float],
    labels: Sequence[str] = ("range",),
    match: Match = "same",
    fork_s: float | None = 18.0,
    **changes: object,
) -> list[str]:
    plan = plan_of(*labels, **changes)
    return forecast_lines(history(plan, sds, match, fork_s), plan)


MANY = {f"task{number}": 0.01 * (1 + number) for number in range(7)}
BOTH = ("sort", "range")
ONE = {"range": 0.1}
TWICE = (Challenge("c", (Task("range", iterations=3),)),) * 2
THIRD = msgspec.structs.replace(ES, name="third", jvm_flags=("-Xint",))
FORECASTS: dict[str, Callable[[], list[str]]] = {
    "a usual plan": lambda: forecast({"sort": 0.02, "range": 0.15}, BOTH),
    "forks for evidence": lambda: forecast({"range": 0.15}, evidence=EvidenceSpec(("jit",), 2)),
    "many tasks": lambda: forecast(MANY, tuple(MANY)),
    "other sizes, and a task that is unknown": lambda: forecast({"sort": 0.02}, BOTH, "similar", None),
    "no earlier run": lambda: forecast_lines(NOTHING, plan_of("range")),
    "too few forks": lambda: forecast(ONE, forks=2),
    "one fork": lambda: forecast(ONE, forks=1),
    "one variant": lambda: forecast(ONE, variants=(ES,)),
    "until it is precise": lambda: forecast(ONE, forks=50, stop=StopSpec(precision=0.08)),
    "until it can never be": lambda: forecast(ONE, forks=50, stop=StopSpec(precision=0.001)),
    "until the budget is spent": lambda: forecast(
        ONE, forks=50, stop=StopSpec(precision=0.05, budget_s=360.0)
    ),
    "several challenges, and the worst contender": lambda: forecast(
        ONE, schedules=TWICE, variants=(ES, OS, THIRD)
    ),
}


def test_forecasts_say_what_a_run_can_detect_and_how_long_it_takes(request: pytest.FixtureRequest):
    texts = ("\n".join([f"# {name}", *lines(), ""]) for name, lines in FORECASTS.items())
    golden.agree(request.config, Path(__file__).parent / "golden" / "forecasts.txt", "\n".join(texts))
