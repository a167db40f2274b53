"""What people quote: `golden/sentences.txt` has verdict and headline scene by scene."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from benchctl.report.layout import collect_notes, said
from benchctl.report.planning import next_command
from benchctl.report.sentences import headline, listed, verdict
from benchctl.results.figures import TaskSummary
from benchctl.results.model import OtherLoad
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis, provisional
from benchctl.stats.compare import DECIDED, Verdict
from builders import make_driver
from report.conftest import complete_record

GOLDEN = Path(__file__).parent / "golden" / "sentences.txt"
THREE = ("es", "os", "noinline")


def judged(analysis: Analysis, *verdicts: Verdict, **changes: object) -> Analysis:
    """The same rows with these verdicts, task by task; the last one holds for all further tasks."""
    return compared(
        analysis,
        lambda row, one: msgspec.structs.replace(
            one, verdict=verdicts[min(row.task, len(verdicts) - 1)], **changes
        ),
    )


def compared(analysis: Analysis, change: Callable[[Any, Any], Any]) -> Analysis:
    rows = tuple(
        msgspec.structs.replace(row, comparisons=tuple(change(row, one) for one in row.comparisons))
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


def plain(**options: Any) -> Analysis:
    """Without findings about answers."""
    return analyse_run(complete_record(answers=None, **options))


def moving(task: int) -> Analysis:
    """One in which a task of one variant had not warmed up."""

    def edit(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        moves = (summary.task, variant) == (task, "os")
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block) if moves else summary

    return plain(edit=edit)


def marked(*verdicts: Verdict) -> Analysis:
    found = judged(moving(0), *verdicts)
    return compared(found, lambda row, one: provisional(one, row.figures))


def costing(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    used = {"es": 4.0, "os": (7.76, 4.0, 3.0)[summary.task], "noinline": 2.0}[variant]
    return msgspec.structs.replace(summary, meters={"cpu": used * (1 + 0.01 * block)})


def holding(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    size = {"es": 100.0, "os": 60.0}[variant] + block
    return msgspec.structs.replace(summary, meters={"index_size": size, "cpu": size / 10})


def stalling(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    if (summary.task, variant) != (2, "os"):
        return summary
    stalls = {"stalled": 1 + block // 4, "stalled_s": 32.0, "stalled_share": 0.54}
    driver = make_driver(window_s=59.0)
    return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block, driver=driver, **stalls)


def held(metrics: str) -> Analysis:
    record = complete_record(answers=None, edit=holding)
    plan = msgspec.structs.replace(record.plan, metrics=metrics)
    return analyse_run(msgspec.structs.replace(record, plan=plan))


def first_row(analysis: Analysis, other: Verdict) -> Analysis:
    """By its first metric, the first task has another verdict."""
    first, *rest = analysis.rows
    changed = msgspec.structs.replace(first.comparisons[0], verdict=other)
    rows = (msgspec.structs.replace(first, comparisons=(changed,)), *rest)
    return msgspec.structs.replace(analysis, rows=rows)


def failed() -> Analysis:
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 90} if (summary.task, variant) == (2, "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    record = complete_record(edit=failing)
    first = msgspec.structs.replace(record.forks[0], status="failed")
    return analyse_run(msgspec.structs.replace(record, forks=(first, *record.forks[1:])))


def second_has_few() -> Analysis:
    """The first contender has forks enough, the second one has not."""
    few = {"verdict": "faster", "provisional": True, "n_contender": 3, "n_baseline": 3}
    return compared(
        plain(variants=THREE),
        lambda row, one: msgspec.structs.replace(
            one, **({"verdict": "slower"} if one is row.comparisons[0] else few)
        ),
    )


SCENES: dict[str, Callable[[], Analysis]] = {
    "forks are uneven, documents and versions unknown": lambda: msgspec.structs.replace(
        plain(), forks={"es": 5, "os": 4}, documents=0, versions={}
    ),
    "a version is in the name": lambda: msgspec.structs.replace(
        plain(), variants=("es@8.11.0",), versions={"es@8.11.0": "8.11.0"}
    ),
    "one slower": lambda: judged(plain(), "slower", "equivalent", "inconclusive"),
    "one faster, two different": lambda: judged(plain(), "faster", "different", "different"),
    "all slower": lambda: judged(plain(), "slower"),
    "all different": lambda: judged(plain(), "different"),
    "all equal": lambda: judged(plain(), "equivalent"),
    "nothing decided": lambda: judged(plain(), "insufficient", "inconclusive"),
    "CPU answers where times do not": lambda: judged(plain(edit=costing), "inconclusive"),
    "where times decide, they are the answer": lambda: judged(plain(edit=costing), "slower"),
    "CPU answers for the open task": lambda: judged(plain(edit=costing), "slower", "slower", "inconclusive"),
    "CPU of several contenders": lambda: judged(plain(variants=THREE, edit=costing), "inconclusive"),
    "CPU of few forks": lambda: judged(plain(edit=costing, forks=3), "inconclusive"),
    "what a node holds is neither fast nor slow": lambda: held("index_size"),
    "times and what a node holds": lambda: held("index_size,cpu"),
    "metrics that disagree": lambda: first_row(judged(plain(), "faster"), "slower"),
    "what is open by one metric is not equal": lambda: first_row(
        judged(plain(), "equivalent"), "inconclusive"
    ),
    "not warmed up": lambda: moving(2),
    "a mark beside verdicts": lambda: marked("slower"),
    "a mark where nothing is decided": lambda: marked("inconclusive", "equivalent", "slower"),
    "a mark on what is equal": lambda: marked("equivalent", "inconclusive"),
    "stalls come before warm-up": lambda: plain(edit=stalling),
    "stalls of one variant": lambda: analyse(
        {"os": complete_record(edit=stalling).done("os")}, complete_record().plan
    ),
    "two forks": lambda: plain(forks=2),
    "three forks": lambda: plain(forks=3),
    "four forks": lambda: plain(forks=4),
    "failures and answers": failed,
    "one variant": lambda: plain(variants=("es",)),
    "only what is provisional says why": second_has_few,
    "few forks leave it open by several metrics": lambda: msgspec.structs.replace(
        found := judged(plain(forks=3), "inconclusive", provisional=False),
        rows=tuple(row for row in found.rows if row.task == 0),
    ),
    "forks enough leave it open": lambda: msgspec.structs.replace(
        found := judged(plain(), "inconclusive", provisional=False),
        rows=tuple(row for row in found.rows if row.task == 0),
    ),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = []
    for name, scene in SCENES.items():
        analysis = scene()
        rows = [
            f"{row.label}, {row.metric}: {said(one, one.verdict)}{', provisional' * one.provisional}"
            for row in analysis.rows
            for one in row.comparisons
        ]
        texts.append("\n".join([f"# {name}", headline(analysis), verdict(analysis), *rows, ""]))
    golden.agree(request.config, GOLDEN, "\n".join(texts))


@pytest.mark.parametrize(("busy", "told"), [(0, False), (3, True)])
def test_a_busy_host_is_the_first_doubt_and_what_to_run_next(busy: int, *, told: bool):
    def edit(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block)

    record = complete_record(answers=None, edit=edit)
    apart = msgspec.structs.replace(record.plan, apart="asked for")
    record = msgspec.structs.replace(record, plan=apart)
    loads = (OtherLoad(2, 0.02, {"cron": 0.01}, 1.0), OtherLoad(2, 0.96, {"python3": 0.9, "cron": 0.05}, 1.0))
    forks = tuple(msgspec.structs.replace(fork, others=loads[fork.block < busy]) for fork in record.forks)
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    text = verdict(analysis)
    assert {
        one.provisional for row in analysis.rows for one in row.comparisons if one.verdict in DECIDED
    } == {True}
    assert ("used 0.58 of 2 CPUs, 58% of what the nodes used (python3: 0.54)" in text) == told
    assert text.startswith("PROVISIONAL: the host was busy.") == told
    # What follows from it is not said.
    assert ("warming up on" in text) != told
    words = ("run", "--forks", "3", "--test-mode")
    plan = msgspec.structs.replace(record.plan, words=words)
    following = next_command(analysis, plan)
    assert following is not None
    assert following.line.endswith("--on-busy wait") == told
    assert "--test-mode" not in following.line


@given(st.lists(st.text("abc", min_size=1), max_size=12))
def test_lists_name_or_count_everything(names: list[str]):
    text = listed(names)
    if len(names) <= 3:
        assert text.replace(" and ", ", ").split(", ") == (names or [""])
    else:
        assert text == f"{names[0]}, {names[1]} and {len(names) - 2} others"


def test_what_every_row_shares_is_said_once_without_a_number():
    notes = collect_notes(analyse_run(complete_record(forks=1)))
    assert [doubt.code for doubt in notes.numbered] == ["answers-differ"]
    assert [doubt.code for doubt in notes.general] == ["few-units", "builds"]


def test_numbers_follow_the_order_of_the_rows():
    def failing(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        failures = {"rejected": 1} if summary.label == "desc_sort_timestamp" else {}
        return msgspec.structs.replace(summary, failures=failures)

    analysis = analyse_run(complete_record(edit=failing))
    notes = collect_notes(analysis)
    assert [notes.cell(row.caveats).text for row in analysis.rows[:3]] == ["1 2", "", "3"]


def test_notes_of_the_run_come_along():
    analysis = analyse_run(complete_record(caveats=("the governor is powersave",)))
    assert collect_notes(analysis).general[0].text == "the governor is powersave"
