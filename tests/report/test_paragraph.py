"""Whole sentences: this is what people quote."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.paragraph import _listed, conclusion, verdict_paragraph, verdict_sentences
from benchctl.results.figures import TaskSummary
from benchctl.results.model import HostProbe, RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.order import OrderEffect


def judged(analysis: Analysis, **changes: object) -> Analysis:
    """The same rows, all of one verdict."""
    rows = tuple(
        msgspec.structs.replace(
            row, comparisons=tuple(msgspec.structs.replace(one, **changes) for one in row.comparisons)
        )
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


def test_differences_alike_rows_and_doubts_in_one_paragraph(record: RunRecord):
    slower, alike_in_throughput, alike_in_time, unclear, unlike = verdict_sentences(analyse_run(record))[1:]
    assert slower == (
        "On range, os was slower than es: throughput 21.4 % lower (95 % interval -23.6 to -19.2 %, p "
        "<0.001), p90 service time 27.3 % higher (95 % interval +23.7 to +30.9 %, p <0.001)."
    )
    assert alike_in_throughput == (
        "In throughput, composite-date_histogram-daily made no difference beyond 3.0 % (equivalent)."
    )
    assert alike_in_time == (
        "In p90 service time, desc_sort_timestamp and composite-date_histogram-daily made no difference "
        "beyond 5.0 % (equivalent)."
    )
    assert unclear == (
        "In throughput, nothing could be told on 1 of 3 tasks, which does not mean that they are alike: the "
        "least difference that four of five such runs would find is 4.0 %."
    )
    assert unlike == ("The answers are not alike on range: the times there may not be of the same work.")


def test_inconclusive_never_reads_as_alike_and_says_what_would_have_been_seen(record: RunRecord):
    analysis = judged(analyse_run(record), verdict="inconclusive", mde_percent=12.0)
    text = verdict_paragraph(analysis)
    assert (
        "In throughput, nothing could be told on any of the 3 tasks, which does not mean that they are "
        "alike: the least difference that four of five such runs would find is 12.0 %."
    ) in text
    assert "equivalent" not in text


def test_a_range_of_detectable_differences_is_a_range(record: RunRecord):
    analysis = judged(analyse_run(record), verdict="inconclusive", mde_percent=9.0)
    first = judged(msgspec.structs.replace(analysis, rows=analysis.rows[:1]), mde_percent=4.0)
    text = verdict_paragraph(msgspec.structs.replace(analysis, rows=(*first.rows, *analysis.rows[1:])))
    assert "find is 4.0 % to 9.0 %." in text
    assert "find is 9.0 %." in text


def test_differences_of_unclear_size_say_so(record: RunRecord):
    analysis = judged(
        analyse_run(record), verdict="different", effect_percent=4.2, low_percent=0.1, high_percent=8.5
    )
    assert (
        "On range, os was faster than es, but perhaps by too little to matter: throughput 4.2 % higher (95 % "
        "interval +0.1 to +8.5 %, p "
    ) in verdict_paragraph(analysis)


@pytest.mark.parametrize("forks", [1, 2])
def test_too_few_forks_give_no_verdict(build: Callable[..., RunRecord], forks: int):
    sentences = verdict_sentences(analyse_run(build(forks=forks)))
    word = "fork" if forks == 1 else "forks"
    assert sentences[:2] == [
        f"big5rangedebug ran in {forks} {word} of es and {forks} {word} of os.",
        f"6 rows rest on too few forks for a verdict ({forks} a side; it takes 3).",
    ]


def test_what_is_insufficient_with_enough_forks_is_not_laid_on_their_number(build: Callable[..., RunRecord]):
    def missing(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None) if block == 0 else summary

    text = verdict_paragraph(analyse_run(build(edit=missing)))
    assert "too few" not in text
    assert "3 rows got no verdict; the notes of the tables say why." in text


def test_no_verdict_stands_without_what_failed(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 90} if (summary.task, variant) == (2, "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    record = build(edit=failing)
    first = msgspec.structs.replace(record.forks[0], status="failed")
    sentences = verdict_sentences(
        analyse_run(msgspec.structs.replace(record, forks=(first, *record.forks[1:])))
    )
    assert f"1 fork of {first.variant} failed and is not in the figures." in sentences
    assert "Requests failed on range: the verdicts there are on what is left." in sentences


def test_rows_without_a_verdict_are_counted(record: RunRecord):
    assert "6 rows got no verdict; the notes of the tables say why." in verdict_paragraph(
        judged(analyse_run(record), verdict="n/a")
    )


def test_one_variant_is_not_compared(build: Callable[..., RunRecord]):
    assert verdict_sentences(analyse_run(build(variants=("es",), forks=1))) == [
        "big5rangedebug ran in 1 fork of es; with one variant there is nothing to compare."
    ]


def test_what_had_not_settled_is_named(build: Callable[..., RunRecord]):
    def moving(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        return (
            msgspec.structs.replace(summary, drift=-0.5) if (summary.task, variant) == (2, "os") else summary
        )

    assert (
        "Not steady: range had not settled when the measurement ended, so these figures are partly those of "
        "warming up."
    ) in verdict_sentences(analyse_run(build(edit=moving)))


def test_several_contenders_are_named_with_their_rows(build: Callable[..., RunRecord]):
    text = verdict_paragraph(analyse_run(build(variants=("es", "os", "noinline"))))
    assert "On range, os was slower than es" in text
    assert "noinline on range" in text


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
    text = verdict_paragraph(msgspec.structs.replace(analysis, order_effects=(slower, unclear)))
    assert (
        "What had run before mattered on range; it could not be told in 1 of 2 comparisons (see the order "
        "tables)."
    ) in text
    several = verdict_sentences(msgspec.structs.replace(analysis, order_effects=(slower,) * 3))
    assert "What had run before mattered on range (see the order tables)." in several
    assert sum("run before" in one for one in several) == 1
    assert (
        "Whether it matters what had run before could not be told in 1 of 1 comparison (see the order "
        "tables)."
    ) in verdict_sentences(msgspec.structs.replace(analysis, order_effects=(unclear,)))


def test_most_forks_disturbed_is_said_and_a_few_are_left_to_the_notes(record: RunRecord):
    analysis = analyse_run(record)
    assert analysis.disturbed == {}
    few, most = (
        verdict_sentences(msgspec.structs.replace(analysis, disturbed=found))
        for found in ({"es": 5}, {"es": 5, "os": 1})
    )
    assert not any("disturbed" in one for one in few)
    assert "6 of 10 forks were disturbed: the host was not quiet." in most


def test_disturbed_forks_are_counted_by_variant(record: RunRecord):
    slow = HostProbe(120_000_000, 100_000_000, 0.0, 0.1, None)
    usual = HostProbe(100_000_000, 100_000_000, 0.0, 0.1, None)
    forks = tuple(
        msgspec.structs.replace(fork, probes=(slow if (fork.variant, fork.block) == ("os", 1) else usual,))
        for fork in record.forks
    )
    assert analyse_run(msgspec.structs.replace(record, forks=forks)).disturbed == {"os": 1}


def test_what_could_not_be_told_is_counted_in_what_was_compared(build: Callable[..., RunRecord]):
    several = judged(analyse_run(build(variants=("es", "os", "noinline"))), verdict="inconclusive")
    assert "In throughput, nothing could be told on any of the 6 comparisons, which" in verdict_paragraph(
        several
    )
    analysis = judged(analyse_run(build()), verdict="inconclusive")
    one = msgspec.structs.replace(analysis, rows=analysis.rows[:1])
    assert "In throughput, nothing could be told on the one task, which" in verdict_paragraph(one)


def test_a_conclusion_of_one_variant_is_only_what_must_be_known_of_it(build: Callable[..., RunRecord]):
    alone = analyse_run(build(variants=("es",)))
    assert conclusion(alone) == ""
    assert conclusion(msgspec.structs.replace(alone, disturbed={"es": 5})).endswith("the host was not quiet.")
    compared = analyse_run(build())
    assert conclusion(compared) == verdict_paragraph(compared)


def test_of_many_differences_the_largest_are_named_and_the_others_counted(record: RunRecord):
    analysis = analyse_run(record)
    rows = tuple(
        msgspec.structs.replace(
            analysis.rows[0],
            task=task,
            label=f"task-{task}",
            comparisons=(
                msgspec.structs.replace(
                    analysis.rows[0].comparisons[0],
                    verdict="faster" if task % 2 else "slower",
                    effect_percent=float(task if task % 2 else -task),
                ),
            ),
        )
        for task in range(10, 20)
    )
    sentences = verdict_sentences(msgspec.structs.replace(analysis, rows=rows))
    named = [sentence.split(",")[0] for sentence in sentences[1:7]]
    assert named == [f"On task-{task}" for task in (18, 16, 19, 17, 14, 15)]  # -16 % is a factor of 1.19, too
    assert sentences[7] == "4 smaller differences were found, too: 2 faster, 2 slower (see the tables)."


@given(st.lists(st.text("abc", min_size=1), max_size=12), st.integers(2, 6))
def test_lists_name_or_count_everything(names: list[str], most: int):
    text = _listed(names, most)
    if len(names) <= most:
        assert text.replace(" and ", ", ").split(", ") == (names or [""])
    else:
        assert text.endswith(f" and {len(names) - most + 1} others")
        assert text.startswith(", ".join(names[: most - 1]))
