"""Comparisons across runs, the doubts that reach their rows, and expectations as a reader meets them."""

from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import ttest_rel

from benchctl.experiment.comparisons import ExperimentRow
from benchctl.experiment.judge import ExpectationResult, analyse_experiment
from benchctl.experiment.record import TableSpec
from benchctl.experiment.report import render
from benchctl.results.figures import Quantiles
from benchctl.results.model import (
    AnswerCheck,
    AnswerFinding,
    BootRecord,
    ForkRecord,
    IndexFacts,
    IngestCosts,
    IngestReport,
    RunRecord,
)
from benchctl.results.plan import EvidenceSpec
from benchctl.stats.analyse import analyse_run
from benchctl.stats.metrics import metric_of
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_summary
from made_experiment import comparison, expect, made_plan, made_record, made_runs
from sweeps import histories_record, recall_record

BOOT = BootRecord((0,), 1.0, 1.0, 1.0, searches_sent=300, searches_counted=100, command=(), logs="")
FAST = (4.0, 4.1, 3.9, 4.05, 3.95)
SLOW = (6.0, 6.1, 5.9, 6.2, 5.8)
SLOWER = comparison("slower", "fresh/os/range", "after/os/range")
ENGINES = comparison("engines", "fresh/es/range", "fresh/os/range")
TIMES = {"fresh": {"es": FAST, "os": FAST[::-1]}, "after": {"es": (5.0, 5.1, 4.9, 5.05, 4.95), "os": SLOW}}


def first_row(runs: dict[str, RunRecord], spec: Any = SLOWER) -> ExperimentRow:
    return analyse_experiment(made_record([spec]), runs).rows[0]


def only(runs: dict[str, RunRecord], *expectation: Any, **changes: Any) -> ExpectationResult:
    record = made_record([SLOWER, ENGINES], [expect("so it is", *expectation, **changes)])
    return analyse_experiment(record, runs).expectations[0]


def edited(runs: dict[str, RunRecord], measurement: str, **changes: Any) -> dict[str, RunRecord]:
    return runs | {measurement: msgspec.structs.replace(runs[measurement], **changes)}


def resummarised(run: RunRecord, **changes: Any) -> RunRecord:
    """Every summary of a run changed alike."""
    forks = tuple(
        msgspec.structs.replace(
            fork, summaries=tuple(msgspec.structs.replace(one, **changes) for one in fork.summaries)
        )
        for fork in run.forks
    )
    return msgspec.structs.replace(run, forks=forks)


class TestComparisons:
    def test_two_tasks_of_the_same_forks_are_pairs(self):
        plan = made_plan(
            Challenge("debug", (Task("range", iterations=300),)),
            Challenge("range-settled", (Task("range", iterations=300),)),
            restart="never",
        )
        within = ((4.0, 4.4), (5.0, 5.4), (3.0, 3.4), (4.2, 4.7))
        forks = tuple(
            make_fork(
                "os",
                block,
                make_summary("range", pair[0]),
                make_summary("range", pair[1], schedule=1),
            )
            for block, pair in enumerate(within)
        )
        runs = edited(made_runs(TIMES), "after", plan=plan, forks=forks)
        spec = comparison("in", "after/os/debug/range", "after/os/range-settled/range")
        record = made_record([spec], [expect("it slows", "slower", "in")])
        found = analyse_experiment(record, runs)
        logs = -np.log(np.array(within))
        expected = ttest_rel(logs[:, 1], logs[:, 0])
        assert found.rows[0].comparison.paired
        assert found.rows[0].comparison.p == pytest.approx(expected.pvalue)
        assert found.expectations[0].p == pytest.approx(expected.pvalue)

    def test_the_sides_of_a_block_are_a_pair(self):
        row = first_row(made_runs(TIMES))
        expected = ttest_rel(np.log(1 / np.array(SLOW)), np.log(1 / np.array(FAST[::-1])))
        assert row.comparison.paired
        assert row.comparison.p == pytest.approx(expected.pvalue)
        assert row.comparison.verdict == "slower"
        assert [side.variant for side in row.figures] == ["fresh/os", "after/os"]

    def test_p_values_are_adjusted_within_a_tables_metric(self):
        p90 = comparison("p90", "fresh/es/range", "after/es/range", metric="service_time_p90")
        specs = [SLOWER, p90, ENGINES]
        tables = [TableSpec(title="one", rows=tuple(specs)), TableSpec(title="two", rows=())]
        rows = {
            row.asked.name: row.comparison
            for row in analyse_experiment(made_record(tables), made_runs(TIMES)).rows
        }
        assert rows["p90"].p_adjusted == rows["p90"].p
        assert rows["slower"].p is not None
        assert rows["slower"].p_adjusted == pytest.approx(2 * rows["slower"].p)

    def test_a_measurement_without_a_run_or_forks_is_missing_and_nothing_else(self):
        runs = made_runs({"fresh": TIMES["fresh"]})
        found = analyse_experiment(made_record([SLOWER, ENGINES]), runs)
        assert found.rows[0].missing == "after has not been measured"
        assert found.rows[0].comparison.verdict == "n/a"
        assert found.rows[1].missing == ""
        assert found.forks == {"fresh": {"es": 5, "os": 5}, "after": {"es": 0, "os": 0}}
        row = first_row(edited(made_runs(TIMES), "after", forks=()))
        assert row.missing == "no fork of after/os has finished"

    @pytest.mark.parametrize("extra", [1, 0])
    def test_forks_for_evidence_alone_count_nowhere_and_evidence_in_all_is_compared(self, extra: int):
        runs = made_runs(TIMES)
        evidence = EvidenceSpec(("inlining",), extra_forks=extra)
        plan = msgspec.structs.replace(runs["after"].plan, evidence=evidence)
        forks = (
            *runs["after"].forks,
            *(make_fork("os", 5, make_summary("range", 60.0)) for _ in range(extra)),
        )
        found = first_row(edited(runs, "after", plan=plan, forks=forks))
        assert found.comparison == first_row(runs).comparison


