"""Executions of experiments: interleaved, cut off at any time, gone on with, out of time, failing."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, ExitCode
from benchctl.experiment.file import Experiment
from benchctl.experiment.record import experiment_of, tags_of
from benchctl.results.plan import Plan
from benchctl.run.orchestrate import More
from benchctl.run.study import NotResumable
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
    world.before_fork = world.before_open = world.before_reopen = lambda _what: None


def test_all_is_opened_then_measured_block_after_block(world: World, experiment: Experiment):
    opened: list[int] = []

    def before(_fork: Fork) -> None:
        record = world.record
        assert record.status == "running"
        opened.append(len(record.runs))

    world.before_fork = before
    record = world.begin(experiment)
    assert set(opened) == {2}
    assert (record.status, record.stopped, record.spent_s) == ("complete", "", 24.0)
    assert record == world.record
    assert [block for block, *_ in world.forks] == [block for block in range(3) for _ in range(4)]
    assert len({tuple(one[1:] for one in world.forks[start : start + 4]) for start in (0, 4, 8)}) > 1
    for name in ("fresh", "used"):
        run = world.run(name)
        assert run.status == "complete"
        assert run.tags == (f"experiment-{record.id}", f"measurement-{name}")
        assert set(run.timings) == {"prepare-s", "answers-s", "forks-s"}


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


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BenchctlError("the disk is full")])
def test_one_that_ends_while_it_prepares_is_started_again(
    world: World, experiment: Experiment, error: BaseException
):
    def before(plan: Plan) -> None:
        if plan.restart == "never":
            raise error

    world.before_open = before
    with pytest.raises(BenchctlError):
        world.begin(experiment)
    interrupted = world.record
    assert interrupted.status == ("interrupted" if isinstance(error, KeyboardInterrupt) else "failed")
    assert (list(interrupted.runs), world.run("fresh").status) == (["fresh"], interrupted.status)
    go_on(world)
    with pytest.raises(NotResumable) as caught:
        world.resume()
    assert "start the experiment again" in caught.value.hint
    assert world.record == interrupted
    assert world.forks == []


def test_time_that_is_up_ends_it_after_a_whole_block_and_more_time_goes_on(
    world: World, experiment: Experiment
):
    # A block takes eight seconds by its records, and no time by the clock that says what is to be expected.
    record = world.begin(experiment, budget_s=7.0)
    assert (record.status, record.stopped) == ("complete", "the time budget was used up after 1 block")
    assert len(world.forks) == 4
    for name in ("fresh", "used"):
        run = world.run(name)
        assert (run.status, run.stopped, run.caveats) == ("complete", record.stopped, (record.stopped,))
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
    assert len(world.forks) == EVERY + 3 + 2
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


@pytest.mark.parametrize("more", [None, More(2)])
def test_what_changed_in_between_is_told_and_the_record_stays(
    world: World, experiment: Experiment, more: More | None
):
    if more is None:
        interrupt_at(5, world)
        with pytest.raises(BenchctlError):
            world.begin(experiment)
        go_on(world)
    else:
        world.begin(experiment)
    before, runs = world.record, {name: world.run(name) for name in world.record.runs}
    world.before_reopen = not_resumable
    with pytest.raises(NotResumable, match="the kernel was another"):
        world.resume(more=more)
    assert world.record == before
    assert {name: world.run(name) for name in before.runs} == runs


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
    with pytest.raises(NotResumable, match="the run of measurement 'used' is missing") as caught:
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


def test_more_forks_of_everything_are_another_look(world: World, experiment: Experiment):
    world.begin(experiment)
    record = world.resume(more=More(2))
    assert (record.status, record.runs.keys()) == ("complete", {"fresh", "used"})
    assert sorted({block for block, *_ in world.forks[EVERY:]}) == [3, 4]
    assert len(world.forks) == EVERY + 2 * 4
    assert {(world.run(name).looks, world.run(name).status) for name in record.runs} == {(2, "complete")}


def test_a_measurements_run_has_its_tags_and_the_drivers_cost_is_measured_once(world: World, tmp_path: Path):
    own = EXPERIMENT.replace("restart: never", "restart: never, tags: [mine]")
    world.begin(load(tmp_path, f"tags: [both]\n{own}"))
    runs = [world.run(name) for name in ("fresh", "used")]
    assert [run.tags[2:] for run in runs] == [("both",), ("mine",)]
    assert world.calibrated == 1
    assert all(run.calibration is not None for run in runs)
