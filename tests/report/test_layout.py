"""Whole sentences: this is what people quote."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.layout import collect_notes, said
from benchctl.report.planning import next_command
from benchctl.report.sentences import _listed, headline, verdict
from benchctl.results.figures import TaskSummary
from benchctl.results.model import HostProbe, OtherLoad, RunRecord
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis, provisional
from benchctl.stats.compare import Verdict
from benchctl.stats.order import OrderEffect
from builders import make_driver


def judged(analysis: Analysis, *verdicts: Verdict, **changes: object) -> Analysis:
    """The same rows with these verdicts, task by task; the last one holds for all further tasks."""
    rows = tuple(
        msgspec.structs.replace(
            row,
            comparisons=tuple(
                msgspec.structs.replace(one, verdict=verdicts[min(row.task, len(verdicts) - 1)], **changes)
                for one in row.comparisons
            ),
        )
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


def without_findings(build: Callable[..., RunRecord], **options: object) -> Analysis:
    return analyse_run(build(answers=None, **options))


def test_a_headline_says_what_was_compared_and_on_what(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    assert headline(analysis) == (
        "big5rangedebug: os 2.11.0 vs es 8.11.0 (baseline), 5 forks each, 1m documents"
    )
    uneven = msgspec.structs.replace(analysis, forks={"es": 5, "os": 4}, documents=0, versions={})
    assert headline(uneven) == "big5rangedebug: os vs es (baseline), forks: es 5, os 4"
    named = msgspec.structs.replace(analysis, variants=("es@8.11.0",), versions={"es@8.11.0": "8.11.0"})
    assert headline(named) == "big5rangedebug: es@8.11.0, forks: es 5, os 5, 1m documents".replace(
        "forks: es 5, os 5", "5 forks"
    )


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        (
            ("slower", "equivalent", "inconclusive"),
            ("os is slower than es on desc_sort_timestamp; 1 equal within the margin, 1 inconclusive."),
        ),
        (
            ("faster", "different", "different"),
            (
                "os is faster than es on desc_sort_timestamp; different, perhaps by "
                "too little to matter, on composite-date_histogram-daily and range."
            ),
        ),
        (("slower",), "os is slower than es on 3 of 3 tasks."),
        (("different",), "os is different from es, perhaps by too little to matter, on 3 of 3 tasks."),
        (("equivalent",), "os vs es, 3 tasks: 3 equal within the margin."),
        (("insufficient", "inconclusive"), "os vs es, 3 tasks: 2 inconclusive, 1 without a verdict."),
    ],
)
def test_every_task_is_in_the_sentence(
    build: Callable[..., RunRecord], verdicts: tuple[Verdict, ...], sentence: str
):
    assert verdict(judged(without_findings(build), *verdicts)) == sentence


def test_cpu_of_the_node_answers_where_times_do_not(build: Callable[..., RunRecord]):
    def costing(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        used = {"es": 4.0, "os": (7.76, 4.0, 3.0)[summary.task], "noinline": 2.0}[variant]
        return msgspec.structs.replace(summary, meters={"cpu": used * (1 + 0.01 * block)})

    analysis = without_findings(build, edit=costing)
    sentence = verdict(judged(analysis, "inconclusive"))
    assert sentence == (
        "os vs es, 3 tasks: 3 inconclusive. os costs 94% more CPU on the node than es on "
        "desc_sort_timestamp, as much on composite-date_histogram-daily, 25% less on range."
    )
    # Where times decide, they are the answer.
    assert "CPU" not in verdict(judged(analysis, "slower"))
    assert "25% less CPU on the node than es on range" in verdict(
        judged(analysis, "slower", "slower", "inconclusive")
    )
    several = without_findings(build, variants=("es", "os", "noinline"), edit=costing)
    sentence = verdict(judged(several, "inconclusive"))
    assert "os costs 94% more CPU on the node than es on desc_sort_timestamp" in sentence
    assert "noinline costs 50% less CPU on the node than es on desc_sort_timestamp" in sentence
    few = verdict(judged(without_findings(build, edit=costing, forks=3), "inconclusive"))
    assert "os provisionally costs 94% more CPU on the node" in few
    assert few.endswith("Provisional: fewer than 5 forks a side.")


@pytest.mark.parametrize(("busy", "told"), [(2, False), (3, True)])
def test_a_busy_host_is_the_first_doubt_and_what_to_run_next(
    build: Callable[..., RunRecord], busy: int, *, told: bool
):
    def moving(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block)

    record = build(answers=None, edit=moving)
    forks = tuple(
        msgspec.structs.replace(
            fork,
            others=OtherLoad(2, 0.96, {"python3": 0.9, "cron": 0.05})
            if fork.block < busy
            else OtherLoad(2, 0.1, {"cron": 0.1}),
        )
        for fork in record.forks
    )
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    text = verdict(analysis)
    assert ("busy-host" in {doubt.code for doubt in analysis.caveats}) == told
    assert ("used 48% of the CPUs in 6 of 10 forks (python3 45%, cron 2%)" in text) == told
    assert "ot warmed up on" in text
    following = next_command(analysis, record.plan)
    assert following is not None
    assert following.line.endswith("--require-quiet") == told
    assert ("not warmed up" in following.purpose) != told
    if told:
        assert text.index("Busy host") < text.index("ot warmed up on")


def test_what_a_node_holds_is_neither_fast_nor_slow(build: Callable[..., RunRecord]):
    def holding(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        heap = {"es": 100.0, "os": 60.0}[variant] + block
        return msgspec.structs.replace(summary, meters={"heap": heap, "cpu": heap / 10})

    record = build(answers=None, edit=holding)
    for metrics, sentence in {
        "heap": "os is lighter than es on 3 of 3 tasks.",
        "heap,cpu": "os is faster than es by CPU of the node on 3 of 3 tasks.",
    }.items():
        plan = msgspec.structs.replace(record.plan, metrics=metrics)
        analysis = analyse_run(msgspec.structs.replace(record, plan=plan))
        assert verdict(analysis) == sentence
        words = {row.metric: said(one, one.verdict) for row in analysis.rows for one in row.comparisons}
        assert words["heap"] == "less"
        assert words.get("cpu", "faster") == "faster"


def test_metrics_that_disagree_are_no_verdict_of_one_kind(build: Callable[..., RunRecord]):
    analysis = judged(without_findings(build), "faster")
    throughput, *others = analysis.rows
    slower = msgspec.structs.replace(throughput.comparisons[0], verdict="slower")
    rows = (msgspec.structs.replace(throughput, comparisons=(slower,)), *others)
    assert "faster by one metric and slower by another on desc_sort_timestamp" in verdict(
        msgspec.structs.replace(analysis, rows=rows)
    )


def test_what_is_open_by_one_metric_is_not_equal(build: Callable[..., RunRecord]):
    analysis = judged(without_findings(build), "equivalent")
    unclear = judged(msgspec.structs.replace(analysis, rows=analysis.rows[:1]), "inconclusive").rows
    found = msgspec.structs.replace(analysis, rows=(*unclear, *analysis.rows[1:]))
    assert verdict(found) == "os vs es, 3 tasks: 2 equal within the margin, 1 inconclusive."


def test_what_had_not_warmed_up_is_provisional_in_sentence_and_data(build: Callable[..., RunRecord]):
    def moving(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        moves = (summary.task, variant) == (2, "os")
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block) if moves else summary

    analysis = without_findings(build, edit=moving)
    text = verdict(analysis)
    assert text.startswith("os is provisionally slower than es on range;")
    assert text.endswith("Provisional: not warmed up on range.")
    assert [row.comparisons[0].provisional for row in analysis.rows] == [False, False, True] * 2


def test_a_mark_takes_no_verdict_of_another_row_away(build: Callable[..., RunRecord]):
    def moving(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        drifting = (summary.task, variant) == (0, "os")
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block) if drifting else summary

    analysis = without_findings(build, edit=moving)
    verdicts: dict[tuple[Verdict, ...], str] = {
        ("slower",): "os is slower than es on composite-date_histogram-daily and range; provisionally "
        "slower on desc_sort_timestamp. Provisional: not warmed up on desc_sort_timestamp.",
        ("inconclusive", "equivalent", "slower"): "os is slower than es on range; 1 equal within the margin, "
        "1 inconclusive. Not warmed up on desc_sort_timestamp.",
        ("equivalent", "inconclusive"): "os vs es, 3 tasks: 1 provisionally equal within the margin, "
        "2 inconclusive. Provisional: not warmed up on desc_sort_timestamp.",
    }
    for words, sentence in verdicts.items():
        found = judged(analysis, *words)
        rows = tuple(
            msgspec.structs.replace(
                row, comparisons=tuple(provisional(one, row.figures) for one in row.comparisons)
            )
            for row in found.rows
        )
        assert verdict(msgspec.structs.replace(found, rows=rows)) == sentence


def test_stalls_are_the_first_reason_and_no_lack_of_warm_up(build: Callable[..., RunRecord]):
    def stalling(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        if (summary.task, variant) != (2, "os"):
            return summary
        driver = make_driver(window_s=59.0)
        stalls = {"stalled": 1 + block // 4, "stalled_s": 32.0, "stalled_share": 0.54}
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block, driver=driver, **stalls)

    analysis = without_findings(build, edit=stalling)
    text = verdict(analysis)
    assert text.endswith("Provisional: stalls took up to 54% of the time on range.")
    assert [row.comparisons[0].provisional for row in analysis.rows] == [False, False, True] * 2
    assert [side.stalled for side in analysis.rows[2].figures] == [0.0, 0.54]
    alone = analyse({"os": build(edit=stalling).done("os")}, build().plan)
    assert verdict(alone).startswith("Stalls took up to 54% of the time on range. One variant")
    assert {"stalled", "not-steady"} & {doubt.code for doubt in analysis.rows[2].caveats} == {"stalled"}


@pytest.mark.parametrize(("forks", "provisional"), [(2, False), (3, True), (4, True), (5, False)])
def test_few_forks_are_provisional_as_far_as_they_decide(
    build: Callable[..., RunRecord], forks: int, *, provisional: bool
):
    analysis = without_findings(build, forks=forks)
    assert analysis.rows[2].comparisons[0].provisional == provisional
    text = verdict(analysis)
    assert ("provisionally" in text) == provisional
    assert ("Provisional: fewer than 5 forks a side." in text) == provisional


def test_what_is_open_is_not_provisional(build: Callable[..., RunRecord]):
    analysis = without_findings(build, forks=3)
    assert not any(
        one.provisional for row in analysis.rows for one in row.comparisons if one.verdict == "inconclusive"
    )


def test_no_verdict_stands_without_what_failed(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 90} if (summary.task, variant) == (2, "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    record = build(edit=failing)
    first = msgspec.structs.replace(record.forks[0], status="failed")
    text = verdict(analyse_run(msgspec.structs.replace(record, forks=(first, *record.forks[1:]))))
    assert f"1 fork of {first.variant} failed and is not in the figures." in text
    assert "Requests failed on range." in text
    assert "Answers are not alike on range." in text


def test_one_variant_is_not_compared(build: Callable[..., RunRecord]):
    assert verdict(without_findings(build, variants=("es",))) == (
        "One variant: there is nothing to compare it with."
    )


def test_what_ran_before_is_part_of_the_verdict(record: RunRecord):
    analysis = analyse_run(record)
    slower, unclear = (
        OrderEffect(
            operation="range",
            variant="os",
            metric="throughput",
            title="throughput",
            unit="queries/s",
            baseline_place=(0, 0),
            contender_place=(1, 2),
            baseline_after=(),
            contender_after=("sort", "sort"),
            comparison=msgspec.structs.replace(analysis.rows[2].comparisons[0], verdict=verdict),
        )
        for verdict in ("slower", "inconclusive")
    )
    text = verdict(msgspec.structs.replace(analysis, order_effects=(slower, slower, unclear)))
    assert text.count("At several places of a fork, after different tasks, range differs.") == 1
    assert "before" not in verdict(msgspec.structs.replace(analysis, order_effects=(unclear,)))


@pytest.mark.parametrize(("cpu_ns", "told"), [(120_000_000, True), (80_000_000, False)])
def test_noise_of_the_host_is_told_where_figures_stand_out_with_it(
    build: Callable[..., RunRecord], cpu_ns: int, *, told: bool
):
    """A host that was fast is not a reason for a slow fork."""

    def slow(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        hit = (variant, block, summary.task) == ("os", 1, 2)
        return msgspec.structs.replace(summary, throughput_per_s=200.0) if hit else summary

    record = build(edit=slow)
    noisy = HostProbe(cpu_ns, 100_000_000)
    forks = tuple(
        msgspec.structs.replace(fork, probes=(noisy,)) if (fork.variant, fork.block) == ("os", 1) else fork
        for fork in record.forks
    )
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    assert analysis.disturbed == {"os": 1}
    marked = [
        (row.label, row.metric, doubt.text)
        for row in analysis.rows
        for doubt in row.caveats
        if doubt.code == "disturbed"
    ]
    text = "noisy host: a host probe is an outlier around fork 1 of os, and so do the figures (kept)"
    assert marked == ([("range", "throughput", text)] if told else [])


@given(st.lists(st.text("abc", min_size=1), max_size=12))
def test_lists_name_or_count_everything(names: list[str]):
    text = _listed(names)
    if len(names) <= 3:
        assert text.replace(" and ", ", ").split(", ") == (names or [""])
    else:
        assert text == f"{names[0]}, {names[1]} and {len(names) - 2} others"


def test_only_what_is_provisional_says_why(build: Callable[..., RunRecord]):
    """The first contender has forks enough, the second one has not."""
    analysis = without_findings(build, variants=("es", "os", "noinline"))
    rows = tuple(
        msgspec.structs.replace(
            row,
            comparisons=(
                msgspec.structs.replace(row.comparisons[0], verdict="slower"),
                msgspec.structs.replace(
                    row.comparisons[1], verdict="faster", provisional=True, n_contender=3, n_baseline=3
                ),
            ),
        )
        for row in analysis.rows
    )
    text = verdict(msgspec.structs.replace(analysis, rows=rows))
    assert text.startswith(
        "os is slower than es on 3 of 3 tasks. noinline is provisionally faster than es on"
    )
    assert text.endswith("Provisional: fewer than 5 forks a side.")


@pytest.mark.parametrize("forks", [3, 5])
def test_what_few_forks_leave_open_says_so_and_by_which_metrics(build: Callable[..., RunRecord], forks: int):
    found = judged(without_findings(build, forks=forks), "inconclusive", provisional=False)
    (first, *others) = [row for row in found.rows if row.task == 0]
    alone = msgspec.structs.replace(found, rows=(first, *others))
    few = "" if forks == 5 else " Fewer than 5 forks a side."
    assert verdict(alone) == (
        f"os vs es on desc_sort_timestamp: inconclusive by throughput and p90 service time.{few}"
    )


def test_what_every_row_shares_is_said_once_without_a_number(build: Callable[..., RunRecord]):
    notes = collect_notes(analyse_run(build(forks=1)))
    assert [doubt.code for doubt in notes.numbered] == ["answers-differ"]
    assert [doubt.code for doubt in notes.general] == ["single-fork", "small-scale", "one-index-build"]


def test_numbers_follow_the_order_of_the_rows(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        failures = {"rejected": 1} if summary.label == "desc_sort_timestamp" else {}
        return msgspec.structs.replace(summary, failures=failures)

    analysis = analyse_run(build(edit=failing))
    notes = collect_notes(analysis)
    assert [notes.cell(row.caveats).text for row in analysis.rows[:3]] == ["1 2", "", "3"]


def test_notes_of_the_run_come_along(build: Callable[..., RunRecord]):
    analysis = analyse_run(build(caveats=("the governor is powersave",)))
    assert collect_notes(analysis).general[0].text == "the governor is powersave"