class TestDoubts:
    def test_answers_that_differ_are_told_where_both_variants_are_compared(self):
        finding = AnswerFinding("range", "os", "es", "different", "hits.total 1 and 2")
        runs = made_runs(TIMES, answers=AnswerCheck(("range",), {}, (finding,)))
        rows = analyse_experiment(made_record([SLOWER, ENGINES]), runs).rows
        assert [doubt.code for doubt in rows[1].caveats] == ["answers-differ"]
        assert not rows[0].caveats

    @pytest.mark.parametrize(
        ("summaries", "forks", "plan"),
        [
            ({}, {"boots": (BOOT,)}, {}),
            ({}, {"boots": (msgspec.structs.replace(BOOT, searches_counted=301),)}, {}),
            ({"stalled": 2, "stalled_s": 30.0, "stalled_share": 0.5}, {}, {}),
            ({"hits_least": 1, "hits_most": 9}, {}, {}),
            ({"hits": 0, "hits_exact": True}, {}, {}),
            ({"lacking_warmup": 500}, {}, {}),
            ({"failures": {"http": 3}}, {}, {}),
            ({}, {}, {"page_cache": "cold", "warmup_challenges": (Challenge("w", (Task("range"),)),)}),
            ({"took": Quantiles(*[0.0] * 3)}, {}, {}),
        ],
    )
    @pytest.mark.parametrize("name", ["throughput", "took_p90"])
    def test_a_run_and_an_experiment_doubt_the_same_task_alike(
        self, summaries: dict[str, Any], forks: dict[str, Any], plan: dict[str, Any], name: str
    ):
        took = {"took": Quantiles(*[5e6] * 3)}
        run = resummarised(made_runs({"fresh": {"es": FAST, "os": SLOW}})["fresh"], **took | summaries)
        if "took" in summaries:  # 0 in one fork of five alone: the others have a spread without it
            run = msgspec.structs.replace(run, forks=(run.forks[0], *resummarised(run, **took).forks[1:]))
        run = msgspec.structs.replace(
            run,
            plan=msgspec.structs.replace(run.plan, **plan),
            forks=tuple(msgspec.structs.replace(fork, **forks) for fork in run.forks),
        )
        (alone,) = analyse_run(run, metrics=[metric_of(name)]).rows
        row = first_row({"fresh": run}, msgspec.structs.replace(ENGINES, metric=name))
        assert {doubt.code for doubt in alone.caveats} == {doubt.code for doubt in row.caveats}
        compared = alone.comparisons[0]
        assert (row.comparison.verdict, row.comparison.provisional, row.comparison.low_percent) == (
            compared.verdict,
            compared.provisional,
            compared.low_percent,
        )
        assert [one.values for one in row.figures] == [one.values for one in alone.figures]

    def test_rates_of_other_units_in_another_run_have_no_verdict(self):
        runs = {
            name: resummarised(run, driver=make_driver(window_s=1.0))
            for name, run in made_runs(TIMES).items()
        }
        runs["after"] = resummarised(runs["after"], unit="docs")
        row = first_row(runs)
        assert "unlike-units" in {doubt.code for doubt in row.caveats}
        assert row.comparison.verdict == "n/a"

    def test_a_trial_and_runs_that_have_not_ended_are_told_with_every_format(self):
        runs = made_runs(TIMES)
        plan = msgspec.structs.replace(runs["after"].plan, test_mode=True)
        runs = edited(edited(runs, "after", plan=plan), "fresh", status="interrupted")
        record = made_record([SLOWER], [expect("it slows", "slower", "slower")])
        found = analyse_experiment(record, runs)
        assert {"test-mode", "unfinished"} <= {doubt.code for doubt in found.caveats}

    def test_failed_forks_are_counted(self):
        runs = made_runs(TIMES)
        forks = (*runs["after"].forks, make_fork("os", 5, status="failed", reason="gone"))
        found = analyse_experiment(made_record([SLOWER]), edited(runs, "after", forks=forks))
        assert "1 fork of after/os failed and is not included" in [one.text for one in found.caveats]
        assert found.rows[0].comparison.n_contender == 5


