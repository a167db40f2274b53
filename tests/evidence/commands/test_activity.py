"""`benchctl explain` of a stored run."""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.evidence.files import (
    GC_DTYPES,
    GC_FILE,
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    OS_FILE,
    stacked_columns,
    write_evidence,
)
from benchctl.results.model import BootRecord, NodeFate, NodeRecord
from benchctl.results.plan import EvidenceSpec, MicroSpec, NodeSpec
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record, make_summary
from stored import ROWS, samples, stored

S = 10**9
BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 0, 0, ("-Xlog:deoptimization=debug",), "", origin_ns=-5 * S)
# Measured are the seconds 1 to 3 of the samples: 6 to 8 of the node.
JIT = [
    (7 * S, "compiled", 1, 4, False, "a::b", ""),
    (round(6.1 * S), "compiled", 2, 3, False, "a::c", ""),
    (round(7.9 * S), "deoptimised", 1, 4, False, "a::b", "class_check"),
    (2 * S, "unread", -1, -1, False, "", "odd"),
]
GC = [(7 * S, "pause", "Young", 5 * 10**6, -1, 10, 5), (7 * S, "safepoint", "G1", 6 * 10**6, 10**6, -1, -1)]
OS = [(0, *[0.0] * 8, 9.0, 2e6), (10 * S, *[10.0] * 8, 9.0, 2e6)]


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def evident(runs: Path) -> Path:
    """Two plain forks per variant, and one that carries evidence."""
    spec = EvidenceSpec(("gc", "inlining", "jit", "os"), 1)
    kept = stored(runs, "r1", make_record("r1", plan=make_plan(evidence=spec), status="complete"))
    forks = list(kept.record.forks)
    for variant in ("es", "os"):
        path = kept.folder.write_samples([samples(10**6)], variant, 2)
        summary = make_summary("range", 3.0, samples=ROWS - 1)
        forks.append(make_fork(variant, 2, summary, samples=path, boots=(BOOT,), evidence=spec.kinds))
        folder = kept.folder.evidence_folder(variant, 2, 0)
        folder.mkdir(parents=True)
        for rows, dtypes, name in (
            (JIT, JIT_DTYPES, JIT_FILE),
            (GC, GC_DTYPES, GC_FILE),
            (OS, OS_DTYPES, OS_FILE),
        ):
            write_evidence(stacked_columns(rows, dtypes), dtypes, folder / name)
    kept.folder.save(msgspec.structs.replace(kept.record, forks=tuple(forks)))
    return kept.folder.path


@pytest.fixture
def run(home: Path) -> Path:
    return evident(home / "runs")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(one) for one in arguments])


def test_a_cluster_has_a_line_for_each_node_and_what_went_is_said(run: Path):
    folder = RunFolder(run)
    record = folder.load()
    names = ("node-1", "node-2", "node-3")
    nodes = tuple(NodeRecord(name, 1.0, (), "", -5 * S) for name in names)
    boot = msgspec.structs.replace(BOOT, node_starts=nodes, fates=(NodeFate(S, "node-3", "killed"),))
    forks = [msgspec.structs.replace(one, boots=(boot,)) if one.block == 2 else one for one in record.forks]
    for variant in ("es", "os"):
        for name in names:
            shutil.copytree(
                folder.evidence_folder(variant, 2, 0), folder.evidence_folder(variant, 2, 0, name),
                ignore=shutil.ignore_patterns("node-*"),
            )  # fmt: skip
    spec = tuple(NodeSpec(name) for name in names)
    variants = tuple(msgspec.structs.replace(one, nodes=spec) for one in record.plan.variants)
    plan = msgspec.structs.replace(record.plan, variants=variants)
    folder.save(msgspec.structs.replace(record, plan=plan, forks=tuple(forks)))
    shown = call("explain", run, "os").stdout
    assert "fork 2 of es: node-3 was killed, and has no evidence" in shown
    assert [line.split("  ")[0] for line in shown.splitlines() if line.startswith("range")] == [
        "range, node-1",
        "range, node-2",
    ] * 3
    document = json.loads(call("explain", run, "gc", "--node", "node-2", "--format", "json").stdout)
    assert [one["node"] for one in document["tasks"]] == ["node-2"]
    for kind in ("jit", "profile"):
        refused = call("explain", run, kind, "--node", "node-9").exception
        assert isinstance(refused, UsageError)
        assert "has no node 'node-9'\n  hint: it has: node-1, node-2, node-3" in str(refused)


