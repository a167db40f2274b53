"""Sweeps for readers: the answer first, then typed tables that fit a narrow screen."""

import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

import golden
from benchctl.report.formats import render, render_screen
from benchctl.report.sentences import verdict
from benchctl.report.table import Notes, markdown, plain
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SweepAxis, SweepCurve, provisional
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import adjust
from benchctl.sweep.curve import judged_curves
from benchctl.sweep.report import dependence_sentences, sweep_answer, sweep_tables
from builders import OS
from sweeps import (
    compared,
    forks,
    make_curve,
    recall_curve,
    swept_record,
    tasks_record,
    two_laws,
)

NAMES = SweepAxis("index.refresh_interval", ("1s", "30s", "off"))


def three() -> SweepCurve:
    return make_curve(
        {
            "es": forks(lambda x: 4 * x**0.9),
            "os": forks(lambda x: 4 * 3**0.3 * x**0.6, seed=2),
            "es@9.2.0": forks(lambda x: 3 * x**0.9, seed=3),
        }
    )


def by_name() -> SweepCurve:
    return make_curve({"es": forks(lambda x: x, NAMES), "os": forks(lambda x: x + 1, NAMES, seed=2)}, NAMES)


def alone(points: list[dict[int, float | None]]) -> SweepCurve:
    return make_curve({"es": points}, comparisons=())


def failed() -> SweepCurve:
    """Of one fork there is no value at a point."""
    os = forks(lambda x: 2 * x, seed=2)
    os[2] = {block: value for block, value in os[2].items() if block != 3}
    return make_curve({"es": forks(lambda x: x), "os": os}, comparisons=())


def undecided() -> SweepCurve:
    values = {"es": forks(lambda x: x, sd=0.3), "os": forks(lambda x: x, seed=2, sd=0.3)}
    return make_curve(values, comparisons=[adjust(point) for point in compared(values, "service_time_p90")])


def by_blocks(blocks: int) -> SweepCurve:
    return make_curve(
        {
            "es": forks(lambda x: 100 * x / (x + 3), sd=0.001, blocks=blocks),
            "os": forks(lambda x: 20 * x**0.9, sd=0.001, blocks=blocks, seed=2),
        }
    )


def weakened() -> SweepCurve:
    values = {"es": forks(lambda x: x), "os": forks(lambda x: 2 * x, seed=2)}
    (curve,) = judged_curves([make_curve(values, remarks={"os": ((), ("not warmed up",), (), ())})])
    return curve


HISTORIES = SweepAxis("history", ("fresh", "scheduled", "polluted"))


def histories(*os: float, task: str = "range", axis: SweepAxis = HISTORIES, **more: Any) -> SweepCurve:
    """es takes 10 ms whatever ran before, and os so many."""
    noise = {key: more.pop(key) for key in ("sd", "blocks") if key in more}
    seed = sum(map(ord, task))
    values = {
        "es": forks(lambda _: 10.0, axis, seed=seed, **noise),
        "os": forks(lambda place: os[round(place) - 1], axis, seed=seed + 1, **noise),
    }
    comparisons = [
        [provisional(one, ()) for one in adjust(point)] for point in compared(values, "service_time_p90")
    ]
    more = {"comparisons": comparisons} | more
    (curve,) = judged_curves([make_curve(values, axis, task=task, **more)])
    return curve


def tasks(count: int) -> list[SweepCurve]:
    """Of many tasks some depend on the history, few of them clearly."""
    return [
        histories(10, 10 + number % 5, 10 + number % 3, task=f"task-{number}", sd=0.01 + 0.01 * (number % 7))
        for number in range(count)
    ]


HELD = {"es": forks(lambda x: 100 * x), "os": forks(lambda x: 200 * x, seed=2)}
FROM_0 = {"es": forks(lambda x: x - 1), "os": forks(lambda x: x, seed=2)}
SCENES: dict[str, SweepCurve] = {
    "two laws": two_laws(),
    "what is held is less, and not faster": make_curve(HELD, metric="index_size"),
    "each further variant has its answer and lines": three(),
    "points that are no numbers": by_name(),
    "one variant": alone(forks(lambda x: 100 * x / (x + 3))),
    "forks that failed are counted": failed(),
    "values that may be 0": make_curve(FROM_0, metric="gc"),
    "one fork has no interval, and what is missing no value": alone([{0: 1.0}, {0: 2.0}, {0: None}, {}]),
    "undecided": undecided(),
    "few blocks": by_blocks(3),
    "blocks enough": by_blocks(5),
    "a point that is weak": weakened(),
    "a difference that depends on what ran before": histories(10, 13, 13),
    "a difference that does not": histories(13, 13, 13),
    "one that depends a little": histories(10, 10.4, 10, sd=0.002),
    "histories without a decision": histories(10, 11, 10, sd=0.2),
    "few blocks of histories": histories(10, 13, 13, blocks=3),
    "too few blocks of histories": histories(10, 13, 13, blocks=2),
    "equal recall": recall_curve({"es": 1.5, "os": 1.8}),
    "recalls that a side does not reach, or has from the start": recall_curve({"es": 0.7, "os": 6}),
    "equal recall of three": recall_curve({"es": 1.5, "os": 1.8, "es-int8": 2.0}),
    "recalls of one variant, of which few blocks reach one": recall_curve({"es": 2.0}),
}