class TestExpectations:
    def test_a_comparison_is_that_of_its_row_but_for_margin_and_family(self):
        runs = made_runs(TIMES)
        row, (judged,) = first_row(runs).comparison, only(runs, "slower", "slower", margin="10%").judged
        assert judged.comparison.margin_percent == pytest.approx(10)
        same = {name: getattr(row, name) for name in ("margin_percent", "adjustment", "family")}
        own = msgspec.structs.replace(judged.comparison, **same)
        assert own == row

    def test_one_comparison_that_refutes_decides(self):
        result = only(made_runs(TIMES), "slower", "slower", "engines")
        assert [one.outcome for one in result.judged] == ["confirmed", "refuted"]
        assert result.outcome == "refuted"

    def test_a_difference_of_differences_holds_one_slowdown_against_the_other(self):
        es = comparison("es", "fresh/es/range", "after/es/range")
        record = made_record([SLOWER, es], [expect("os slows more", "slower", "slower", than="es")])
        result = analyse_experiment(record, made_runs(TIMES)).expectations[0]
        assert result.outcome == "confirmed"
        (judged,) = result.judged
        assert judged.name == "slower over es"
        assert judged.comparison.effect_percent == pytest.approx(100 * (5 / 6 - 1), abs=0.5)

    @pytest.mark.parametrize(
        ("factors", "relation", "outcome"),
        [
            ((1.0, 1.2), "slower", "confirmed"),
            ((1.0, 1.2), "different", "confirmed"),
            ((1.0, 1.2), "alike", "refuted"),
            ((1.2, 1.2), "alike", "confirmed"),
            ((1.2, 1.2), "different", "refuted"),
            ((1.2, 1.0), "slower", "refuted"),
        ],
    )
    def test_an_interaction_with_the_history_is_that_of_the_run(
        self, factors: tuple[float, float], relation: str, outcome: str
    ):
        own = dict(zip(("fresh", "polluted"), factors, strict=True))
        run = histories_record("20260101-000000-m", own, challenges=("range-only-short",))
        rows = [
            comparison(
                history,
                f"m/es/range-only-short@history={history}/range",
                f"m/os/range-only-short@history={history}/range",
                metric="service_time_p90",
            )
            for history in own
        ]
        expected = expect("it depends on what ran before", relation, "polluted", than="fresh")
        record = made_record(rows, [expected], measurements=("m",))
        (result,) = analyse_experiment(record, {"m": run}).expectations
        assert result.outcome == outcome
        (curve,) = (curve for curve in analyse_run(run).curves if curve.metric == "service_time_p90")
        (interaction,) = curve.pairs[0].interactions
        found = result.judged[0].comparison
        assert found.p == pytest.approx(interaction.p)
        for name in ("effect_percent", "low_percent", "high_percent"):
            assert getattr(found, name) == pytest.approx(getattr(interaction, name))

    @pytest.mark.parametrize("recall", ["0.9", ".95", "0.999"])
    def test_a_value_at_equal_recall_is_that_of_the_run_and_open_where_forks_do_not_reach_it(
        self, recall: str
    ):
        run = recall_record("20260101-000000-m")
        sides = (f"m/{variant}/range-only-short@recall={recall}/range" for variant in ("es", "os"))
        record = made_record(
            [comparison("at", *sides)], [expect("os is slower", "slower", "at")], measurements=("m",)
        )
        (result,) = analyse_experiment(record, {"m": run}).expectations
        if recall == "0.999":
            assert result.outcome == "inconclusive"
            assert "in 6 of 6 forks no two points enclose this recall" in result.judged[0].reason
            return
        assert result.outcome == "confirmed"
        curve = analyse_run(run).curves[0]
        (expected,) = next(one for one in curve.at_recall if one.recall == float(recall)).comparisons
        found = result.judged[0].comparison
        for name in ("p", "effect_percent", "low_percent", "high_percent", "baseline_value"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name))

    @pytest.mark.parametrize(
        ("times", "than", "reason"),
        [
            (
                {name: {one: values[:2] for one, values in own.items()} for name, own in TIMES.items()},
                None,
                "too few forks (2 and 2): a verdict needs 3 per variant",
            ),
            ({"fresh": TIMES["fresh"]}, None, "after has not been measured"),
            # What it is held against has to be judged as well.
            (
                TIMES | {"after": {"es": TIMES["after"]["es"][:2], "os": SLOW}},
                "es",
                "too few forks (2 and 2): a verdict needs 3 per variant",
            ),
        ],
    )
    def test_what_lacks_forks_or_a_run_is_open_and_says_so(self, times: Any, than: str | None, reason: str):
        es = comparison("es", "after/es/range", "fresh/os/range")
        record = made_record([SLOWER, es], [expect("os slows more", "slower", "slower", than=than)])
        result = analyse_experiment(record, made_runs(times)).expectations[0]
        assert (result.outcome, result.judged[0].reason) == ("inconclusive", reason)


