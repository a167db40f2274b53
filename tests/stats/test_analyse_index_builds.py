"""Index builds go through the analysis of forks: figures with a known difference, pairs, families, doubts."""

import math
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import IndexFacts, RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Row
from benchctl.stats.inference import adjusted_p
from benchctl.stats.metrics import metric
from builders import make_fork, make_plan, make_summary
from made_builds import builds, built, built_record

ES, OS = (10.0, 10.1, 9.9, 10.2, 10.0), (20.0, 20.2, 19.8, 20.1, 20.3)
EVERY = [metric(one.name) for one in METRIC_KINDS if one.built]


def compared(record: RunRecord, *names: str) -> dict[str, Row]:
    found = analyse_run(record, metrics=[metric(name) for name in names] or None)
    return {row.metric: row for row in found.build_rows}


def test_builds_are_compared_by_default_and_rates_on_the_log_scale():
    found = analyse_run(built_record(es=builds(*ES), os=builds(*OS)))
    assert [row.metric for row in found.rows] == ["build_rate", "force_merge", "index_size"]
    assert (found.builds, found.forks) == ({"es": 5, "os": 5}, {"es": 0, "os": 0})
    (one,) = found.rows[0].comparisons
    expected = ttest_rel(-np.log(OS), -np.log(ES))
    assert (one.replicate, one.replicates, one.paired) == ("build", (5, 5), True)
    assert one.p == pytest.approx(expected.pvalue)
    assert one.low_percent == pytest.approx(100 * math.expm1(expected.confidence_interval().low))
    assert (one.verdict, one.provisional) == ("slower", False)
    assert found.caveats == ()


def test_fewer_than_five_builds_are_provisional():
    row = compared(built_record(es=builds(*ES[:4]), os=builds(*OS[:4])))["build_rate"]
    assert (row.comparisons[0].verdict, row.comparisons[0].provisional) == ("slower", True)


@pytest.mark.parametrize("why", ["cached", "uneven"])
def test_builds_that_were_not_made_in_turns_are_no_pairs(why: str):
    cached = builds(*OS, cached=True) if why == "cached" else builds(*OS[: 4 if why == "uneven" else 5])
    record = built_record(es=builds(*ES), os=cached)
    row = compared(record)["build_rate"]
    (one,) = row.comparisons
    assert not one.paired
    rates = [
        np.log([1_000 / facts.ingest.ingest_s for facts in record.builds_of(name)]) for name in ("es", "os")
    ]
    assert one.p == pytest.approx(ttest_ind(*rates, equal_var=False).pvalue)
    told = [doubt.text for doubt in row.caveats]
    assert told == (
        ["some index builds are from the cache, so the difference includes a drift of the host"]
        * (why == "cached")
    )


def test_p_is_adjusted_over_the_rows_of_the_table_and_usual_rows_do_not_depend_on_others():
    record = built_record(es=builds(*ES, took_s=30.0), os=builds(*OS, took_s=31.0))
    usual, every = (
        {row.metric: row.comparisons[0].p_adjusted for row in analyse_run(record, metrics=asked).build_rows}
        for asked in (None, EVERY)
    )
    assert usual.items() <= every.items()
    rows = analyse_run(record).build_rows
    known = [one.p for row in rows for one in row.comparisons if one.p is not None]
    expected = adjusted_p(known, "benjamini-hochberg")
    assert [row.comparisons[0].p_adjusted for row in rows if row.comparisons[0].p is not None] == expected
    assert len(known) > 1


