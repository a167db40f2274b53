"""`benchctl explain` without an explanation: what a run has, and how to collect more."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.results.model import BootRecord
from benchctl.results.plan import EvidenceSpec, MicroSpec
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record, make_summary
from stored import ROWS, samples, stored

BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 0, 0, (), "", origin_ns=-5 * 10**9)


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def evident(runs: Path) -> Path:
    """Two plain forks per variant, and one that carries evidence."""
    spec = EvidenceSpec(("inlining",), 1)
    kept = stored(runs, "r1", make_record("r1", plan=make_plan(evidence=spec), status="complete"))
    forks = list(kept.record.forks)
    for variant in ("es", "os"):
        path = kept.folder.write_samples([samples(10**6)], variant, 2)
        summary = make_summary("range", 3.0, samples=ROWS - 1)
        forks.append(make_fork(variant, 2, summary, samples=path, boots=(BOOT,), evidence=spec.kinds))
    kept.folder.save(msgspec.structs.replace(kept.record, forks=tuple(forks)))
    return kept.folder.path


@pytest.fixture
def run(home: Path) -> Path:
    return evident(home / "runs")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(one) for one in arguments])


def test_every_kind_is_listed_with_its_forks_and_what_is_missing_with_how_to_collect_it(run: Path):
    folder = RunFolder(run)
    record = folder.load()
    plan = msgspec.structs.replace(record.plan, words=("run", "--challenge", "c"))
    folder.save(msgspec.structs.replace(record, plan=plan))
    listed = call("explain", run, "--format", "json")
    assert json.loads(listed.stdout) == [
        {
            "evidence": "inlining",
            "variants and blocks": ["es 2", "os 2"],
            "command": "benchctl explain r1 inlining",
        },
        {"evidence": "profile", "variants and blocks": [], "command": None},
    ]
    assert "benchctl run --challenge c --evidence profile" in listed.stderr


def test_kinds_that_are_no_more_are_unknown(run: Path):
    for kind in ("jit", "gc", "os"):
        assert "No such command" in str(call("explain", run, kind).output)


def test_microbenchmarks_lack_no_evidence_of_nodes(run: Path):
    folder = RunFolder(run)
    record = folder.load()
    plan = msgspec.structs.replace(
        record.plan, micro=MicroSpec("/B.java", ""), words=("micro", "run", "B.java")
    )
    folder.save(msgspec.structs.replace(record, plan=plan))
    assert "collect what is missing" not in call("explain", run).stderr
    plain = tuple(one for one in record.forks if not one.evidence)
    folder.save(msgspec.structs.replace(record, plan=plan, forks=plain))
    assert "benchctl micro run B.java --evidence inlining" in call("explain", run).stderr


def test_plain_forks_alone_are_compared(run: Path):
    shown = call("show", run, "-v")
    assert shown.exit_code == 0, shown.output
    assert "evidence: inlining, in 1 further fork of every variant" in shown.stdout
    assert "block 2: es, os (only for evidence)" in shown.stdout
    assert "geometric means over forks (es 2, os 2)" in shown.stdout


@pytest.mark.parametrize("asked", [[], ["inlining", "--method", "x"], ["profile"]])
def test_a_trial_that_has_not_ended_is_told_with_its_evidence(tmp_path: Path, asked: list[str]):
    folder = RunFolder(evident(tmp_path))
    record = folder.load()
    plan = msgspec.structs.replace(record.plan, test_mode=True)
    folder.save(msgspec.structs.replace(record, plan=plan, status="interrupted"))
    done = CliRunner().invoke(root, ["explain", str(folder.path), *asked])
    assert "note: run r1 was a trial (--test-mode)" in done.stderr
    assert "note: run r1 is unfinished (interrupted)" in done.stderr
    assert f"benchctl resume {folder.path}" in done.stderr
