"""Executions of experiments: interleaved, cut off at any time, gone on with, out of time, failing."""

import math
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, ExitCode
from benchctl.experiment.execution import experiment_of, forks_missing, runs_of, tags_of
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.plan import Changes, Experiment
from benchctl.results.model import RunRecord
from benchctl.results.plan import FIRST_LOOK, Plan
from benchctl.run.open_run import NotResumable
from benchctl.run.orchestrate import More
from benchctl.spec import MOST_FORKS
from experiment.laboratory import Fork, World, not_resumable
from experiment_files import EXPERIMENT, load

EVERY = 3 * 4
"""Forks: three blocks of two variants in two measurements."""


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return load(tmp_path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


def interrupt_at(number: int, world: World) -> None:
    def before(_fork: Fork) -> None:
        if len(world.forks) == number:
            raise KeyboardInterrupt

    world.before_fork = before


def go_on(world: World) -> None:
    world.before_fork = world.before_open = world.after_open = world.before_reopen = lambda _what: None


def test_all_is_opened_then_measured_block_after_block(world: World, experiment: Experiment):
    opened: list[int] = []

    def before(_fork: Fork) -> None:
        record = world.record
        assert record.status == "running"
        opened.append(len(record.runs))

    world.before_fork = before
    record = world.begin(experiment)
    assert set(opened) == {2}
    assert (record.status, record.stopped, record.spent_s, record.expected_s) == ("complete", "", 24.0, 12.0)
    assert record == world.record
    assert [block for block, *_ in world.forks] == [block for block in range(3) for _ in range(4)]
    assert len({tuple(one[1:] for one in world.forks[start : start + 4]) for start in (0, 4, 8)}) > 1
    for name in ("fresh", "used"):
        run = world.run(name)
        assert run.status == "complete"
        assert run.tags == (f"experiment-{record.id}", f"measurement-{name}")
        assert set(run.timings) == {"prepare-s", "answers-s", "forks-s"}
    assert not forks_missing(record, runs_of(record, world.store, pytest.fail))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(number=st.integers(0, EVERY - 1))
def test_an_interruption_at_any_fork_loses_none_and_changes_no_order(
    tmp_path_factory: pytest.TempPathFactory, experiment: Experiment, number: int
):
    whole = World(tmp_path_factory.mktemp("whole"))
    whole.begin(experiment)
    cut = World(tmp_path_factory.mktemp("cut"))
    interrupt_at(number, cut)
    with pytest.raises(BenchctlError) as caught:
        cut.begin(experiment)
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert caught.value.message == f"interrupted; {number} of 12 forks are kept"
    assert caught.value.hint == f"resume with: benchctl resume {cut.record.id}"
    assert cut.record.status == "interrupted"
    assert {cut.run(name).status for name in cut.record.runs} <= {"interrupted", "complete"}
    go_on(cut)
    assert cut.resume().status == "complete"
    assert cut.forks == whole.forks
    assert cut.record.spent_s == 24.0


@pytest.mark.parametrize("number", [0, 5, 11])
def test_a_killed_one_is_gone_on_with(world: World, experiment: Experiment, tmp_path: Path, number: int):
    def before(_fork: Fork) -> None:
        if len(world.forks) == number:
            shutil.copytree(world.root, tmp_path / "killed")

    world.before_fork = before
    world.begin(experiment)
    rest = World(tmp_path / "killed")
    assert rest.record.status == "running"
    assert rest.resume().status == "complete"
    assert rest.forks == world.forks[number:]


def test_one_interrupted_while_it_prepares_opens_the_rest_later(world: World, experiment: Experiment):
    def before(plan: Plan) -> None:
        if plan.restart == "never":
            raise KeyboardInterrupt

    world.before_open = before
    with pytest.raises(BenchctlError, match="0 of 12 forks are kept"):
        world.begin(experiment)
    assert list(world.record.runs) == ["fresh"]
    assert world.run("fresh").status == "interrupted"
    go_on(world)
    first = world.record.runs["fresh"]
    assert world.resume().status == "complete"
    assert world.record.runs["fresh"] == first
    assert len(world.forks) == EVERY


def test_a_run_that_was_opened_and_not_noted_is_found_again(
    world: World, experiment: Experiment, tmp_path: Path
):
    def after(_record: RunRecord) -> None:
        if not (tmp_path / "killed").exists():
            shutil.copytree(world.root, tmp_path / "killed")

    world.after_open = after
    world.begin(experiment)
    rest = World(tmp_path / "killed")
    assert rest.record.runs == {}
    assert rest.resume().status == "complete"
    assert len(rest.store.folders()) == 2


def test_time_that_is_up_ends_it_after_a_whole_block_and_more_time_goes_on(
    world: World, experiment: Experiment
):
    # A block takes eight seconds by its records, and no time by the clock that says what is to be expected.
    record = world.begin(experiment, budget_s=7.0)
    assert (record.status, record.stopped) == ("complete", "the time was up after 1 blocks")
    assert len(world.forks) == 4
    for name in ("fresh", "used"):
        run = world.run(name)
        assert (run.status, run.stopped, run.caveats) == ("complete", record.stopped, (record.stopped,))
    assert forks_missing(record, runs_of(record, world.store, pytest.fail))
    again = world.resume()
    assert (again.status, again.stopped) == ("complete", "")
    assert len(world.forks) == EVERY
    assert {(world.run(name).stopped, world.run(name).caveats) for name in ("fresh", "used")} == {("", ())}


WITH_EVIDENCE = EXPERIMENT.replace(
    "restart: never}",
    """restart: never}
  jit: {variants: [es], challenges: [big5rangedebug], forks: 1, evidence: {kinds: [inlining], forks: 2}}
  logged:
    {variants: [es], challenges: [range-only-short], forks: 2, evidence: {kinds: [profile], forks: all}}""",
)


def blocks_of(world: World, measurement: str) -> list[int]:
    return [block for block, name, _ in world.forks if name == measurement]


def test_forks_for_evidence_come_behind_a_measurements_own(world: World, tmp_path: Path):
    record = world.begin(load(tmp_path, WITH_EVIDENCE))
    assert record.status == "complete"
    assert (blocks_of(world, "jit"), blocks_of(world, "logged")) == ([0, 1, 2], [0, 1])
    assert len(world.forks) == EVERY + 3 + 2 == record.spec.total_forks
    assert [one.block for one in world.run("jit").compared("es")] == [0]
    assert [one.block for one in world.run("logged").compared("es")] == [0, 1]


def test_one_variant_that_fails_is_given_up_and_the_rest_is_measured(world: World, experiment: Experiment):
    world.fails = lambda fork: fork[1:] == ("used", "es-noinline")
    record = world.begin(experiment)
    assert record.status == "failed"
    assert record.stopped.startswith("given up after failures in a row: es-noinline")
    assert world.run("fresh").status == "complete"
    assert world.run("used").status == "failed"
    assert len(world.forks) == EVERY - 1
    world.fails = lambda _fork: False
    assert world.resume().status == "complete"


def test_what_changed_in_between_is_told_and_the_record_stays(world: World, experiment: Experiment):
    interrupt_at(5, world)
    with pytest.raises(BenchctlError):
        world.begin(experiment)
    go_on(world)
    before, runs = world.record, {name: world.run(name) for name in world.record.runs}
    world.before_reopen = not_resumable
    with pytest.raises(NotResumable, match="the kernel was another") as caught:
        world.resume()
    assert f"benchctl experiment report {before.id}" in caught.value.hint
    assert world.record == before
    assert {name: world.run(name) for name in before.runs} == runs


def test_what_cannot_be_prepared_fails_and_says_how_to_go_on(world: World, experiment: Experiment):
    def before(plan: Plan) -> None:
        if plan.restart == "never":
            raise BenchctlError("the disk is full", hint="free some space")

    world.before_open = before
    with pytest.raises(BenchctlError, match="the disk is full") as caught:
        world.begin(experiment)
    resume = f"benchctl resume {world.record.id}"
    assert caught.value.hint == f"free some space; then: {resume}"
    assert (world.record.status, world.record.stopped) == ("failed", "the disk is full")
    assert world.run("fresh").status == "failed"
    go_on(world)
    assert world.resume().status == "complete"


def test_a_bug_leaves_no_experiment_that_seems_to_go_on(world: World, experiment: Experiment):
    def before(_fork: Fork) -> None:
        raise ZeroDivisionError

    world.before_fork = before
    with pytest.raises(ZeroDivisionError):
        world.begin(experiment)
    assert world.record.status == "failed"


def test_an_experiment_without_one_of_its_runs_has_to_be_started_anew(world: World, experiment: Experiment):
    interrupt_at(5, world)
    with pytest.raises(BenchctlError):
        world.begin(experiment)
    go_on(world)
    before = world.record
    kept = world.run("fresh")
    shutil.rmtree(world.store.find(before.runs["used"]).path)
    with pytest.raises(NotResumable, match="the run of measurement 'used' is gone") as caught:
        world.resume()
    assert "start the experiment again" in caught.value.hint
    assert "benchctl resume" not in caught.value.hint
    assert world.record == before
    assert world.run("fresh") == kept
    assert len(world.forks) == 5


def test_a_measurement_that_is_complete_changes_no_order_of_the_others(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
):
    text = EXPERIMENT.replace("forks: 3", "forks: 8").replace("short]}", "short], forks: 1}")
    experiment = load(tmp_path, text)
    whole = World(tmp_path_factory.mktemp("whole"))
    whole.begin(experiment)
    cut = World(tmp_path_factory.mktemp("cut"))
    interrupt_at(5, cut)
    with pytest.raises(BenchctlError):
        cut.begin(experiment)
    assert not cut.run("fresh").missing()
    go_on(cut)
    cut.resume()
    assert cut.forks == whole.forks


def test_a_challenge_that_changed_before_its_measurement_was_opened_is_told(world: World, tmp_path: Path):
    challenge = tmp_path / "mine.json"
    challenge.write_text('{"name": "mine", "schedule": [{"operation": "range", "iterations": 2}]}')
    text = EXPERIMENT.replace("[big5rangedebug, range-only-short]", "[mine.json, range-only-short]")

    def before(plan: Plan) -> None:
        if plan.restart == "never":
            raise KeyboardInterrupt

    world.before_open = before
    with pytest.raises(BenchctlError):
        world.begin(load(tmp_path, text))
    go_on(world)
    written = challenge.read_text()
    challenge.write_text(written.replace("2", "3"))
    interrupted = world.record
    with pytest.raises(
        NotResumable, match="measurement 'used' is made from, such as its challenges"
    ) as caught:
        world.resume()
    assert "start the experiment again" in caught.value.hint
    assert world.record == interrupted
    challenge.write_text(written)
    assert world.resume().status == "complete"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (tags_of("20261121-used", "fresh"), "20261121-used"),
        (("experiment-of-mine",), ""),
        (("measurement-fresh", "nightly"), ""),
        ((), ""),
    ],
)
def test_a_run_is_known_to_belong_to_an_experiment_by_its_tags(tags: tuple[str, ...], expected: str):
    assert experiment_of(tags) == expected