def sums(*forks: tuple[float, float], variant: str = "es") -> list[ForkRecord]:
    """Forks of two tasks, `with` and `without`, by their mean service times."""
    return [
        make_fork(
            variant,
            block,
            make_summary("with", with_ms),
            make_summary("without", without_ms, task=1),
        )
        for block, (with_ms, without_ms) in enumerate(forks)
    ]


ES_COSTS = ((12.0, 10.1), (13.1, 11.0), (11.2, 9.3), (12.6, 10.4), (11.9, 10.0))
OS_COSTS = ((13.2, 10.0), (14.0, 10.9), (12.4, 9.5), (13.7, 10.6), (13.1, 10.1))


def cost_runs(**changes: Any) -> dict[str, RunRecord]:
    tasks = (Task("with", iterations=300), Task("without", iterations=300))
    plan = made_plan(Challenge("costs", tasks), forks=5, **changes)
    runs = made_runs({"fresh": TIMES["fresh"]})
    forks = (*sums(*ES_COSTS), *sums(*OS_COSTS, variant="os"))
    return edited(runs, "fresh", plan=plan, forks=forks)


def cost(variant: str) -> tuple[str, ...]:
    return (f"fresh/{variant}/with", f"-fresh/{variant}/without")


def cost_row(**changes: Any) -> Any:
    base = comparison("cost", "fresh/es/with", "fresh/os/with", metric="mean", compared_as="difference")
    return msgspec.structs.replace(base, **{"baseline": cost("es"), "contender": cost("os"), **changes})


