"""Where a night's time went, from the profiles of its forks for evidence."""

from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchctl.evidence.profile import PROFILE_NAME, Sample, profile_of
from benchctl.nightly.measure import night_profiles, profile_shifts
from benchctl.nightly.model import Shift
from benchctl.nightly.text import shift_text
from benchctl.results.model import BootRecord, ForkRecord, RunRecord
from benchctl.results.plan import EvidenceSpec
from benchctl.results.samples import empty_columns
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_fork, make_plan, make_record
from nightly.laboratory import World

S = 10**9
BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 3, 3, (), "boots/x", origin_ns=0)


def forked(folder: RunFolder, variant: str, methods: dict[str, int]) -> ForkRecord:
    """A fork for evidence: `range` is measured in second 1, and so many samples show each method."""
    names = list(Counter(methods).elements())
    # One more outside the task.
    sampled = [Sample(S + place, "t", ("a.Root.run:1", f"{name}:7")) for place, name in enumerate(names)]
    sampled.append(Sample(5 * S, "t", ("a.Other.idle:1",)))
    target = folder.evidence_folder(variant, 1, 0)
    target.mkdir(parents=True)
    (target / PROFILE_NAME).write_bytes(msgspec.json.encode(profile_of(sampled)))
    columns = empty_columns(1)
    columns["start_ns"] = np.array([S], np.int64)
    columns["end_ns"] = np.array([2 * S], np.int64)
    return make_fork(
        variant, 1, boots=(BOOT,), evidence=("profile",), samples=folder.write_samples([columns], variant, 1)
    )


def of_run(folder: RunFolder, es: dict[str, int], os: dict[str, int]) -> RunRecord:
    plan = make_plan(
        variants=(ES, OS),
        schedules=(Challenge("c", (Task("range"),)),),
        forks=1,
        evidence=EvidenceSpec(("profile",), 1),
    )
    forks = (forked(folder, "es", es), forked(folder, "os", os))
    return make_record(plan=plan, forks=forks)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_a_night_keeps_what_ran_most_in_every_task(folder: RunFolder):
    run = of_run(folder, {"a.A.hot": 3, "a.B.warm": 1}, {f"m.M.{number}": 1 for number in range(30)})
    es, os = night_profiles(folder, run)
    assert (es.variant, es.challenge, es.task, es.samples) == ("es", "c", "range", 4)
    assert es.methods == (("a.A.hot", 0.75), ("a.B.warm", 0.25))
    assert (os.samples, len(os.methods)) == (30, 10)


def test_a_run_without_profiles_has_none(folder: RunFolder):
    run = of_run(folder, {"a.A.hot": 3}, {})
    plain = msgspec.structs.replace(run, plan=msgspec.structs.replace(run.plan, evidence=None))
    assert night_profiles(folder, plain) == ()
    (folder.evidence_folder("es", 1, 0) / PROFILE_NAME).write_text("torn")
    assert night_profiles(folder, run) == ()


def test_shifts_are_what_sampling_does_not_explain_the_largest_first(folder: RunFolder):
    run = of_run(
        folder,
        {"a.A.hot": 700, "a.B.warm": 200, "a.C.same": 100},
        {"a.A.hot": 300, "a.B.warm": 200, "a.C.same": 105, "a.New.slow": 395},
    )
    assert profile_shifts(folder, run, (0, 0), "es", "os") == (
        Shift("a.A.hot", 0.7, 0.3),
        Shift("a.New.slow", 0.0, 0.395),
    )
    assert shift_text(Shift("org.a.New.slow", 0.0, 0.395)) == "New.slow 0.0 → 39.5%"


def test_few_samples_rank_nothing(folder: RunFolder):
    run = of_run(folder, {"a.A.hot": 700}, {"a.New.slow": 99})
    assert profile_shifts(folder, run, (0, 0), "es", "os") == ()


def test_a_night_and_its_confirmation_carry_the_evidence_that_the_suite_asks_for(tmp_path: Path):
    world = World(tmp_path, mean_ms=lambda spec: 20.0 if spec.jvm_flags else 10.0)
    for flags in ("", "", "-XX:-Inline"):
        ended = world.night(flags=flags, more="evidence: {kinds: [profile]}")
    assert ended.raised
    assert [run.plan.evidence for run in world.runs] == [EvidenceSpec(("profile",), 1)] * 4
