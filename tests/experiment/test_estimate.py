"""What an experiment is expected to take and to see, from made-up earlier runs."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchctl.experiment.estimate import (
    Estimate,
    content_listings,
    estimate,
    estimate_lines,
    overview_lines,
)
from benchctl.experiment.plan import Changes, Experiment
from benchctl.home import Home
from benchctl.report.table import pieces
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from benchctl.run.forecast import BOOT_S, FORK_S, REQUEST_S, Past, task_s
from benchctl.track.model import Task
from builders import make_fork, make_record, make_summary
from experiment_files import EXPERIMENT, load


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return load(tmp_path)


def earlier(
    experiment: Experiment,
    measurement: str,
    seconds: dict[str, float],
    *,
    forks: int = 6,
    wobble: float = 1.0,
) -> RunRecord:
    """A run that did what a measurement does."""
    plan = experiment.plans[measurement].plan
    done = tuple(
        make_fork(
            name,
            block,
            *(
                make_summary(task.label, 10 + wobble * (block % 3), schedule=schedule, task=place)
                for schedule, challenge in enumerate(plan.schedules)
                for place, task in enumerate(challenge.schedule)
            ),
            wall_s=wall_s,
        )
        for block in range(forks)
        for name, wall_s in seconds.items()
    )
    return make_record(measurement, plan=plan, forks=done)


def found(experiment: Experiment, *records: RunRecord, budget_s: float | None = None) -> Estimate:
    class Store(RunStore):
        def newest(self) -> Iterator[RunRecord]:
            return iter(records)

    past = Past(Store(Path("none")), "f", Home(Path("none")))
    return estimate(experiment.spec, experiment.plans, past, budget_s)


def text_of(one: Estimate) -> str:
    return "\n".join(estimate_lines(one))


def costs(one: Estimate) -> dict[str, tuple[float, str]]:
    return {f"{cost.measurement}/{cost.variant}": (cost.seconds, cost.basis) for cost in one.costs}


def test_without_history_a_rule_says_what_it_takes_and_nothing_what_it_sees(experiment: Experiment):
    told = found(experiment)
    assert {basis for _, basis in costs(told).values()} == {"rule"}
    # Ten requests of a small corpus are nothing beside the node's start.
    assert costs(told)["fresh/es"][0] == pytest.approx(FORK_S + BOOT_S, abs=0.1)
    assert told.expected_s is None
    assert "expected, roughly:" in text_of(told)
    assert [line.partition(":")[0] for line in told.precision] == ["fresh", "used"]


def test_forks_of_the_same_variant_say_most_and_those_of_its_engine_more_than_a_rule(experiment: Experiment):
    told = found(
        experiment,
        earlier(experiment, "fresh", {"es": 20.0, "os": 30.0}),
        earlier(experiment, "used", {"es": 40.0}),
    )
    assert costs(told) == {
        "fresh/es": (20.0, "variant"),
        "fresh/os": (30.0, "variant"),
        "used/es": (40.0, "variant"),
        "used/es-noinline": (40.0, "engine"),
    }
    assert told.rough == ()
    assert told.block_s == 130
    assert told.expected_s == 390
    assert "expected: 2 min 10 s a block" in text_of(told)
    assert any("minimum detectable effect in throughput range" in line for line in told.precision)


def test_a_variant_is_the_same_whatever_it_was_called(experiment: Experiment):
    record = earlier(experiment, "fresh", {"es": 20.0})
    spec, *others = record.plan.variants
    renamed = (msgspec.structs.replace(spec, name="baseline"), *others)
    plan = msgspec.structs.replace(record.plan, variants=renamed)
    forks = tuple(msgspec.structs.replace(fork, variant="baseline") for fork in record.forks)
    same = msgspec.structs.replace(record, plan=plan, forks=forks)
    assert costs(found(experiment, same))["fresh/es"] == (20.0, "variant")


def test_the_same_operations_elsewhere_are_better_than_a_rule(experiment: Experiment):
    told = costs(found(experiment, earlier(experiment, "used", {"es": 40.0})))
    # 11 ms each, of the same corpus.
    assert told["fresh/es"] == (pytest.approx(FORK_S + BOOT_S + 10 * 0.011, rel=0.01), "operations")
    assert told["fresh/os"][1] == "rule"


def test_runs_of_another_host_say_nothing(experiment: Experiment):
    record = earlier(experiment, "fresh", {"es": 20.0, "os": 30.0})
    elsewhere = msgspec.structs.replace(
        record, environment=msgspec.structs.replace(record.environment, fingerprint="other")
    )
    assert found(experiment, elsewhere) == found(experiment)


def test_a_budget_cuts_blocks_but_never_the_first(experiment: Experiment):
    records = [
        earlier(experiment, "fresh", {"es": 20.0, "os": 30.0}),
        earlier(experiment, "used", {"es": 40.0, "es-noinline": 60.0}),
    ]
    assert [found(experiment, *records, budget_s=one).blocks for one in (1, 299, 300, 10_000)] == [1, 1, 2, 3]
    short = found(experiment, *records, budget_s=300)
    assert (short.planned, short.expected_s) == (3, 300)
    assert "will end it after about 2 of 3 blocks" in text_of(short)
    enough = found(experiment, *records, budget_s=10_000)
    assert "is expected to be enough for all 3 blocks" in text_of(enough)


def test_until_it_is_decided_the_most_that_it_may_take_is_said(tmp_path: Path):
    experiment = load(tmp_path, changes=Changes(until_decided=True))
    told = found(
        experiment,
        earlier(experiment, "fresh", {"es": 20.0, "os": 30.0}),
        earlier(experiment, "used", {"es": 40.0, "es-noinline": 60.0}),
        budget_s=10_000,
    )
    # No expectation rests on es-noinline.
    assert told.longest_s == 50 * (20 + 30 + 40) + 5 * 60
    text = text_of(told)
    assert "further forks, up to 50 per variant, which may take 1 h 20 min in all" in text
    assert "is expected to be enough for the first 5 blocks" in text
    assert found(load(tmp_path)).longest_s is None


def test_a_budget_for_the_most_forks_that_there_may_be_is_worked_out_at_once(tmp_path: Path):
    experiment = load(tmp_path, changes=Changes(forks=10_000))
    records = [
        earlier(experiment, "fresh", {"es": 20.0, "os": 30.0}),
        earlier(experiment, "used", {"es": 40.0, "es-noinline": 60.0}),
    ]
    for budget_s, blocks in ((150.0, 1), (150.0 * 7777 - 1, 7776), (150.0 * 7777, 7777), (1e9, 10_000)):
        assert found(experiment, *records, budget_s=budget_s).blocks == blocks


def test_fewer_forks_and_those_for_evidence_are_counted(tmp_path: Path):
    text = EXPERIMENT.replace(
        "challenges: [range-only-short]}",
        "challenges: [range-only-short], forks: 2, evidence: {kinds: [inlining], forks: 3}}",
    )
    experiment = load(tmp_path, text)
    records = [
        earlier(experiment, "fresh", {"es": 20.0, "os": 30.0}),
        earlier(experiment, "used", {"es": 40.0, "es-noinline": 60.0}),
    ]
    told = found(experiment, *records)
    assert [(one.forks, one.extra) for one in told.costs] == [(2, 3), (2, 3), (3, 0), (3, 0)]
    assert told.planned_forks == 2 * 5 + 2 * 3
    assert told.expected_s == 5 * 50 + 3 * 100
    text = text_of(told)
    assert "16 forks: up to 3 of each and 6 for evidence alone of their 4 sides" in text
    assert "2 min 30 s a block, 9 min 10 s for" in text
    # Evidence is collected whatever the budget is: 150 s.
    assert [found(experiment, *records, budget_s=one).blocks for one in (1, 449, 450, 549, 550)] == [
        1, 1, 2, 2, 3,
    ]  # fmt: skip
    assert found(experiment, *records, budget_s=450).expected_s == 450


def test_an_experiment_of_fewer_forks_alone_has_as_many_blocks(tmp_path: Path):
    text = EXPERIMENT.replace("challenges: [range-only-short]}", "challenges: [range-only-short], forks: 2}")
    experiment = load(tmp_path, text, Changes(only=("fresh",)))
    told = found(experiment)
    assert (told.planned, told.blocks) == (2, 2)
    assert "4 forks: 2 of each of their 2 sides" in text_of(told)


@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        (Task("x", iterations=10, warmup_iterations=5), 1.5),
        (Task("x", iterations=10, clients=2), 1.0),
        (Task("x", iterations=10, clients=2, target_throughput=4.0), 5.0),
        (Task("x", time_period=30.0, warmup_time_period=10.0), 40.0),
        (Task("x"), 0.1),
    ],
)
def test_a_task_takes_its_time_or_its_requests(task: Task, seconds: float):
    assert task_s(task, 0.1) == pytest.approx(seconds)


def test_warm_ups_run_after_every_start(tmp_path: Path):
    plain = costs(found(load(tmp_path)))["fresh/es"][0]
    text = (tmp_path / "used.yml").read_text()
    text = text.replace(
        "challenges: [range-only-short]}", "challenges: [range-only-short], warmup-challenges: [warmup]}"
    )
    warmed = costs(found(load(tmp_path, text)))["fresh/es"][0]
    assert warmed == pytest.approx(plain + 90 * REQUEST_S, abs=0.01)


def test_an_experiment_is_described_whole(tmp_path: Path):
    spec = load(tmp_path, changes=Changes(overrides={"iterations": 3})).spec
    text = "\n".join(overview_lines(spec))
    assert "used: Fresh against used" in text
    assert (
        "3 forks of every variant, 20k documents of track big5, heap 512.0 MiB, seed 1, iterations=3" in text
    )
    tables = {one.title: "".join(pieces(one, "text")) for one in content_listings(spec)}
    assert list(tables) == ["Variants", "Measurements: runs, interleaved", "Comparisons", "Expectations"]
    assert "big5rangedebug, range-only-short; restart never" in tables["Measurements: runs, interleaved"]
    assert "used/es/range-only-short/range" in tables["Comparisons"]
    assert "after: slower (margin 5%)" in tables["Expectations"]