def test_microbenchmarks_lack_no_evidence_of_nodes(run: Path):
    folder = RunFolder(run)
    record = folder.load()
    plan = msgspec.structs.replace(record.plan, micro=MicroSpec("/B.java", ""))
    folder.save(msgspec.structs.replace(record, plan=plan))
    assert "collect the rest" not in call("explain", run).stderr
    plain = tuple(one for one in record.forks if not one.evidence)
    folder.save(msgspec.structs.replace(record, plan=plan, forks=plain))
    assert "benchctl micro run /B.java" in (said := call("explain", run).stderr)
    assert "--evidence inlining --" in said


def test_samples_that_are_gone_are_said(run: Path):
    (run / "forks" / "002-es.parquet").unlink()
    done = call("explain", run, "os")
    assert done.exit_code == 0, done.output
    assert "the samples of fork 2 of es are not there" in done.stdout


def test_plain_forks_alone_are_compared_and_the_cost_is_told(run: Path):
    shown = call("show", run, "-v")
    assert shown.exit_code == 0, shown.output
    assert "evidence: gc, inlining, jit, os, in 1 further fork of every variant" in shown.stdout
    assert "block 2: es, os, for evidence alone" in shown.stdout
    assert "geometric means over forks (es 2, os 2)" in shown.stdout
    title = "What evidence (gc, inlining, jit, os) cost: mean service time of 1 fork with it over plain ones"
    assert title in shown.stdout
    cost = json.loads(call("show", run, "--format", "json").stdout)["evidence"]
    assert [one["percent"] for one in cost["tasks"]] == pytest.approx(
        [100 * (3 / np.sqrt(1 * 3) - 1), 100 * (3 / np.sqrt(2 * 4) - 1)]
    )
    asked = call("sql", "select block, compared, evidence from forks where variant = 'es' order by block")
    assert [line.split()[:2] for line in asked.stdout.splitlines()[2:]] == [
        ["0", "True"],
        ["1", "True"],
        ["2", "False"],
    ]


def test_a_page_draws_the_compilers_beside_the_requests_of_forks_that_carried_evidence(run: Path):
    page = call("show", run, "--format", "html")
    assert page.exit_code == 0, page.output
    assert "Service time and the JIT compilers" in page.stdout
    assert "es, fork 2" in page.stdout
    # Three requests make no course of their own.
    assert "Service time over the course of each fork" not in page.stdout


def test_what_of_evidence_cannot_be_read_is_not_drawn(run: Path):
    for path in run.glob("evidence/*/boot-0/jit.parquet"):
        path.write_bytes(b"PAR1")
    page = call("show", run, "--format", "html")
    assert page.exit_code == 0, page.output
    assert "Service time and the JIT compilers" not in page.stdout


@pytest.mark.parametrize("asked", [[], ["jit"], ["gc", "--format", "json"], ["inlining", "--method", "x"]])
def test_a_trial_that_has_not_ended_is_told_with_its_evidence(tmp_path: Path, asked: list[str]):
    folder = RunFolder(evident(tmp_path))
    record = folder.load()
    plan = msgspec.structs.replace(record.plan, test_mode=True)
    folder.save(msgspec.structs.replace(record, plan=plan, status="interrupted"))
    done = CliRunner().invoke(root, ["explain", str(folder.path), *asked])
    assert "note: run r1 was a trial (--test-mode)" in done.stderr
    assert "note: run r1 is unfinished (interrupted)" in done.stderr
    assert "benchctl resume r1" in done.stderr