def shown(curve: SweepCurve, width: int) -> str:
    return plain([*([table] for table in sweep_tables([curve])), [*sweep_answer([curve])]], width)


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{shown(curve, 120)}\n" for name, curve in SCENES.items()]
    too_few = [histories(10, 10, 10, task=task, blocks=2) for task in ("range", "sort")]
    for curves in (tasks(5), [*tasks(1), histories(10, 10, 10)], too_few):
        told = plain([*([table] for table in sweep_tables(curves)), [*dependence_sentences(curves)]], 120)
        texts.append(f"# {len(curves)} tasks at histories\n{told}\n")
    golden.agree(request.config, Path(__file__).parent / "golden" / "report.txt", "\n".join(texts))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_it_keeps_to_the_width(width: int):
    lines = [line for curve in SCENES.values() for line in shown(curve, width).splitlines()]
    assert max(map(len, lines)) <= width


def test_doubts_are_numbered_where_there_are_notes():
    doubt = Caveat("no-spread", "the values of all forks are identical: nothing to test with")
    comparisons = compared({"es": forks(lambda x: x), "os": forks(lambda x: x, seed=2)}, "service_time_p90")
    comparisons[1] = [msgspec.structs.replace(comparisons[1][0], caveats=(doubt,))]
    curve = two_laws(comparisons=comparisons)
    assert "Notes" not in sweep_tables([curve])[0].titles
    grid = sweep_tables([curve], Notes((doubt,), ()))[0]
    assert [line[-1] for line in grid.texts] == ["", "[1]", "", ""]


def test_markdown_has_the_same_tables():
    text = markdown([sweep_tables([two_laws()])])
    assert "| clients | es | os | Diff % | 95% CI | p | Verdict |" in text
    assert "| clients | es % | os % | Ratio % | 95% CI | p | Depends? |" in text


def test_a_screen_of_curves_has_no_two_blank_lines_in_a_row():
    record = swept_record()
    screen = render_screen(analyse_run(record), plan=record.plan, lines=24).plain
    assert "\n\n\n" not in screen


@pytest.mark.parametrize("lines", [24, 40])
def test_histories_of_many_tasks_fit_on_a_screen_those_that_depend_first(lines: int):
    record = tasks_record()
    analysis = analyse_run(record)
    screen = render_screen(analysis, plan=record.plan, lines=lines).plain.splitlines()
    assert len(screen) <= lines
    assert max(map(len, screen)) <= 80
    rule = next(number for number, line in enumerate(screen) if line.startswith("───"))
    assert screen[rule + 1].endswith("yes")
    depending = [
        curve.task
        for curve in analysis.curves
        if curve.metric == "service_time_p90" and curve.pairs[0].interactions[0].verdict == "slower"
    ]
    assert len(depending) == 7
    assert "37 tasks" in " ".join(screen)
    whole = render(analysis)
    assert all(name in whole for name in depending)


def test_one_task_at_histories_has_its_points_on_the_screen_and_one_answer():
    record = tasks_record("range-only-short", "fresh,polluted")
    screen = render_screen(analyse_run(record), plan=record.plan).plain
    assert "\n\n\n" not in screen
    assert screen.replace("\n", " ").count("depend on history") == 1


def test_names_of_tasks_may_have_braces():
    axis = SweepAxis("param:a", ("b", "{a}"))
    (told,) = dependence_sentences([histories(10, 14, axis=axis)])
    assert "at {a}" in told


def test_histories_of_a_single_variant_are_its_changes():
    record = tasks_record(variants=(OS,))
    analysis = analyse_run(record)
    assert {len(curve.changes) for curve in analysis.curves} == {1}
    assert "the result of os depends on history" in verdict(analysis)
    by_variant = analyse_run(swept_record(sweep=("jdk=17,21",), variants=(OS,)))
    assert by_variant.curves[0].changes == ()


def test_programs_get_interactions_in_lines_of_their_own():
    analysis = analyse_run(tasks_record("range-only-short", "fresh,polluted"))
    lines = list(csv.DictReader(io.StringIO(render(analysis, "csv"))))
    named = [line for line in lines if line["interaction"]]
    assert {line["interaction"] for line in named} == {"history: polluted / fresh"}
    assert [line["metric"] for line in named] == [curve.metric for curve in analysis.curves]
    assert float(named[0]["effect_percent"]) == analysis.curves[0].pairs[0].interactions[0].effect_percent
    found = msgspec.json.decode(render(analysis, "json"))
    assert found["curves"][0]["pairs"][0]["interactions"][0]["contender"] == "os"
