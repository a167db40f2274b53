"""The search as it is carried out, without nodes: what is asked, kept, gone on with, and when it ends."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.results.model import RunRecord
from benchctl.results.plan import VariantSpec
from benchctl.run.bench import SilentObserver
from benchctl.run.questions import Job
from benchctl.search.candidates import Candidates, candidates_of
from benchctl.search.minimize import SearchContext, conduct
from benchctl.search.record import Effect, MinimizeFolder, MinimizeRecord, MinimizeSpec, find_search
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES, OS, make_fork, make_plan, make_record, make_summary

TASKS = ("default", "desc_sort_timestamp", "term", "composite-date_histogram-daily")
NEEDED = {"desc_sort_timestamp", "composite-date_histogram-daily"}
FORK_S = 2.0

Slowness = Callable[[list[Task], VariantSpec], float]


def slow_after_both(front: list[Task], _spec: VariantSpec) -> float:
    """The target takes half as long again when both ran before it."""
    return 1.5 if {task.label for task in front} >= NEEDED else 1.0


@dataclass
class World:
    """Nodes that are made up: how slow the target is follows from what ran before it.

    Attributes:
        slowness: factor of the target's time.
        noise: SD of forks.
        broken: labels with which forks fail.
        interrupt_after: forks; then somebody presses Ctrl-C.
        asked: labels in front, of every question that was measured.
    """

    slowness: Slowness = slow_after_both
    noise: float = 0.03
    broken: frozenset[str] = frozenset()
    interrupt_after: int = 10**6
    clock_s: float = 0.0
    forks: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    begun: dict[str, RunRecord] = field(default_factory=dict)
    gone_on: list[tuple[str, ...]] = field(default_factory=list)

    def measure(self, job: Job) -> tuple[RunRecord, ...]:
        self.asked.append(tuple(task.label for task in job.plans[0].schedules[0].schedule[:-1]))
        names = job.runs or tuple(f"run-{len(self.begun) + number}" for number in range(len(job.plans)))
        if job.runs:
            self.gone_on.append(names)
        for name, plan in zip(names, job.plans, strict=True):
            self.begun.setdefault(name, make_record(name, plan=plan))
        job.started(names)
        for block in range(job.plans[0].forks):
            if job.enough([self.begun[name] for name in names]):
                break
            if block and job.left_s is not None and job.left_s() < FORK_S * len(names):
                break
            for name in names:
                self.block(name, block)
        return tuple(self.begun[name] for name in names)

    def block(self, name: str, block: int) -> None:
        record = self.begun[name]
        tasks = record.plan.schedules[0].schedule
        for spec in record.plan.variants:
            if any(fork.block == block and fork.variant == spec.name for fork in record.forks):
                continue
            if self.forks >= self.interrupt_after:
                self.interrupt_after = 10**6
                raise BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED)
            self.forks += 1
            self.clock_s += FORK_S
            draw = np.random.default_rng((self.forks, block)).normal(0, self.noise)
            mean_ms = 10 * self.slowness(list(tasks[:-1]), spec) * math.exp(draw)
            summaries = [make_summary(task.label, mean_ms, task=place) for place, task in enumerate(tasks)]
            failed: dict[str, Any] = {}
            if self.broken & {task.label for task in tasks}:
                failed = {"status": "failed", "reason": "the node died"}
            fork = make_fork(spec.name, block, *summaries, wall_s=FORK_S, **failed)
            record = msgspec.structs.replace(record, forks=(*record.forks, fork))
            self.begun[name] = record


def made(*, iterations: int = 10, short: int | None = None) -> Candidates:
    track, _ = load_track("big5", {})
    tasks = (*(Task(name, iterations=iterations) for name in TASKS), Task("range", iterations=10))
    return candidates_of(Challenge("big5", tasks), "range", track.operations, short)


def searched(
    folder: MinimizeFolder,
    world: World,
    candidates: Candidates | None = None,
    *,
    budget_s: float | None = None,
    again: bool = False,
    effect: Effect | None = None,
    **changes: Any,
) -> MinimizeRecord:
    effect = effect or Effect("range", "slower", "es")
    spec = MinimizeSpec(
        effect=effect,
        metric="throughput",
        by=None,
        most_forks=12,
        prefix_iterations=None,
        budget_s=budget_s,
        alpha=0.05,
    )
    candidates = candidates or made()
    plan = make_plan(
        variants=(ES, OS) if effect.against else (ES,),
        schedules=(candidates.challenge,),
        forks=12,
        corpus=msgspec.structs.replace(CORPUS, digest=""),
    )
    record = MinimizeRecord(
        id=folder.path.name,
        created="",
        status="running",
        spec=msgspec.structs.replace(spec, **changes),
        plan=plan,
    )
    record = folder.load() if again else record
    return conduct(
        SearchContext(folder, candidates, world, SilentObserver(), budget_s, clock=lambda: world.clock_s),
        record,
    )


@pytest.fixture
def folder(tmp_path: Path) -> MinimizeFolder:
    return MinimizeFolder(tmp_path / "20260101-big5")


def labels(challenge: Challenge | None) -> list[str]:
    assert challenge is not None
    return [task.label for task in challenge.schedule]


def test_what_the_effect_needs_is_left_with_the_evidence_for_every_removal(folder: MinimizeFolder) -> None:
    world = World()
    record = searched(folder, world)
    assert (record.status, record.minimal, record.stopped) == ("complete", True, "")
    assert labels(record.found) == ["desc_sort_timestamp", "composite-date_histogram-daily", "range"]
    assert record.found is not None
    assert record.found.name == "big5-minimal-range"
    assert folder.load() == record
    assert [one.number for one in record.decisions] == list(range(1, len(record.decisions) + 1))
    assert len(world.asked) == len(set(world.asked)) == len(record.decisions)
    for one in record.decisions:
        assert one.verdict == ("present" if set(one.tasks) >= NEEDED else "absent")
        assert len(one.contender) == len(one.reference) >= 3
        assert one.seconds == FORK_S * 2 * len(one.contender)
        assert len(one.runs) == 2
    first, *others = record.decisions
    assert first.phase == "whole"
    # Half as long again is a third less throughput.
    assert first.effect_percent == pytest.approx(-33, abs=4)
    assert all(one.low_percent is not None for one in others)
    removals = [one for one in others if one.verdict == "present"]
    assert sorted(name for one in removals for name in one.removed) == ["default", "term"]
    assert sum(one.alpha for one in others) < 0.05


def test_both_sides_of_every_question_are_the_target_behind_others_and_alone(folder: MinimizeFolder) -> None:
    world = World()
    record = searched(folder, world)
    for one in record.decisions:
        whole, alone = (world.begun[name].plan.schedules[0] for name in one.runs)
        assert labels(whole) == [*one.tasks, "range"]
        assert labels(alone) == ["range"]
        assert whole.name != alone.name


def test_what_is_found_can_be_a_file_whatever_its_challenge_is_called(folder: MinimizeFolder) -> None:
    plain = made()
    for name in ("../a/b", "x" * 300, "\x1b[31m", "\U00020000" * 100):
        challenge = msgspec.structs.replace(plain.challenge, name=name)
        found = searched(folder, World(), replace(plain, challenge=challenge)).found
        assert found is not None
        path = folder.path / f"{found.name}-alone.json"
        path.write_text("", encoding="utf-8")
        assert path.parent == folder.path


def test_no_effect_ends_after_the_first_question(folder: MinimizeFolder) -> None:
    record = searched(folder, World(slowness=lambda *_: 1.0))
    assert record.found is None
    assert len(record.decisions) == 1
    assert "not confirmed" in record.stopped


def test_the_opposite_of_an_effect_is_no_effect(folder: MinimizeFolder) -> None:
    record = searched(folder, World(), effect=Effect("range", "faster", "es"))
    assert [one.verdict for one in record.decisions] == ["absent"]
    assert record.found is None


def test_an_effect_smaller_than_asked_for_is_none(folder: MinimizeFolder) -> None:
    record = searched(folder, World(), by=0.8)
    assert record.decisions[0].verdict == "absent"
    assert searched(MinimizeFolder(folder.path / "b"), World(), by=0.2).minimal


def test_variants_are_compared_within_one_run_and_nothing_in_front_is_tried_first(
    folder: MinimizeFolder,
) -> None:
    def slower_on_os(front: list[Task], spec: VariantSpec) -> float:
        return slow_after_both(front, spec) if spec.name == "os" else 1.0

    world = World(slowness=slower_on_os)
    record = searched(folder, world, effect=Effect("range", "slower", "os", "es"))
    assert world.asked[:2] == [TASKS, ()]
    assert set(labels(record.found)) == {*NEEDED, "range"}
    assert all(len(one.runs) == 1 for one in record.decisions)
    always = World(slowness=lambda _front, spec: 1.5 if spec.name == "os" else 1.0)
    record = searched(MinimizeFolder(folder.path / "b"), always, effect=Effect("range", "slower", "os", "es"))
    assert labels(record.found) == ["range"]
    assert record.minimal


def test_counts_are_cut_first_and_then_the_whole_schedule_is_not_measured(folder: MinimizeFolder) -> None:
    world = World()
    record = searched(folder, world, made(iterations=300, short=10), prefix_iterations=10)
    assert [one.phase for one in record.decisions[:2]] == ["shorten", "remove"]
    assert all(one.short for one in record.decisions)
    assert record.found is not None
    assert {task.iterations for task in record.found.schedule} == {10}


def test_an_effect_that_takes_many_requests_keeps_them(folder: MinimizeFolder) -> None:
    def after_many(front: list[Task], spec: VariantSpec) -> float:
        few = any(task.iterations == 10 for task in front)
        return 1.0 if few else slow_after_both(front, spec)

    record = searched(
        folder, World(slowness=after_many), made(iterations=300, short=10), prefix_iterations=10
    )
    assert [one.phase for one in record.decisions[:3]] == ["shorten", "whole", "remove"]
    assert record.decisions[0].verdict != "present"
    assert record.found is not None
    assert [task.iterations for task in record.found.schedule] == [300, 300, 10]


@pytest.mark.parametrize("after", [1, 9, 17, 30, 41])
def test_what_was_interrupted_goes_on_where_it_was_and_asks_nothing_twice(
    after: int, folder: MinimizeFolder
) -> None:
    world = World(interrupt_after=after)
    with pytest.raises(BenchctlError, match="interrupted") as caught:
        searched(folder, world)
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert f"--resume {folder.path.name}" in caught.value.hint
    assert folder.load().status == "interrupted"
    assert folder.load().decisions[-1].verdict == "measuring"
    record = searched(folder, world, again=True)
    assert record.minimal
    assert set(labels(record.found)) == {*NEEDED, "range"}
    # The question that was cut off goes on with its own runs, and no fork is measured again.
    assert len(world.gone_on) == 1
    assert len(world.asked) == len(record.decisions) + 1
    assert world.forks == sum(2 * len(one.contender) for one in record.decisions)


def test_what_is_finished_is_not_measured_again(folder: MinimizeFolder) -> None:
    world = World()
    record = searched(folder, world)
    asked = len(world.asked)
    assert searched(folder, world, again=True).decisions == record.decisions
    assert len(world.asked) == asked


def test_the_time_ends_a_search_with_the_smallest_schedule_so_far(folder: MinimizeFolder) -> None:
    world = World()
    record = searched(folder, world, budget_s=60.0)
    assert (record.status, record.minimal) == ("interrupted", False)
    assert "time" in record.stopped
    assert world.clock_s <= 60.0
    assert record.found is not None
    assert set(labels(record.found)) >= NEEDED
    went_on = searched(folder, world, again=True)
    assert went_on.minimal
    assert set(labels(went_on.found)) == {*NEEDED, "range"}


def test_no_block_is_begun_that_does_not_fit_and_a_question_cut_off_is_no_answer(
    folder: MinimizeFolder,
) -> None:
    whole = World()
    assert searched(folder, whole).minimal
    # After two questions; and a block before the last answer.
    for number, budget_s in enumerate((32.0, whole.clock_s - 2 * FORK_S)):
        world = World()
        record = searched(MinimizeFolder(folder.path / str(number)), world, budget_s=budget_s)
        assert world.clock_s <= budget_s
        assert (record.status, record.minimal) == ("interrupted", False)


def test_a_step_without_which_forks_fail_is_kept(folder: MinimizeFolder) -> None:
    def fails(front: list[Task], spec: VariantSpec) -> float:
        return slow_after_both(front, spec)

    class Needy(World):
        def block(self, name: str, block: int) -> None:
            tasks = {task.label for task in self.begun[name].plan.schedules[0].schedule}
            self.broken = frozenset() if "term" in tasks or tasks == {"range"} else frozenset(tasks)
            super().block(name, block)

    record = searched(folder, Needy(slowness=fails))
    assert set(labels(record.found)) == {*NEEDED, "term", "range"}
    open_ones = [one for one in record.decisions if one.verdict == "undecided"]
    assert open_ones
    assert all("the node died" in one.reason for one in open_ones)


def test_a_fork_that_failed_once_leaves_a_question_open_and_does_not_end_the_search(
    folder: MinimizeFolder,
) -> None:
    class Unlucky(World):
        def block(self, name: str, block: int) -> None:
            tasks = self.begun[name].plan.schedules[0].schedule
            # One fork of the first half fails, and the others lie about the threshold.
            first = len(self.asked) == 2 and len(tasks) > 1
            self.broken = frozenset({"range"}) if first and block == 1 else frozenset()
            halfway = [0.7, 2.1][block % 2]
            self.slowness = (lambda *_: halfway) if first else slow_after_both
            super().block(name, block)

    world = Unlucky()
    record = searched(folder, world)
    second = record.decisions[1]
    assert (second.verdict, second.reason) == ("undecided", "too few values")
    assert len(second.contender) == 11
    assert record.minimal


def test_a_search_does_not_go_on_with_other_documents(folder: MinimizeFolder) -> None:
    class Elsewhere(World):
        def measure(self, job: Job) -> tuple[RunRecord, ...]:
            corpus = msgspec.structs.replace(CORPUS, digest="d" if len(self.asked) > 2 else "c")
            plans = tuple(msgspec.structs.replace(plan, corpus=corpus) for plan in job.plans)
            return super().measure(replace(job, plans=plans))

    with pytest.raises(UsageError, match="documents"):
        searched(folder, Elsewhere())
    assert folder.load().plan.corpus.digest == "c"


def test_a_target_that_is_never_answered_is_an_error(folder: MinimizeFolder) -> None:
    with pytest.raises(BenchctlError, match="no figure"):
        searched(folder, World(broken=frozenset({"range"})))
    assert folder.load().status == "failed"


def test_searches_are_found_by_a_beginning_of_their_id(folder: MinimizeFolder) -> None:
    searched(folder, World(slowness=lambda *_: 1.0))
    root = folder.path.parent
    other = MinimizeFolder(root / "20260102-test")
    searched(other, World(slowness=lambda *_: 1.0))
    assert find_search(root, "20260101") == folder
    assert find_search(root, "latest") == other
    assert find_search(root, str(folder.path)) == folder
    for name in ("2026", "x", ""):
        with pytest.raises(BenchctlError, match=r"fits 2 searches|no search 'x?' in"):
            find_search(root, name)