class TestDerived:
    def test_a_cost_is_subtracted_block_by_block(self):
        row = first_row(cost_runs(), cost_row())
        costs = [np.subtract(*np.array(side).T) for side in (ES_COSTS, OS_COSTS)]
        expected = ttest_rel(costs[1], costs[0])
        assert row.figures[0].values == pytest.approx(costs[0])
        assert row.figures[0].variant == "fresh/es/with - fresh/es/without"
        comparison = row.comparison
        assert (comparison.paired, comparison.p) == (True, pytest.approx(expected.pvalue))
        interval = expected.confidence_interval(0.95)
        assert (comparison.difference_low, comparison.difference_high) == pytest.approx(
            (interval.low, interval.high)
        )
        assert comparison.verdict == "slower"

    def test_a_fork_without_one_of_the_tasks_has_no_sum(self):
        runs = cost_runs()
        first, *others = runs["fresh"].forks
        lacking = msgspec.structs.replace(first.summaries[1], mean_ns=None)
        forks = (msgspec.structs.replace(first, summaries=(first.summaries[0], lacking)), *others)
        row = first_row(edited(runs, "fresh", forks=forks), cost_row())
        assert row.figures[0].values[0] is None
        assert row.comparison.n_baseline == 4
        assert row.comparison.verdict == "insufficient"

    @pytest.mark.parametrize(
        ("is_", "margin", "outcome"),
        [
            ("slower", "0.5 ms", "confirmed"),
            ("faster", "0.5 ms", "refuted"),
            ("alike", "2.0 ms", "confirmed"),
            ("alike", "0.5 ms", "refuted"),
        ],
    )
    def test_expectations_go_by_the_margin_in_the_unit(self, is_: str, margin: str, outcome: str):
        expected = expect("so it is", is_, "cost", margin=margin)
        found = analyse_experiment(made_record([cost_row()], [expected]), cost_runs()).expectations[0]
        assert found.outcome == outcome
        (judged,) = found.judged
        assert judged.comparison.difference == pytest.approx(1.1, abs=0.05)

    def test_no_ratio_to_what_is_not_clearly_above_0(self):
        row = cost_row(baseline=("-fresh/es/with", "fresh/es/without"))
        row = msgspec.structs.replace(row, compared_as="ratio-of-sums")
        record = made_record([row], [expect("dearer", "slower", "cost")])
        found = analyse_experiment(record, cost_runs())
        assert found.rows[0].comparison.verdict == "n/a"
        assert found.expectations[0].outcome == "inconclusive"
        assert "is not clearly above 0" in found.expectations[0].judged[0].reason

    def test_a_difference_of_differences(self):
        rows = [
            comparison(name, f"fresh/es/{name}", f"fresh/os/{name}", metric="mean", compared_as="difference")
            for name in ("with", "without")
        ]
        expected = expect("dearer", "slower", "with", than="without", margin="0.1 ms")
        found = analyse_experiment(made_record(rows, [expected]), cost_runs()).expectations[0]
        direct = first_row(cost_runs(), cost_row()).comparison
        assert found.judged[0].comparison.difference == pytest.approx(direct.difference)
        assert found.p == pytest.approx(direct.p)

    def test_the_report_has_units(self):
        expected = expect("dearer", "slower", "cost", margin="0.5 ms")
        both = [cost_row(), cost_row(name="times", label="times", compared_as="ratio-of-sums")]
        record, runs = made_record(both, [expected]), cost_runs()
        text = render(record, runs, analyse_experiment(record, runs), "markdown")
        assert "| +1.060 ms (+0.8717..+1.248) |" in text
        assert "| 2.000 | 3.060 | +1.060 ms | +0.8717..+1.248 |" in text
        assert "| 2.000 | 3.060 | +53.0% | +41..+67 |" in text
        assert "with margins of 0.5 ms" in text
        assert render(record, runs, analyse_experiment(record, runs), "json")


def built(docs_per_s: float, size: int, **changes: Any) -> IndexFacts:
    costs = IngestCosts(20.0, 20.0 + docs_per_s / 1000)
    seconds = (20_000 / docs_per_s, 0.1, 900 / docs_per_s, 0.1, 5.0, 0.5, 1.0, 0.1)
    report = IngestReport(20_000, 18_000_000, 2, *seconds, costs=costs)
    return IndexFacts("key", 20_000, size, (), report, **changes)


SIDES_OF_BUILDS = {"baseline": "fresh/es", "contender": "fresh/os"}
RATES = {"es": (1000.0, 1010.0, 990.0, 1005.0), "os": (800.0, 805.0, 790.0, 810.0)}


