"""A bisection as it is carried out, without nodes: what is asked, skipped, gone on with, and told."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.results.model import RunRecord
from benchctl.results.plan import VariantSpec
from benchctl.run.bench import SilentObserver
from benchctl.run.questions import Job
from benchctl.search.bisect import BisectContext, bisect
from benchctl.search.bisect_report import open_matter, render_bisection
from benchctl.search.bisection import Bisection, BisectionFolder, Point
from benchctl.track.model import Challenge, Task
from builders import ES, make_fork, make_plan, make_record, make_summary

FORK_S = 2.0
POINTS = 32


@dataclass
class World(SilentObserver):
    """Nodes that are made up.

    Attributes:
        levels: how slow points are, logarithms.
        broken: points that do not build; `dying`: whose node dies; `refusing`: that cannot be prepared.
        interrupt_after: forks; then somebody presses Ctrl-C.
        silent: no fork has a figure.
        measured: points of new runs.
    """

    levels: list[float]
    noise: float = 0.02
    broken: frozenset[int] = frozenset()
    dying: frozenset[int] = frozenset()
    refusing: frozenset[int] = frozenset()
    interrupt_after: int = 10**6
    silent: bool = False
    clock_s: float = 0.0
    forks: int = 0
    begun: dict[str, RunRecord] = field(default_factory=dict)
    measured: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def variant(self, number: int) -> VariantSpec:
        if number in self.broken:
            raise BenchctlError(f"p{number} does not build: make exited with status 2\n  no rule", hint="see")
        return msgspec.structs.replace(ES, name=f"p{number}")

    def measure(self, job: Job) -> tuple[RunRecord, ...]:
        (plan,) = job.plans
        names = job.runs or (f"run-{len(self.begun)}",)
        other, point = (int(spec.name[1:]) for spec in plan.variants)
        if not job.runs:
            self.measured.append(point)
        if self.refusing & {other, point}:
            raise BenchctlError("elasticsearch 8.11.0 exited with status 1 before it was ready")
        record = self.begun.setdefault(names[0], make_record(names[0], plan=plan))
        job.started(names)
        for block in range(len(record.forks) // 2, plan.forks):
            if job.enough([record]) or (block and job.left_s is not None and job.left_s() < 2 * FORK_S):
                break
            if self.forks >= self.interrupt_after:
                self.interrupt_after = 10**6
                raise BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED)
            record = msgspec.structs.replace(
                record, forks=(*record.forks, *map(self.fork, (other, point), [block] * 2))
            )
            self.begun[names[0]] = record
        job.enough([record])
        return (record,)

    def fork(self, point: int, block: int):
        self.forks += 1
        self.clock_s += FORK_S
        draw = np.random.default_rng((self.forks, block)).normal(0, self.noise)
        if point in self.dying:
            return make_fork(f"p{point}", block, wall_s=FORK_S, status="failed", reason="the node died")
        mean_ms = 10 * math.exp(self.levels[point] + draw)
        summaries = () if self.silent else (make_summary("range", mean_ms),)
        return make_fork(f"p{point}", block, *summaries, wall_s=FORK_S)


def bisected(world: World, path: Path, budget_s: float | None = None, most: int = 24) -> Bisection:
    folder = BisectionFolder(path)
    plan = make_plan(schedules=(Challenge("one", (Task("range", iterations=10),)),), forks=most)
    record = folder.load() or Bisection(
        id=path.name,
        points=tuple(Point(f"p{number}", f"Change {number}") for number in range(len(world.levels))),
        place=(0, 0),
        task="range",
        metric="throughput",
        most=most,
    )
    context = BisectContext(
        folder,
        world.variant,
        lambda variants: msgspec.structs.replace(plan, variants=variants),
        world,
        world,
        budget_s,
        clock=lambda: world.clock_s,
    )
    found = bisect(context, record)
    assert folder.load() == found
    return found


def stepped(at: int, count: int = POINTS, size: float = 0.3) -> list[float]:
    return [0.0] * at + [size] * (count - at)


def told(record: Bisection) -> str:
    return " ".join(render_bisection(record).split())


def test_the_first_point_that_differs_is_named_with_its_bound_and_its_cost(tmp_path: Path):
    world = World(stepped(21))
    record = bisected(world, tmp_path)
    assert record.complete
    assert open_matter(record) == ""
    assert "p21 (Change 21) is the first that differs: throughput of range -2" in told(record)
    assert "against p20 (Change 20)." in told(record)
    assert "with a chance of 5.0 % at most, over the 6 questions that lead to it, an answer is wrong" in told(
        record
    )
    assert f"9 questions about 32 points, {world.forks // 2} pairs of forks" in told(record)
    assert [one.question.phase for one in record.answers] == [
        "ends", "halve", "halve", "halve", "halve", "halve", "step", "before", "after",
    ]  # fmt: skip
    assert record.seconds == world.clock_s
    assert world.notes[-1].startswith("question 9: it differs, -2")


def test_points_that_do_not_build_boot_or_last_are_skipped_and_told(tmp_path: Path):
    world = World(stepped(21), broken=frozenset({15}), refusing=frozenset({24}), dying=frozenset({19, 20}))
    record = bisected(world, tmp_path)
    assert record.skipped.keys() >= {15, 20}
    assert open_matter(record) == "2 points could not be told apart from it"
    assert "The change comes behind p18 (Change 18), and with p21 (Change 21) at the latest" in told(record)
    assert "Skipped: p15 (Change 15): p15 does not build: make exited with status 2 Skipped: " in told(record)
    assert "p20 (Change 20): 2 forks failed, the last: the node died" in told(record)
    assert 24 not in record.skipped or "before it was ready" in record.skipped[24]


@pytest.mark.parametrize("flaw", ["broken", "dying", "refusing"])
@pytest.mark.parametrize("end", [0, POINTS - 1])
def test_an_end_that_cannot_be_measured_ends_it(tmp_path: Path, flaw: str, end: int):
    world = World(stepped(21), **{flaw: frozenset({end})})  # type: ignore[arg-type]
    with pytest.raises(BenchctlError, match=r"does not build|the node died|before it was ready"):
        bisected(world, tmp_path)


def test_a_task_without_figures_ends_it(tmp_path: Path):
    with pytest.raises(BenchctlError, match="task 'range' cannot be compared: its requests failed"):
        bisected(World(stepped(21), silent=True), tmp_path)


def test_it_goes_on_after_an_interruption_and_does_not_ask_again(tmp_path: Path):
    world = World(stepped(21), interrupt_after=30)
    with pytest.raises(BenchctlError, match=r"interrupted; [1-9] answers? kept") as raised:
        bisected(world, tmp_path)
    assert raised.value.exit_code == ExitCode.INTERRUPTED
    record = bisected(world, tmp_path)
    assert open_matter(record) == ""
    assert record.seconds == world.clock_s
    assert len(world.measured) == len(record.answers) == 9
    assert len({one.runs for one in record.answers}) == 9


def test_it_ends_when_its_time_is_up_and_goes_on(tmp_path: Path):
    world = World(stepped(21))
    record = bisected(world, tmp_path, budget_s=70.0)
    assert not record.complete
    assert world.clock_s <= 70.0
    assert open_matter(record) == "the time was up before all was asked"
    assert "It is not finished" in told(record)
    assert open_matter(bisected(world, tmp_path)) == ""


def test_ends_that_do_not_differ_are_told(tmp_path: Path):
    record = bisected(World([0.0] * 8), tmp_path, most=8)
    assert record.complete
    assert len(record.answers) == 1
    assert "It is not confirmed that the ends differ: p7 (Change 7) against p0 (Change 0)." in told(record)


def test_a_history_that_goes_back_and_forth_is_told(tmp_path: Path):
    levels = [0.0] * 10 + [0.3] * 10 + [0.0] * 12 + [0.3] * 32
    record = bisected(World(levels), tmp_path)
    assert open_matter(record) == "one single step does not explain the answers"
    assert "lies before the change; asked whether it differs from p0 (Change 0): it differs" in told(record)


def test_a_point_is_tried_again_when_it_goes_on(tmp_path: Path):
    world = World(stepped(21), broken=frozenset({15}))
    bisected(world, tmp_path, budget_s=70.0)
    world.broken = frozenset()
    assert bisected(world, tmp_path).skipped == {}


def test_the_table_lists_every_question(tmp_path: Path):
    record = bisected(World(stepped(21)), tmp_path)
    lines = render_bisection(record, "markdown").splitlines()
    assert lines[0] == "### range: throughput, point against the other, pairs of forks"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]
    assert [(row[0], row[1], row[2], row[5]) for row in rows if row[0].isdecimal()] == [
        ("1", "p31", "p0", "yes"),
        ("2", "p15", "p0", "no"),
        ("3", "p23", "p0", "yes"),
        ("4", "p19", "p0", "no"),
        ("5", "p21", "p0", "yes"),
        ("6", "p20", "p0", "no"),
        ("7", "p21", "p20", "yes"),
        ("8", "p7", "p0", "no"),
        ("9", "p27", "p0", "yes"),
    ]
    assert msgspec.json.decode(render_bisection(record, "json"), type=Bisection) == record
