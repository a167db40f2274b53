from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.report.planning import again, forecast_lines, next_command
from benchctl.results.figures import RedlineEnd
from benchctl.results.model import RunRecord
from benchctl.results.plan import DEFAULT_LENGTH, EvidenceSpec, Place, Plan, StopSpec, VariantSpec
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat
from benchctl.track.model import Challenge, Task
from builders import ES, make_plan, of_requests
from redlines import make_point, redline_fork, redline_plan
from report.conftest import changed, complete_record, on_builds
from sweeps import swept_record, timed_record

Proposal = tuple[Analysis, Plan]


def proposal(record: RunRecord, **changes: Any) -> Proposal:
    """What was found in a run, and a plan of it that was another one."""
    return analyse_run(record), msgspec.structs.replace(record.plan, **changes)


def doubting(record: RunRecord, *doubts: Caveat, **changes: Any) -> Proposal:
    analysis, plan = proposal(record, **changes)
    return msgspec.structs.replace(analysis, caveats=(*analysis.caveats, *doubts)), plan


def decided(*, doubtful: bool) -> Proposal:
    """Every verdict stands; or the first is provisional."""
    analysis, plan = proposal(complete_record())
    first = analysis.rows[0]
    return changed(
        analysis,
        lambda row, one: msgspec.structs.replace(
            one, verdict="slower", provisional=doubtful and row == first
        ),
    ), plan


def settled(block_s: float) -> Proposal:
    """Tasks had settled: so many seconds a block, and forecasts of 5 and 30 further forks."""
    analysis, plan = proposal(complete_record(), settled=True)
    rows = tuple(
        msgspec.structs.replace(row, caveats=tuple(one for one in row.caveats if one.code != "not-steady"))
        for row in analysis.rows
    )
    further = iter((5, 30, *[None] * 99))
    return changed(
        msgspec.structs.replace(analysis, rows=rows, block_s=block_s),
        lambda _, one: msgspec.structs.replace(one, further=next(further)),
    ), plan


def cold_for_good() -> Proposal:
    """No number of blocks decides what is open, and the first task had not settled."""
    analysis, plan = settled(19.8)
    analysis = changed(analysis, lambda _, one: msgspec.structs.replace(one, further=None))
    first, *others = analysis.rows
    first = msgspec.structs.replace(first, caveats=(*first.caveats, COLD))
    return msgspec.structs.replace(analysis, rows=(first, *others)), plan


def few_requests() -> Proposal:
    """Of counts that benchctl chose, and nothing is forecast."""
    analysis, plan = proposal(complete_record(edit=lambda summary, *_: of_requests(summary, 5)), settled=True)
    unknown = {"mde_percent": None, "further": None}
    return changed(analysis, lambda _, one: msgspec.structs.replace(one, **unknown)), plan


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
    record = on_builds(complete_record(forks=6), 2)
    plan = msgspec.structs.replace(record.plan, index_builds=2)
    return analyse_run(msgspec.structs.replace(record, plan=plan)), plan


def searched(*ends: RedlineEnd, **changes: Any) -> Proposal:
    """Searches of one variant that ended so."""
    plan = redline_plan(workers=2)
    forks = [
        redline_fork("es", block, 80.0 + block, [make_point(150, 40.0)], redline_end=end, **changes)
        for block, end in enumerate(ends)
    ]
    return analyse({"es": forks}, plan), plan


WORDS = ("run", "--challenge", "big5rangedebug")
COLD = Caveat("not-steady", "not warmed up: es was 9% faster at the end")
PROPOSALS: dict[str, Callable[[], Proposal]] = {
    **{f"{forks} forks": partial(proposal, complete_record(forks=forks)) for forks in (1, 3, 5, 10)},
    "few iterations": lambda: proposal(complete_record(edit=lambda summary, *_: of_requests(summary, 5))),
    "every verdict stands": lambda: decided(doubtful=False),
    "a verdict is provisional": lambda: decided(doubtful=True),
    "tasks had settled": lambda: settled(19.8),
    "and further blocks take long": lambda: settled(20.2),
    "blocks would decide nothing, and a task was cold": cold_for_good,
    "few requests, of counts that benchctl chose": few_requests,
    "it must not end as early again": ended_early,
    "a trial is measured for real": lambda: proposal(complete_record(), test_mode=True),
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
    "a search that ended": lambda: searched("found", "found", "found"),
    "a search without a red line": lambda: searched("missed", "missed", "missed", redline_per_s=None),
}


