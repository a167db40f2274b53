from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.nightly.confirm import LAST_GOOD, TONIGHT, Confirmer, pinned_pair, status_of
from benchctl.nightly.screening import DEFAULT_MARGIN
from benchctl.nightly.suite import ConfirmLimits
from benchctl.results.model import RunRecord
from benchctl.results.plan import BUNDLED, FIRST_LOOK, Plan, StopSpec, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench
from benchctl.stats.compare import compare
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from night_records import KEY, finding, night, variant
from nightly.laboratory import Observer

SHORT = Challenge("short", (Task("range", iterations=3),))
LONG = Challenge("long", (Task("sort", iterations=3),))
OS_KEY = msgspec.structs.replace(KEY, variant="os")
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

    def confirmer(self, **fields: Any) -> Confirmer:
        """Of night 3, in which both variants are of another build."""
        before = (variant("es"), variant("os"))
        now = (variant("es", build="b2"), variant("os", build="b2"))
        nights = (night(1, variants=before), night(2, variants=before), night(3, variants=now))
        record = make_record(
            plan=make_plan(schedules=(SHORT, LONG)),
            forks=tuple(make_fork(label, block, wall_s=10.0) for label in ("es", "os") for block in range(2)),
        )
        usual: dict[str, Any] = {
            "bench": self.bench,
            "limits": ConfirmLimits(),
            "margins": {},
            "nights": nights,
            "tonight": nights[-1],
            "record": record,
            "track": None,
            "left_s": None,
            "tags": (),
            "start": self.start,
        }
        return Confirmer(**{**usual, **fields})


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def unconfirmed(**fields: Any) -> Any:
    return finding(3, "unconfirmed", **fields)


def statuses(found: Sequence[Any]) -> list[str]:
    return [one.status for one in found]


def test_a_change_that_fresh_nodes_show_is_confirmed_by_the_challenges_that_it_is_about(runs: Runs):
    (one,), ids = runs.confirmer().confirm([unconfirmed()])
    assert (one.status, ids) == ("confirmed", ["confirm-1"])
    assert one.confirmation is not None
    assert one.confirmation.effect_percent == pytest.approx(-20, abs=1)
    assert (one.confirmation.forks_good, one.confirmation.forks_tonight) == (8, 8)
    (plan,) = runs.plans
    assert [spec.name for spec in plan.variants] == [LAST_GOOD, TONIGHT]
    assert [challenge.name for challenge in plan.schedules] == ["short"]
    assert plan.forks == ConfirmLimits().most_forks
    assert plan.stop == StopSpec(
        decided=True, least_forks=FIRST_LOOK, margin=DEFAULT_MARGIN, only=((0, 0, "throughput"),)
    )
    assert "--until-decided" in one.confirmation.command


def test_without_restarts_all_challenges_are_run_again(runs: Runs):
    plan = make_plan(schedules=(SHORT, LONG), restart="never")
    record = msgspec.structs.replace(runs.confirmer().record, plan=plan)
    runs.confirmer(record=record).confirm([unconfirmed()])
    assert [challenge.name for challenge in runs.plans[0].schedules] == ["short", "long"]


def test_findings_about_one_variant_share_a_run(runs: Runs):
    other = unconfirmed(key=msgspec.structs.replace(KEY, metric="service_time_p90"), effect_percent=25.0)
    found, ids = runs.confirmer().confirm([unconfirmed(), other])
    assert (statuses(found), len(ids)) == (["confirmed", "confirmed"], 1)


def test_while_time_is_short_the_largest_change_is_looked_into_first(runs: Runs):
    small = unconfirmed(effect_percent=-6.0)
    large = unconfirmed(key=OS_KEY, effect_percent=-50.0)
    left = iter((100.0, 0.0))
    found, ids = runs.confirmer(left_s=lambda: next(left)).confirm([small, large])
    assert {one.key.variant: one.status for one in found} == {"os": "confirmed", "es": "unconfirmed"}
    assert len(ids) == 1
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
    (one,), _ = runs.confirmer(margins=margins).confirm([unconfirmed()])
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
    (one,), _ = Runs(tmp_path, 1.08, forks=5).confirmer().confirm([unconfirmed()])
    assert one.status == "unconfirmed"
    assert one.confirmation is not None
    assert "5 + 5 forks" in one.reason


def test_an_engine_of_which_nothing_changed_takes_no_run(runs: Runs):
    confirmer = runs.confirmer()
    same = msgspec.structs.replace(confirmer.tonight, variants=confirmer.nights[0].variants)
    found, ids = runs.confirmer(tonight=same).confirm([unconfirmed()])
    assert (statuses(found), ids, runs.plans) == (["same engine"], [], [])


def test_without_an_earlier_night_nothing_can_be_confirmed(runs: Runs):
    found, ids = runs.confirmer().confirm([unconfirmed(last_good="")])
    assert (statuses(found), ids) == (["unconfirmed"], [])


def test_a_run_that_fails_is_told_and_one_that_is_interrupted_ends_the_night(runs: Runs):
    runs.fails = BenchctlError("the archive is gone")
    (one,), _ = runs.confirmer().confirm([unconfirmed()])
    assert (one.status, one.reason) == ("unconfirmed", "the confirming run failed: the archive is gone")
    runs.fails = BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED)
    with pytest.raises(BenchctlError, match="interrupted"):
        runs.confirmer().confirm([unconfirmed()])


def test_a_pair_is_pinned_where_its_versions_do_not_say_what_it_is():
    good, tonight = variant(distribution="build.zip"), variant(distribution="build.zip", jdk="17")
    good = msgspec.structs.replace(
        good, pinned=msgspec.structs.replace(good.spec, distribution="/engines/a", jdk="/jdks/21")
    )
    tonight = msgspec.structs.replace(
        tonight, pinned=msgspec.structs.replace(tonight.spec, distribution="/engines/b", jdk="/jdks/17")
    )
    one, other = pinned_pair(good, tonight)
    assert (one.name, one.distribution, one.jdk) == (LAST_GOOD, "/engines/a", "/jdks/21")
    assert (other.name, other.distribution, other.jdk) == (TONIGHT, "/engines/b", "/jdks/17")


@pytest.mark.parametrize("jdk", [None, BUNDLED])
def test_a_pair_of_the_makers_distributions_keeps_their_runtimes(jdk: str | None):
    good, tonight = (
        msgspec.structs.replace(
            night, pinned=msgspec.structs.replace(night.spec, distribution="/engines/a", jdk="/engines/a/jdk")
        )
        for night in (variant(distribution="official", jdk=jdk), variant(distribution="official", jdk=jdk))
    )
    for spec in pinned_pair(good, tonight):
        assert (spec.distribution, spec.jdk, spec.java) == ("official", jdk, BUNDLED)