def noisy(fork: Fork) -> float:
    """Twice as slow once used; forks differ by twelve per cent, blocks by as much."""
    block, measurement, variant = fork
    noise = sum(Random(seed).gauss(0, 0.12) for seed in (f"{fork}", f"{block}"))  # noqa: S311 - reproducible
    return (20.0 if (measurement, variant) == ("used", "es") else 10.0) * math.exp(noise)


@pytest.fixture
def open_ended(tmp_path: Path) -> Experiment:
    """One expectation takes many forks, the other one few."""
    return load(tmp_path, EXPERIMENT.replace("forks: 3", "forks: 9"), Changes(forks=50, until_decided=True))


def decided(world: World) -> list[str]:
    runs = {name: world.run(name) for name in world.record.runs}
    return [one.outcome for one in analyse_experiment(world.record, runs).expectations]


def test_forks_go_to_what_open_expectations_rest_on_and_to_nothing_else(world: World, open_ended: Experiment):
    world.time_ms = noisy
    record = world.begin(open_ended)
    assert (record.status, record.stopped, decided(world)) == ("complete", "", ["confirmed", "confirmed"])
    sides = Counter((measurement, variant) for _, measurement, variant in world.forks)
    assert sides["used", "es-noinline"] == FIRST_LOOK
    assert sides["fresh", "es"] == sides["fresh", "os"] > sides["used", "es"] > FIRST_LOOK
    fresh, used = world.run("fresh"), world.run("used")
    assert [one.block for one in fresh.compared("es")] == [one.block for one in fresh.compared("os")]
    assert {run.status for run in (fresh, used)} == {"complete"}
    assert all(run.plan.stop is not None and run.plan.stop.decided for run in (fresh, used))
    assert not forks_missing(record, runs_of(record, world.store, pytest.fail))