def test_a_run_with_forks_and_several_builds_has_rows_of_both_and_with_one_build_only_if_asked():
    plan = {"schedules": make_plan().schedules, "forks": 3, "metrics": ""}
    forks = tuple(
        make_fork(name, block, make_summary("range", 3.0 + 0.1 * block), index_build=block)
        for name in ("es", "os")
        for block in range(3)
    )
    record = built_record(plan, es=builds(*ES[:3]), os=builds(*OS[:3]))
    record = msgspec.structs.replace(record, forks=forks)
    found = analyse_run(record)
    assert {row.level for row in found.rows} == {"task", "build"}
    assert [(one.challenge, one.level) for one in found.sections] == [
        ("c", "task"),
        ("index builds", "build"),
    ]
    assert [found.where(row) for row in (found.rows[0], found.rows[-1])] == ["range", "index build"]
    once = msgspec.structs.replace(
        record, builds={}, plan=msgspec.structs.replace(record.plan, index_builds=1)
    )
    assert analyse_run(once).build_rows == ()
    (one,) = compared(once, "index_size")["index_size"].comparisons
    assert (one.verdict, one.effect_percent, [doubt.code for doubt in one.caveats]) == (
        "insufficient",
        0.0,
        ["few-units"],
    )


def test_variants_that_share_one_index_do_not_differ_in_it():
    again = tuple(msgspec.structs.replace(one, cached=True) for one in builds(*ES))
    found = analyse_run(built_record(es=builds(*ES), os=again))
    assert found.rows == ()
    assert [doubt.text for doubt in found.caveats] == [
        "es and os have the same index builds, which are not compared"
    ]


def test_what_was_not_kept_of_a_build_leaves_no_verdict_and_says_how_to_get_it():
    old = (built(20.0), *builds(*OS[1:], took_s=40.0))
    row = compared(built_record(es=builds(*ES, took_s=30.0), os=old), "build_took")["build_took"]
    assert row.figures[1].values[0] is None
    assert row.comparisons[0].verdict == "insufficient"
    assert row.caveats[0].text == (
        "unknown for 1 of 5 index builds of os, which were interrupted; to build them again, delete them "
        "from indices/ in benchctl's home"
    )


def test_an_index_that_was_found_was_not_filled():
    found = tuple(
        msgspec.structs.replace(
            one, key="", ingest=msgspec.structs.replace(one.ingest, ingest_s=0.0, clients=0)
        )
        for one in (built(1.0), built(1.0, 1_000_000))
    )
    record = built_record({"schedules": make_plan().schedules}, es=found[:1], os=found[1:])
    rows = compared(record, "index_size", "build_rate", "force_merge")
    assert rows["index_size"].comparisons[0].effect_percent == pytest.approx(-50)
    assert {side.value for key in ("build_rate", "force_merge") for side in rows[key].figures} == {None}


@given(
    sides=st.tuples(*[st.lists(st.floats(0.5, 2.0), min_size=3, max_size=6)] * 2),
    flushes=st.lists(st.sampled_from((0.0, 0.01, 0.2)), min_size=6, max_size=6),
)
def test_intervals_of_every_figure_exclude_what_its_p_excludes(
    sides: tuple[list[float], list[float]], flushes: list[float]
):
    def own(seconds: list[float]) -> Iterator[IndexFacts]:
        for place, (one, flush) in enumerate(zip(seconds, flushes, strict=False)):
            facts = built(one, 2_000_000 + place)
            yield msgspec.structs.replace(
                facts, ingest=msgspec.structs.replace(facts.ingest, engine_flush_s=one * flush)
            )

    record = built_record(es=tuple(own(sides[0])), os=tuple(own(sides[1])))
    for row in analyse_run(record, metrics=EVERY).build_rows:
        (one,) = row.comparisons
        if one.p is None or one.low_percent is None or abs(one.p - 0.05) < 1e-6:
            continue
        excluded = one.low_percent > 0 or (one.high_percent is not None and one.high_percent < 0)
        assert excluded == (one.p < 0.05), row.metric


def test_every_figure_of_builds_is_found_where_it_says():
    facts = built(10.0, took_s=30.0)
    values = {one.name: facts.value_of(one) for one in METRIC_KINDS if one.built}
    assert None not in values.values()
    assert (values["build_rate"], values["build_took"], values["index_size"]) == (100.0, 30.0, 2.0)
