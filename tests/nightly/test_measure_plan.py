"""A suite into a night's plan."""

import re
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.nightly.measure import night_seed, plan_options, resolve
from benchctl.nightly.model import NightVariant
from benchctl.nightly.suite import Suite, load_suite
from benchctl.results.plan import VariantSpec
from benchctl.run.plan import plan_run
from benchctl.spec import MAX_SEED

TEXT = """
variants: [es@latest, 'mine=es@9.1.0,distribution:build']
canary: old=es@8.11.0
challenges: [range-only, big5rangedebug]
warmup-challenges: [warmup]
restart: never
params: {iterations: 30, range-only.iterations: 7}
include-tasks: range
exclude-tasks: desc_sort_timestamp
docs: 20k
corpus-seed: 3
heap: 512m
segments: 2
ingest-clients: 1
index-builds: 2
workers: 3
forks: 4
on-error: abort
assertions: false
"""


@pytest.fixture(name="suite")
def _suite(tmp_path: Path) -> Suite:
    path = tmp_path / "search.yml"
    path.write_text(TEXT, encoding="utf-8")
    return load_suite(path)


def resolved(suite: Suite) -> tuple[NightVariant, ...]:
    return resolve(suite, newest=lambda _: "9.9.9")


def test_variants_are_called_as_in_the_suite_whatever_version_that_is(suite: Suite, tmp_path: Path):
    assert resolved(suite) == (
        NightVariant("es@latest", "watched", "es@latest", VariantSpec("es@latest", "elasticsearch", "9.9.9")),
        NightVariant(
            "mine",
            "watched",
            f"mine=es@9.1.0,distribution:{tmp_path / 'build'}",
            VariantSpec("mine", "elasticsearch", "9.1.0", distribution=str(tmp_path / "build")),
        ),
        NightVariant("old", "canary", "old=es@8.11.0", VariantSpec("old", "elasticsearch", "8.11.0")),
    )


def test_all_of_the_suite_reaches_the_plan(suite: Suite, tmp_path: Path):
    specs = tuple(one.spec for one in resolved(suite))
    plan, _ = plan_run(plan_options(suite, 42, specs, Home(tmp_path)))
    assert plan.variants == specs
    assert [challenge.name for challenge in plan.schedules] == ["range-only", "big5rangedebug"]
    assert [challenge.name for challenge in plan.warmup_challenges] == ["warmup"]
    assert [[(task.label, task.iterations) for task in one.schedule] for one in plan.schedules] == [
        [("range", 7)],
        [("range", 30)],
    ]
    assert (plan.include_tasks, plan.exclude_tasks) == ("range", "desc_sort_timestamp")
    assert plan.restart == "never"
    assert plan.heap_mb == 512
    assert (plan.corpus.documents, plan.corpus.seed) == (20_000, 3)
    assert (plan.segments, plan.ingest_clients, plan.index_builds) == (2, 1, 2)
    assert (plan.workers, plan.forks) == (3, 4)
    assert (plan.on_error, plan.assertions) == ("abort", False)
    assert plan.seed == night_seed(suite, 42)
    assert plan.stop is None


def test_what_does_not_fit_the_track_is_refused_before_anything_starts(tmp_path: Path):
    path = tmp_path / "s.yml"
    path.write_text("variants: [es]\nchallenges: [nowhere.json]\n", encoding="utf-8")
    suite = load_suite(path)
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "nowhere.json"))):
        plan_run(plan_options(suite, 1, tuple(one.spec for one in resolved(suite)), Home(tmp_path)))


def test_cpus_that_cannot_be_had_are_refused(tmp_path: Path):
    path = tmp_path / "s.yml"
    path.write_text("variants: [es]\nchallenges: [test]\npin: node=1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--pin"):
        plan_options(load_suite(path), 1, (), Home(tmp_path))


def test_every_night_has_another_seed_and_always_the_same(suite: Suite):
    seeds = [night_seed(suite, night) for night in range(1, 1001)]
    assert seeds == [night_seed(suite, night) for night in range(1, 1001)]
    assert len(set(seeds)) == 1000
    assert all(0 <= seed < MAX_SEED for seed in seeds)


def test_a_seed_of_the_suites_own_is_that_of_all_nights(tmp_path: Path):
    path = tmp_path / "s.yml"
    path.write_text("variants: [es]\nchallenges: [test]\nseed: 0\n", encoding="utf-8")
    suite = load_suite(path)
    assert {night_seed(suite, night) for night in range(1, 9)} == {0}