def test_sides_of_different_measurements_get_their_forks_in_the_same_blocks(world: World, tmp_path: Path):
    hard = EXPERIMENT.replace("is: slower}", "is: alike, margin: 10%}").replace("forks: 3", "forks: 5")
    world.time_ms = lambda fork: noisy((fork[0], "", f"{fork[1:]}")) * (1.05 if fork[2] == "os" else 1)
    world.begin(load(tmp_path, hard, Changes(until_decided=True)), budget_s=200.0)
    later = [fork for fork in world.forks if fork[0] >= FIRST_LOOK]
    together = [{one[1:] for one in later if one[0] == block} for block in {one[0] for one in later}]
    assert {("fresh", "es"), ("fresh", "os"), ("used", "es")} in together
    assert world.run("used").left_out["es-noinline"]


def test_time_that_is_up_leaves_expectations_open_and_more_time_goes_on(world: World, open_ended: Experiment):
    world.time_ms = noisy
    record = world.begin(open_ended, budget_s=48.0)
    assert (record.status, record.stopped) == (
        "complete",
        "the time was up after 6 blocks, with 1 expectation still open",
    )
    assert len(world.forks) == 4 * FIRST_LOOK + 3
    assert forks_missing(record, runs_of(record, world.store, pytest.fail))
    again = world.resume()
    assert (again.status, again.stopped, decided(world)) == ("complete", "", ["confirmed", "confirmed"])
    assert world.run("fresh").looks == 1


