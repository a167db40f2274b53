"""The smallest schedule: what is asked, what a question may spend, and how often a needed task is lost."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.model import RunRecord
from benchctl.search.answers import MIN_PAIRS
from benchctl.search.candidates import Candidates, candidates_of
from benchctl.search.minimize import Minimizing, direction_of, progress, rule_of, start_forecast, values_of
from benchctl.search.record import Effect, MinimizeSpec, Phase, Question, SearchFolder, SearchRecord
from benchctl.stats.history import History, collect_history
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_environment, make_fork, make_plan, make_record, make_summary
from search.world import FORK_S, NEEDED, TASKS, World, made, minimized, slow_after_both

SLOWER, FASTER = Effect("range", "slower", "es"), Effect("range", "faster", "es")


@pytest.fixture
def folder(tmp_path: Any) -> SearchFolder:
    return SearchFolder(tmp_path / "20260101-big5")


def found(record: SearchRecord, candidates: Candidates | None = None) -> list[str]:
    schedules = Minimizing(candidates or made()).schedules(record)
    return [task.label for task in schedules[0].schedule] if schedules else []


def test_what_the_effect_needs_is_left_with_the_evidence_for_every_removal(folder: SearchFolder) -> None:
    world = World()
    record = minimized(folder, world)
    assert (record.status, record.stopped) == ("complete", "")
    assert found(record) == ["desc_sort_timestamp", "composite-date_histogram-daily", "range"]
    assert [one.number for one in record.questions] == list(range(1, len(record.questions) + 1))
    assert len(world.asked) == len(set(world.asked)) == len(record.questions)
    for one in record.questions:
        assert one.verdict == ("present" if set(one.subject) >= NEEDED else "absent")
        assert len(one.contender) == len(one.reference) >= MIN_PAIRS
        assert one.seconds == FORK_S * 2 * len(one.contender)
        # Both sides of every question are the target behind others, and alone.
        whole, alone = (world.begun[name].plan.schedules[0] for name in one.runs)
        assert [task.label for task in whole.schedule] == [*one.subject, "range"]
        assert [task.label for task in alone.schedule] == ["range"]
        assert whole.name != alone.name
    first, *others = record.questions
    assert first.phase == "whole"
    # Half as long again is a third less throughput.
    assert first.effect_percent == pytest.approx(-33, abs=4)
    removals = [one for one in others if one.verdict == "present"]
    assert sorted(name for one in removals for name in one.against) == ["default", "term"]
    assert 0 < sum(one.alpha for one in others) < 0.05


@pytest.mark.parametrize(
    ("world", "changes", "verdict"),
    [
        (World(slowness=lambda *_: 1.0), {}, "absent"),
        (World(), {"effect": FASTER}, "absent"),
        (World(), {"by": 0.8}, "absent"),
        (World(), {"by": 0.2}, "present"),
    ],
)
def test_a_search_begins_with_an_effect_that_is_large_enough(
    folder: SearchFolder, world: World, changes: dict[str, Any], verdict: str
) -> None:
    record = minimized(folder, world, **changes)
    assert record.status == "complete"
    assert record.questions[0].verdict in {verdict, "undecided" if verdict == "absent" else verdict}
    assert (len(record.questions) == 1) == (found(record) == []) == (verdict == "absent")


def test_variants_are_compared_within_one_run_and_nothing_in_front_is_tried_first(
    folder: SearchFolder,
) -> None:
    effect = Effect("range", "slower", "os", "es")
    world = World(lambda front, spec: slow_after_both(front, spec) if spec.name == "os" else 1.0)
    record = minimized(folder, world, effect=effect)
    assert [front for front, _ in world.asked[:2]] == [TASKS, ()]
    assert {*found(record)} == {*NEEDED, "range"}
    assert all(len(one.runs) == 1 for one in record.questions)
    always = World(lambda _front, spec: 1.5 if spec.name == "os" else 1.0)
    assert found(minimized(SearchFolder(folder.path / "b"), always, effect=effect)) == ["range"]


@pytest.mark.parametrize(
    ("few_will_do", "phases", "counts"),
    [(1, ["shorten", "remove"], [10, 10, 10]), (0, ["shorten", "whole"], [300, 300, 10])],
)
def test_counts_are_cut_first_and_kept_where_the_effect_takes_many(
    folder: SearchFolder, few_will_do: int, phases: list[str], counts: list[int]
) -> None:
    def after_many(front: list[Task], spec: Any) -> float:
        few = not few_will_do and any(task.iterations == 10 for task in front)
        return 1.0 if few else slow_after_both(front, spec)

    candidates = made(iterations=300, short=10)
    record = minimized(folder, World(after_many), candidates)
    assert [one.phase for one in record.questions[:2]] == phases
    smallest, alone = Minimizing(candidates).schedules(record)
    assert [task.iterations for task in smallest.schedule] == counts
    assert [task.label for task in alone.schedule] == ["range"]


def test_what_is_found_can_be_a_file_whatever_its_challenge_is_called(folder: SearchFolder) -> None:
    record = minimized(folder, World())
    for name in ("../a/b", "x" * 300, "\x1b[31m", "\U00020000" * 100):
        challenge = msgspec.structs.replace(made().challenge, name=name)
        track, _ = load_track("big5", {})
        candidates = candidates_of(challenge, "range", track.operations, None)
        path = folder.path / f"{Minimizing(candidates).schedules(record)[0].name}-alone.json"
        path.write_text("", encoding="utf-8")
        assert path.parent == folder.path


def test_a_step_without_which_forks_fail_is_kept(folder: SearchFolder) -> None:
    class Needy(World):
        def block(self, name: str, block: int) -> None:
            tasks = {task.label for task in self.begun[name].plan.schedules[0].schedule}
            self.broken = frozenset() if "term" in tasks or tasks == {"range"} else frozenset(tasks)
            super().block(name, block)

    record = minimized(folder, Needy())
    assert {*found(record)} == {*NEEDED, "term", "range"}
    open_ones = [one for one in record.questions if one.verdict == "undecided"]
    assert open_ones
    assert all("the node died" in one.reason for one in open_ones)


def test_a_fork_that_failed_once_leaves_a_question_open_which_further_pairs_answer(
    folder: SearchFolder,
) -> None:
    class Unlucky(World):
        def block(self, name: str, block: int) -> None:
            tasks = self.begun[name].plan.schedules[0].schedule
            # One fork of the first half fails, and the others lie about the threshold.
            first = len({*self.asked}) == 2 and len(tasks) > 1
            self.broken = frozenset({"range"}) if first and block == 1 else frozenset()
            halfway = [0.7, 2.1][block % 2]
            self.slowness = (lambda *_: halfway) if first and block < 12 else slow_after_both
            super().block(name, block)

    world = Unlucky()
    record = minimized(folder, world)
    second = record.questions[1]
    assert (second.verdict, second.reason, len(second.contender)) == ("undecided", "too few values", 11)
    assert record.status == "complete"
    # Whoever extends it asks what stayed open again, and nothing else twice.
    count, names = len(world.begun), second.runs
    longer = minimized(folder, World(begun=world.begun), most=40)
    again = longer.questions[1]
    assert (again.runs, again.most) == (names, 40)
    assert len(again.contender) > 11
    assert [one for one in longer.questions if one.number > 2][: len(record.questions) - 2] == list(
        record.questions[2:]
    )
    assert len(world.begun) >= count


def test_a_target_that_is_never_answered_is_an_error(folder: SearchFolder) -> None:
    with pytest.raises(BenchctlError, match="no figure"):
        minimized(folder, World(broken=frozenset({"range"})))
    assert folder.load().status == "failed"


# What a question may spend, and what runs show.


def search(*questions: Question, by: float | None = None) -> SearchRecord:
    spec = MinimizeSpec(effect=SLOWER, by=by)
    return SearchRecord(
        id="s", spec=spec, metric="service_time_p50", most=12, plan=make_plan(), questions=questions
    )


def question(number: int, *ratios: float, phase: Phase = "whole", verdict: Any = "present") -> Question:
    return Question(
        number=number,
        phase=phase,
        about=(0, 1),
        verdict=verdict,
        contender=tuple(10 * ratio for ratio in ratios),
        reference=(10.0,) * len(ratios),
        most=12,
    )


RATIOS = (1.4, 1.5, 1.45, 1.42, 1.48)
BEGUN = question(1, *RATIOS)
WHOLE = sum(map(math.log, RATIOS)) / 5


@pytest.mark.parametrize(
    ("record", "phase", "landmarks"),
    [
        (search(BEGUN), "remove", (0, WHOLE, WHOLE / 2)),
        (search(BEGUN, by=0.3), "remove", (math.log(1.3), WHOLE, math.log(1.3))),
        (search(by=0.3), "whole", (math.log(1.3),) * 3),
    ],
)
def test_a_removal_is_told_from_no_effect_by_half_of_the_whole_one_or_by_what_is_asked(
    record: SearchRecord, phase: Phase, landmarks: tuple[float, ...]
) -> None:
    rule = rule_of(record, phase, 2)
    assert (rule.gone, rule.there, rule.middle) == pytest.approx(landmarks)


def test_all_removals_together_spend_no_more_than_alpha() -> None:
    removals = [question(number, 1.0, phase="remove", verdict="absent") for number in range(2, 402)]
    record = search(BEGUN, *removals)
    spent = [rule_of(record, "remove", number).alpha for number in range(2, 402)]
    assert rule_of(search(), "whole", 1).alpha == rule_of(search(), "shorten", 1).alpha == 0.025
    assert 0.0498 < sum(spent) < 0.05
    assert spent == sorted(spent, reverse=True)


def run(*labels: str, forks: dict[tuple[str, int], float | None]) -> RunRecord:
    """A run whose last task took so long, by variant and block; None for a fork that failed."""
    variants = (ES, OS) if any(name == "os" for name, _ in forks) else (ES,)
    challenge = Challenge("c", tuple(Task(label, iterations=1) for label in labels))
    done = []
    for (variant, block), mean_ms in forks.items():
        changes: dict[str, Any] = {"status": "failed", "reason": "no node"} if mean_ms is None else {}
        summary = make_summary(labels[-1], mean_ms or 1.0, task=len(labels) - 1)
        done.append(make_fork(variant, block, summary, **changes))
    return make_record(
        "r", plan=make_plan(variants=variants, schedules=(challenge,), forks=3), forks=tuple(done)
    )


def es(*times: float | None) -> dict[tuple[str, int], float | None]:
    return {("es", block): time for block, time in enumerate(times)}


def test_blocks_that_both_sides_finished_are_side_by_side() -> None:
    whole = run("sort", "range", forks=es(20.0, None, 40.0, 50.0))
    alone = run("range", forks=es(10.0, 10.0, 10.0))
    assert values_of([whole, alone], SLOWER, THROUGHPUT) == ([50.0, 25.0], [100.0, 100.0])
    forks = {("es", 0): 10.0, ("os", 0): 30.0, ("es", 1): 10.0, ("os", 1): None}
    effect = Effect("range", "slower", "os", "es")
    assert values_of([run("sort", "range", forks=forks)], effect, THROUGHPUT) == ([1000 / 30.0], [100.0])


def test_the_effect_gives_pairs_their_sign() -> None:
    assert direction_of(SLOWER, SERVICE_TIME) == direction_of(FASTER, THROUGHPUT) == 1
    assert direction_of(SLOWER, THROUGHPUT) == direction_of(FASTER, SERVICE_TIME) == -1


# Before it starts.


def forecast(name: str, history: History | None = None, **keys: Any) -> list[str]:
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge(name, track, {})
    candidates = candidates_of(challenge, "range", track.operations, None)
    plan = make_plan(variants=(ES,), schedules=(challenge,), restart="never", **keys)
    if history is None:
        history = History(noises={}, fork_s={}, hidden=frozenset(), forks=0, runs=())
    record = msgspec.structs.replace(search(), metric="throughput")
    return list(start_forecast(record, candidates, plan, history))


def test_questions_are_counted_before_anything_is_known() -> None:
    (line,) = forecast("big5rangedebug")
    assert "2 steps before range: about 4 questions" in line
    assert "at most 10; each takes from 3 to 12 pairs" in line
    # 17 tasks of 300 requests, two a second.
    assert "at least 42 min 30 s" in forecast("big5")[1]


def test_earlier_forks_show_how_long_the_schedule_takes_and_what_would_be_confirmed() -> None:
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge("big5rangedebug", track, {})
    plan = make_plan(variants=(ES,), schedules=(challenge,), restart="never")
    forks = [
        make_fork("es", block, make_summary("range", 10 + block % 3, task=2), wall_s=15.0)
        for block in range(6)
    ]
    earlier = make_record("a", plan=plan, forks=tuple(forks), environment=make_environment())
    lines = forecast("big5rangedebug", collect_history([earlier], plan, "f"))
    assert "forks of the whole schedule took 15 s here" in lines
    assert lines[2].startswith("forks of range had a CV of 8.2% here: effects from 22.9%")


# The whole search on made-up pairs: the promise is to lose a needed task in at most 5% of searches.

SEARCHES = 150
WANTED = frozenset({1, 4})
Truth = Callable[[frozenset[int]], float]


class Drawn(Candidates):
    """Six steps, of which nothing but the number matters."""

    def __init__(self) -> None:
        track, _ = load_track("big5", {})
        tasks = (*(Task(f"t{number}", iterations=1) for number in range(6)), Task("range", iterations=1))
        steps = tuple((task,) for task in tasks[:-1])
        super().__init__(Challenge("c", tasks), steps, tasks[-1], track.operations, None)

    @property
    def can_shorten(self) -> bool:
        return False


def both_needed(size: float) -> Truth:
    return lambda have: size if have >= WANTED else 0.0


def searched(truth: Truth, cv: float, *, by: float | None = None, slow: float = 0.0) -> list[SearchRecord]:
    policy, records = Minimizing(Drawn()), []
    for seed in range(SEARCHES):
        random, record = np.random.default_rng(seed), search(by=by)
        while (asked := policy.following(record)) is not None:
            asked = msgspec.structs.replace(asked, number=len(record.questions) + 1, most=12)
            contender: tuple[float, ...] = ()
            reference: tuple[float, ...] = ()
            while not asked.is_answered:
                # Host and block are what both forks of a pair share; the JIT may land in a slow state.
                block = 10 * math.exp(random.normal(0, 0.1))
                noise = random.normal(0, cv, 2) + math.log(1.3) * (random.random(2) < slow)
                contender += (block * math.exp(truth(frozenset(asked.about)) + noise[0]),)
                reference += (block * math.exp(noise[1]),)
                asked = msgspec.structs.replace(asked, contender=contender, reference=reference)
                verdict, _ = policy.verdict(record, asked, asked.pairs)
                asked = msgspec.structs.replace(asked, verdict=verdict)
            record = record.with_question(asked)
        records.append(record)
    return records


def kept(records: list[SearchRecord]) -> list[frozenset[int]]:
    return [frozenset(known.kept) for known in map(progress, records) if known is not None]


@pytest.mark.parametrize(
    ("size", "cv", "slow", "exact"),
    [(1.4, 0.05, 0.0, 0.95), (1.4, 0.10, 0.0, 0.95), (1.4, 0.15, 0.0, 0.5), (1.6, 0.05, 0.3, 0.0)],
)
def test_a_needed_task_is_seldom_lost_and_others_go_as_far_as_forks_can_tell(
    size: float, cv: float, slow: float, exact: float
) -> None:
    records = searched(both_needed(math.log(size)), cv, slow=slow)
    left = kept(records)
    assert sum(not one >= WANTED for one in left) / SEARCHES <= 0.05
    assert sum(one == WANTED for one in left) / SEARCHES >= exact
    assert len(left) / SEARCHES > 0.85
    if cv == 0.05 and not slow:
        assert np.median([len(one.questions) for one in records]) <= 13


def test_no_effect_is_seldom_searched_for() -> None:
    assert len(kept(searched(lambda _have: 0.0, 0.1))) / SEARCHES <= 0.05


def test_of_two_halves_of_an_effect_neither_is_lost_for_less_than_was_asked_for() -> None:
    size = math.log(1.4)
    left = kept(searched(lambda have: size / 2 * len(have & WANTED), 0.05, by=math.expm1(0.75 * size)))
    assert left
    assert sum(not one >= WANTED for one in left) / SEARCHES <= 0.05