class TestBuilds:
    def runs(self, **changes: Any) -> dict[str, RunRecord]:
        builds = {
            name: tuple(built(rate, int(2e6 + rate), **changes) for rate in rates)
            for name, rates in RATES.items()
        }
        plan = msgspec.structs.replace(made_plan(index_builds=4), schedules=(), forks=0)
        indices = {name: own[0] for name, own in builds.items()}
        runs = made_runs({"fresh": TIMES["fresh"]})
        return edited(runs, "fresh", plan=plan, forks=(), builds=builds, indices=indices)

    def row(self, runs: dict[str, RunRecord], **changes: Any) -> ExperimentRow:
        base = comparison("rate", "fresh/es/x", "fresh/os/x", metric="build_rate")
        return first_row(runs, msgspec.structs.replace(base, **{**SIDES_OF_BUILDS, **changes}))

    def test_builds_of_one_run_are_pairs(self):
        row = self.row(self.runs())
        expected = ttest_rel(np.log(RATES["os"]), np.log(RATES["es"]))
        assert (row.comparison.replicate, row.comparison.replicates) == ("build", (4, 4))
        assert row.comparison.p == pytest.approx(expected.pvalue)
        assert (row.comparison.verdict, row.unit) == ("slower", "docs/s")
        assert row.comparison.provisional
        assert [side.variant for side in row.figures] == ["fresh/es", "fresh/os"]

    def test_those_of_the_cache_are_not_and_the_row_says_so(self):
        row = self.row(self.runs(cached=True))
        assert not row.comparison.paired
        assert [doubt.text[:34] for doubt in row.caveats] == ["some index builds are from the cac"]

    def test_one_build_is_told_of_the_measurements_that_had_one(self):
        after = comparison("a", "after/es/range", "after/os/range")
        rate = msgspec.structs.replace(
            comparison("r", "a/b/c", "a/b/d", metric="build_rate"), **SIDES_OF_BUILDS
        )
        runs = self.runs()
        found = analyse_experiment(made_record([after, rate]), runs | made_runs({"after": TIMES["after"]}))
        (told,) = (doubt.text for doubt in found.caveats if doubt.code == "builds")
        assert told.startswith("after: one index build per engine")
        alone = analyse_experiment(made_record([rate]), runs)
        assert "builds" not in {doubt.code for doubt in alone.caveats}

    def test_sides_on_the_same_builds_are_not_compared(self):
        runs = self.runs()
        twice = runs["fresh"].builds | {"os": runs["fresh"].builds["es"]}
        row = self.row(edited(runs, "fresh", builds=twice))
        assert (row.comparison.verdict, row.caveats[-2].code) == ("n/a", "missing-values")


def paused(sides: dict[str, tuple[float, ...]]) -> dict[str, RunRecord]:
    """Runs of which every fork of a measurement's OpenSearch paused so long."""
    blocks = len(next(iter(sides.values())))
    times = {
        name: {label: (own * 2)[:blocks] for label, own in engines.items()} for name, engines in TIMES.items()
    }
    runs = made_runs(times)
    for name, pauses in sides.items():
        forks = tuple(
            msgspec.structs.replace(
                fork,
                summaries=tuple(
                    msgspec.structs.replace(one, meters={"gc": pauses[fork.block]}) for one in fork.summaries
                ),
            )
            for fork in runs[name].forks
        )
        runs = edited(runs, name, forks=forks)
    return runs


@pytest.mark.parametrize(
    ("fresh", "after", "effect"),
    [
        ((0.0, 1.0, 2.0, 1.0, 1.0), (10.0, 11.0, 9.0, 10.0, 10.0), 900),
        # Without a ratio there may be a verdict: no fork of one side paused, and every fork of the other did.
        ((0.0,) * 6, (10.0, 11.0, 9.0, 10.0, 10.0, 10.5), None),
    ],
)
def test_values_that_may_be_0_are_compared_by_arithmetic_means(
    fresh: tuple[float, ...], after: tuple[float, ...], effect: float | None
):
    row = comparison("pauses", "fresh/os/range", "after/os/range", metric="gc")
    record = made_record([row], [expect("it pauses more", "slower", "pauses")])
    found = analyse_experiment(record, paused({"fresh": fresh, "after": after})).expectations[0]
    (one,) = found.judged
    assert (found.outcome, one.comparison.verdict) == ("confirmed", "slower")
    assert effect is None or one.comparison.effect_percent == pytest.approx(effect)