@pytest.fixture
def whole(tmp_path: Path, open_ended: Experiment) -> World:
    """One in which all was decided without interruption."""
    made = World(tmp_path / "whole", time_ms=noisy)
    made.begin(open_ended)
    return made


def test_what_stays_open_ends_at_the_most_forks_and_more_of_them_go_on(world: World, tmp_path: Path):
    text = EXPERIMENT.replace("margin: 10%}", "margin: 1%}")
    world.time_ms = noisy
    record = world.begin(load(tmp_path, text, Changes(forks=7, until_decided=True)))
    assert (record.status, record.stopped) == (
        "complete",
        "ended at 7 forks per variant, with 1 expectation still open",
    )
    assert {len(world.run("fresh").compared(name)) for name in ("es", "os")} == {7}
    record = world.resume(more=More(2, until_decided=True))
    assert record.stopped == "ended at 9 forks per variant, with 1 expectation still open"
    assert any(text.startswith("until decided: up to 9 forks per variant,") for text in world.observer.notes)


def test_sides_that_fail_get_no_more_forks(world: World, open_ended: Experiment):
    world.time_ms = noisy
    world.fails = lambda fork: fork[0] >= FIRST_LOOK
    record = world.begin(open_ended)
    assert (record.status, record.stopped) == ("failed", "2 expectations still open that no forks decide")
    assert len(world.forks) <= 4 * FIRST_LOOK + 2 * 3


def test_more_forks_of_everything_are_another_look(world: World, experiment: Experiment):
    world.begin(experiment)
    record = world.resume(more=More(2, until_decided=False))
    assert (record.status, record.spec.forks, record.runs.keys()) == ("complete", 5, {"fresh", "used"})
    assert sorted({block for block, *_ in world.forks[EVERY:]}) == [3, 4]
    assert len(world.forks) == EVERY + 2 * 4
    assert {(world.run(name).looks, world.run(name).status) for name in record.runs} == {(2, "complete")}


def test_more_until_it_is_decided_begins_with_what_is_there(world: World, experiment: Experiment):
    world.time_ms = noisy
    world.begin(experiment)
    assert "inconclusive" in decided(world)
    record = world.resume(more=More(MOST_FORKS, until_decided=True))
    assert (record.status, decided(world)) == ("complete", ["confirmed", "confirmed"])
    assert ("used", "es-noinline") not in {one[1:] for one in world.forks[EVERY:]}
    plans = [world.run(name).plan for name in record.runs]
    assert all(plan.stop is not None and plan.stop.decided for plan in plans)


def test_an_execution_that_cannot_get_more_stays_as_it_is(world: World, experiment: Experiment):
    before = world.begin(experiment)
    runs = {name: world.run(name) for name in before.runs}
    world.before_reopen = not_resumable
    with pytest.raises(NotResumable):
        world.resume(more=More(2, until_decided=True))
    assert world.record == before
    assert {name: world.run(name) for name in before.runs} == runs


def test_a_measurements_run_has_its_tags_and_the_drivers_cost_is_measured_once(world: World, tmp_path: Path):
    own = EXPERIMENT.replace("restart: never", "restart: never, tags: [mine]")
    world.begin(load(tmp_path, f"tags: [both]\n{own}"))
    runs = [world.run(name) for name in ("fresh", "used")]
    assert [run.tags[2:] for run in runs] == [("both",), ("mine",)]
    assert world.calibrated == 1
    assert all(run.calibration is not None for run in runs)
