"""Searches as they are carried out: kept pair by pair, gone on with, and ended by time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.search.conduct import Job, failure
from benchctl.search.record import SearchFolder, SearchRecord, find_search
from builders import CORPUS, make_fork, make_record
from search.world import World, bisected, minimized

STEPPED = [0.0] * 21 + [0.3] * 11
Conducted = Callable[..., SearchRecord]


def minimize(world: World, path: Path, **changes: object) -> SearchRecord:
    return minimized(SearchFolder(path), world, **changes)  # type: ignore[arg-type]


def bisect(world: World, path: Path, **changes: object) -> SearchRecord:
    return bisected(world, path, STEPPED, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("conducted", [minimize, bisect])
@pytest.mark.parametrize("after", [1, 9, 17, 30])
def test_what_was_interrupted_goes_on_where_it_was_and_asks_nothing_twice(
    conducted: Conducted, after: int, tmp_path: Path
) -> None:
    world = World(interrupt_after=after)
    with pytest.raises(BenchctlError, match=r"interrupted; \d+ answers? kept") as caught:
        conducted(world, tmp_path)
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert f"benchctl resume {tmp_path.name}" in caught.value.hint
    cut = SearchFolder(tmp_path).load()
    assert (cut.status, cut.questions[-1].verdict) == ("interrupted", "measuring")
    record = conducted(world, tmp_path)
    assert record.status == "complete"
    # The question that was cut off goes on with its own runs, and no fork is measured again.
    assert len(world.gone_on) == 1
    assert len(world.asked) == len(record.questions) + 1
    assert world.forks == sum(2 * len(one.contender) for one in record.questions)
    assert record.spent_s == world.clock_s
    # What is finished is not measured again.
    assert conducted(world, tmp_path).questions == record.questions
    assert len(world.asked) == len(record.questions) + 1


@pytest.mark.parametrize("conducted", [minimize, bisect])
@pytest.mark.parametrize("budget_s", [32.0, 50.0, 70.0])
def test_the_time_ends_a_search_and_it_goes_on(conducted: Conducted, budget_s: float, tmp_path: Path) -> None:
    world = World()
    record = conducted(world, tmp_path, budget_s=budget_s)
    assert (record.status, record.stopped) == ("interrupted", "the time was up")
    assert world.clock_s <= budget_s
    # A budget is for all of it: nothing is left.
    begun = len(world.asked)
    assert conducted(world, tmp_path, budget_s=budget_s).questions == record.questions
    assert len(world.asked) <= begun + 1
    assert conducted(world, tmp_path).status == "complete"


def test_a_block_without_a_value_is_no_pair(tmp_path: Path) -> None:
    class Patchy(World):
        def block(self, name: str, block: int) -> None:
            self.silent = block % 2 == 0
            super().block(name, block)

    record = minimize(Patchy(), tmp_path)
    for one in record.questions:
        blocks = len({fork.block for fork in Patchy().begun.get(one.runs[0], make_record("r")).forks})
        assert blocks == 0 or len(one.pairs) == blocks // 2
    assert record.questions[0].verdict == "present"


def test_a_search_does_not_go_on_with_other_documents(tmp_path: Path) -> None:
    class Elsewhere(World):
        def measure(self, job: Job) -> tuple[RunRecord, ...]:
            corpus = msgspec.structs.replace(CORPUS, digest="d" if len(self.asked) > 2 else "c")
            plans = tuple(msgspec.structs.replace(plan, corpus=corpus) for plan in job.plans)
            return super().measure(replace(job, plans=plans))

    with pytest.raises(BenchctlError, match="documents"):
        minimize(Elsewhere(), tmp_path)
    assert SearchFolder(tmp_path).load().plan.corpus.digest == "c"


def test_one_failed_fork_may_be_bad_luck_and_two_are_not() -> None:
    good = make_fork("es", 0)
    bad = [make_fork("es", number, status="failed", reason="no node") for number in (1, 2)]
    assert failure([make_record("r", forks=(good, bad[0]))]) == ""
    both = make_record("r", forks=(good, *bad))
    assert failure([make_record("q"), both]) == "2 forks failed, the last: no node"


def test_searches_are_found_by_a_beginning_of_their_id(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first, last = (home.searches / name for name in ("20260101-big5", "20260102-test"))
    for path in (first, last):
        minimize(World(slowness=lambda *_: 1.0), path)
    assert find_search(home, "20260101").path == first
    assert find_search(home, "latest").path == last
    assert find_search(home, str(first)).path == first
    for name in ("2026", "x", ""):
        with pytest.raises(BenchctlError, match=r"matches 2 searches|no such search 'x?' in"):
            find_search(home, name)