def test_proposals_are_those_that_would_help(request: pytest.FixtureRequest):
    texts = []
    for name, make in PROPOSALS.items():
        analysis, plan = make()
        found = next_command(analysis, msgspec.structs.replace(plan, words=WORDS))
        screen = "nothing" if found is None else f"{found.purpose}: {found.line}"
        texts.append("\n".join([f"# {name}", screen, ""]))
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


def plan_of(*labels: str, **changes: object) -> Plan:
    schedule = Challenge("c", tuple(Task(label, iterations=3) for label in labels))
    return make_plan(**{"schedules": (schedule,), "forks": 10, **changes})


def forecast(last: Analysis | None = None, **changes: object) -> list[str]:
    plan = plan_of("range", **changes)
    return forecast_lines(last, plan, 18.0 * len(plan.variants))


def found(tasks: int = 3) -> Analysis:
    """The last run of a plan with so many tasks."""
    analysis = analyse_run(complete_record())
    rows = [
        msgspec.structs.replace(
            row,
            label=f"task{number}",
            comparisons=tuple(
                msgspec.structs.replace(one, mde_percent=1.5 * (1 + number)) for one in row.comparisons
            ),
        )
        for row in analysis.task_rows[:1]
        for number in range(tasks)
    ]
    return msgspec.structs.replace(analysis, rows=tuple(rows))


FORECASTS: dict[str, Callable[[], list[str]]] = {
    "a usual plan": lambda: forecast(found()),
    "many tasks": lambda: forecast(found(9)),
    "forks for evidence": lambda: forecast(evidence=EvidenceSpec(("profile",), 2)),
    "no earlier run": forecast,
    "too few forks": lambda: forecast(found(), forks=2),
    "one variant": lambda: forecast(found(), variants=(ES,)),
    "until the budget is spent": lambda: forecast(forks=50, stop=StopSpec(decided=True, budget_s=360.0)),
    "by time": lambda: forecast(found(), forks=50, stop=DEFAULT_LENGTH),
}


def test_forecasts_say_what_the_last_run_could_detect_and_how_long_it_takes(request: pytest.FixtureRequest):
    texts = ("\n".join([f"# {name}", *lines(), ""]) for name, lines in FORECASTS.items())
    golden.agree(request.config, Path(__file__).parent / "golden" / "forecasts.txt", "\n".join(texts))


def test_a_command_is_given_again_with_other_parameters_beside_its_own():
    words = ("run", "--param", "a=1", "--param=iterations=3", "--param", "@file.json")
    line = again(words, {"--forks": "6"}, {"iterations": 9})
    assert line == "benchctl run --param a=1 --param @file.json --forks 6 --param iterations=9"


@pytest.mark.parametrize(
    ("words", "options", "line"),
    [
        ("run --forks 3 --docs 1k", {"--forks": "6"}, "benchctl run --docs 1k --forks 6"),
        ("run --forks=3", {"--forks": "6"}, "benchctl run --forks 6"),
        ("run --test-mode --challenge c", {"--test-mode": None}, "benchctl run --challenge c"),
        ("run --budget 3m -q", {"--budget": None}, "benchctl run -q"),
    ],
)
def test_a_command_is_given_again_with_other_values(words: str, options: dict[str, str | None], line: str):
    assert again(words.split(), options) == line


def test_more_requests_are_those_of_the_task_that_ends_the_others():
    main = Task("main", iterations=30, group=0, completes=True)
    schedule = Challenge("c", (main, Task("range", iterations=300_000_000, group=0)))
    for code, count in (("too-few-samples", "iterations=100"), ("not-steady", "warmup_iterations=60")):
        command = next_command(
            *doubting(complete_record(), Caveat(code, "x"), schedules=(schedule,), words=WORDS)
        )
        assert command is not None
        assert command.line.endswith(f"--param {count}")
