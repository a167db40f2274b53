from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.nightly.alarms import Watch
from benchctl.nightly.night import LAST_GOOD, TONIGHT, Confirmer, Laboratory, Shift, status_of
from benchctl.nightly.records import SuiteFolder
from benchctl.nightly.series import DEFAULT_MARGIN
from benchctl.nightly.suite import Suite
from benchctl.results.model import RunRecord
from benchctl.results.plan import BUNDLED, FIRST_LOOK, Plan, StopSpec, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from comparing import compare
from nightly.laboratory import Observer
from nightly.made import KEY, finding, night, run

SHORT = Challenge("short", (Task("range", iterations=3),))
LONG = Challenge("long", (Task("sort", iterations=3),))
LONG_KEY = msgspec.structs.replace(KEY, challenge="long", task="sort")
OS_KEY = msgspec.structs.replace(KEY, variant="os")
SUITE = Suite(variants=("es",), challenges=("short",))
# What tonight's forks differ by from those of last-good in the same block, besides what they all do.
JITTER = (-0.002, 0.001, 0.0, -0.001, 0.002)


class Runs:
    """Confirming runs that are made up: tonight takes so many times as long as last-good."""

    def __init__(self, folder: Path, slower: float = 1.25, forks: int = 8) -> None:
        self.slower = slower
        self.forks = forks
        self.plans: list[Plan] = []
        self.fails: BenchctlError | None = None
        self.bench = Bench(Home(folder), RunStore(folder / "runs"), Observer(), Event())

    def start(self, _bench: Bench, plan: Plan, _track: Any, _extras: Any) -> tuple[RunFolder, RunRecord]:
        self.plans.append(plan)
        if self.fails is not None:
            raise self.fails
        forks = [
            make_fork(
                spec.name,
                block,
                *(
                    make_summary(challenge.schedule[0].label, self._mean_ms(spec, block), schedule=place)
                    for place, challenge in enumerate(plan.schedules)
                ),
            )
            for block in range(self.forks)
            for spec in plan.variants
        ]
        record = make_record(f"confirm-{len(self.plans)}", plan=plan, status="complete", forks=tuple(forks))
        return RunFolder(Path()), record

    def _mean_ms(self, spec: VariantSpec, block: int) -> float:
        jitter = 1 + JITTER[block % len(JITTER)]
        return 10.0 * (self.slower * jitter if spec.name == TONIGHT else 1.0)

    def confirmer(
        self, *, left_s: Any = None, margins: Any = None, same: bool = False, **plan: Any
    ) -> Confirmer:
        """Of night 3, in which both variants are of another build, unless they are the same."""
        labels = ("es", "os")
        before, now = run("b1", labels), run("b1" if same else "b2", labels)
        record = msgspec.structs.replace(
            now,
            plan=make_plan(variants=now.plan.variants, schedules=(SHORT, LONG), **plan),
            forks=tuple(make_fork(label, block, wall_s=10.0) for label in labels for block in range(2)),
        )
        nights = [night(number, pinned=now.plan.variants) for number in (1, 2, 3)]
        watch = Watch(nights, nights[-1], (), {1: before, 2: before, 3: record}, margins or {})
        shift = Shift(SUITE, SuiteFolder(Path()), self.bench, Laboratory(start=self.start))
        return Confirmer(shift, watch, record, load_track("big5", {})[0], left_s, ())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def unconfirmed(**fields: Any) -> Any:
    return finding(3, "unconfirmed", **fields)


def statuses(found: Sequence[Any]) -> list[str]:
    return [one.status for one in found]


def test_a_change_that_fresh_nodes_show_is_confirmed_by_the_challenges_that_it_is_about(runs: Runs):
    (one,) = runs.confirmer().confirm([unconfirmed(effect_percent=-50.0)])
    assert (one.status, one.run) == ("confirmed", "confirm-1")
    assert one.effect_percent == pytest.approx(-20, abs=1)
    assert "8 + 8 forks" in one.reason
    (plan,) = runs.plans
    assert [spec.name for spec in plan.variants] == [LAST_GOOD, TONIGHT]
    assert [challenge.name for challenge in plan.schedules] == ["short"]
    assert plan.forks == SUITE.confirm_forks
    assert plan.stop == StopSpec(
        decided=True, least_forks=FIRST_LOOK, margin=DEFAULT_MARGIN, only=((0, 0, "throughput"),)
    )
    assert one.run in one.command


def test_without_restarts_all_challenges_are_run_again(runs: Runs):
    runs.confirmer(restart="never").confirm([unconfirmed()])
    assert [challenge.name for challenge in runs.plans[0].schedules] == ["short", "long"]


def test_findings_about_one_variant_share_a_run(runs: Runs):
    other = unconfirmed(key=msgspec.structs.replace(KEY, metric="service_time_p90"), effect_percent=25.0)
    found = runs.confirmer().confirm([unconfirmed(), other])
    assert (statuses(found), len(runs.plans)) == (["confirmed", "confirmed"], 1)


def test_while_time_is_short_the_largest_change_is_looked_into_first(runs: Runs):
    small = unconfirmed(effect_percent=-6.0)
    large = unconfirmed(key=OS_KEY, effect_percent=-50.0)
    left = iter((100.0, 0.0))
    found = runs.confirmer(left_s=lambda: next(left)).confirm([small, large])
    assert {one.key.variant: one.status for one in found} == {"os": "confirmed", "es": "unconfirmed"}
    assert len(runs.plans) == 1
    reason = next(one.reason for one in found if one.key == KEY)
    assert reason.startswith("the budget leaves time for 0 forks per variant")


@pytest.mark.parametrize(
    ("slower", "margins", "status"),
    [
        (1.06, {}, "confirmed"),
        (1.0, {}, "refuted"),
        (1.03, {}, "refuted"),
        (1.06, {"throughput": 0.2}, "refuted"),
        (1.03, {"throughput": 0.01}, "confirmed"),
    ],
)
def test_the_verdict_by_the_margins_of_the_suite_is_the_outcome(
    tmp_path: Path, slower: float, margins: dict[str, float], status: str
):
    runs = Runs(tmp_path, slower)
    (one,) = runs.confirmer(margins=margins).confirm([unconfirmed()])
    assert one.status == status
    (plan,) = runs.plans
    assert plan.stop is not None
    assert plan.stop.margin == margins.get("throughput", DEFAULT_MARGIN)


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        ("faster", "confirmed"),
        ("slower", "confirmed"),
        ("equivalent", "refuted"),
        ("different", "unconfirmed"),
        ("inconclusive", "unconfirmed"),
        ("insufficient", "unconfirmed"),
        ("n/a", "unconfirmed"),
    ],
)
def test_what_a_verdict_makes_of_a_finding(verdict: Any, status: str):
    found = compare([1.0, 1.0], [1.0, 1.0], higher_is_better=False, margin=0.05)
    assert status_of(msgspec.structs.replace(found, verdict=verdict)) == status
    doubtful = msgspec.structs.replace(found, verdict=verdict, provisional=True)
    assert status_of(doubtful, ["busy host", "stalled"]) == "unconfirmed"
    assert status_of(doubtful, ["busy host"]) == status


def test_what_few_forks_do_not_decide_stays_unconfirmed_with_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(f"{__name__}.JITTER", (-0.09, 0.08, 0.0, -0.04, 0.1))
    (one,) = Runs(tmp_path, 1.08, forks=5).confirmer().confirm([unconfirmed()])
    assert one.status == "unconfirmed"
    assert one.run == "confirm-1"
    assert "5 + 5 forks" in one.reason


def test_an_engine_of_which_nothing_changed_takes_no_run(runs: Runs):
    (one,) = runs.confirmer(same=True).confirm([unconfirmed()])
    assert (one.status, runs.plans) == ("same engine", [])


def test_what_is_held_or_known_is_left_alone_and_the_order_stays(runs: Runs):
    found = [finding(3, "held"), unconfirmed(key=OS_KEY), finding(3, "known", key=LONG_KEY)]
    assert statuses(runs.confirmer().confirm(found)) == ["held", "confirmed", "known"]


def test_without_the_run_of_the_last_good_night_nothing_can_be_confirmed(runs: Runs):
    (one,) = runs.confirmer().confirm([unconfirmed(last_good=night(9).id)])
    assert (one.status, runs.plans) == ("unconfirmed", [])


def test_a_run_that_fails_is_told_and_one_that_is_interrupted_ends_the_night(runs: Runs):
    runs.fails = BenchctlError("the archive is gone")
    (one,) = runs.confirmer().confirm([unconfirmed()])
    assert (one.status, one.reason) == ("unconfirmed", "the confirming run failed: the archive is gone")
    runs.fails = BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED)
    with pytest.raises(BenchctlError, match="interrupted"):
        runs.confirmer().confirm([unconfirmed()])


def pair_of(runs: Runs, *sides: tuple[dict[str, Any], str, str], jdks: tuple[str, str]) -> list[VariantSpec]:
    """The pair of two nights; of each what was asked for, and the paths that it was."""
    records, nights = {}, []
    for number, (asked, distribution, jdk) in enumerate(sides, 2):
        record = run(f"b{number}", ("es",), **asked)
        facts = tuple(msgspec.structs.replace(one, jdk=jdks[number - 2]) for one in record.engines)
        records[number] = msgspec.structs.replace(record, engines=facts)
        (spec,) = record.plan.variants
        fixed = msgspec.structs.replace(spec, distribution=distribution, jdk=jdk)
        nights.append(night(number, pinned=(fixed,)))
    watch = Watch(nights, nights[-1], (), records, {})
    return list(replace(runs.confirmer(), watch=watch, record=records[3])._pair("es", 2))


def test_a_pair_is_pinned_where_its_versions_do_not_say_what_it_is(runs: Runs):
    good = {"distribution": "build.zip"}
    one, other = pair_of(
        runs,
        (good, "/engines/a", "/jdks/21"),
        (good | {"jdk": "17"}, "/engines/b", "/jdks/17"),
        jdks=("21", "17"),
    )
    assert (one.name, one.distribution, one.jdk) == (LAST_GOOD, "/engines/a", "/jdks/21")
    assert (other.name, other.distribution, other.jdk) == (TONIGHT, "/engines/b", "/jdks/17")


@pytest.mark.parametrize("jdk", [None, BUNDLED])
def test_a_pair_of_the_makers_distributions_keeps_their_runtimes(runs: Runs, jdk: str | None):
    side = ({"distribution": "official", "jdk": jdk}, "/engines/a", "/engines/a/jdk")
    for spec in pair_of(runs, side, side, jdks=("21", "22")):
        assert (spec.distribution, spec.jdk, spec.java) == ("official", jdk, BUNDLED)
