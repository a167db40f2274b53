"""`benchctl inlining` on runs whose logs were made by hand."""

import json
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.results.model import BootRecord
from benchctl.results.store import RunFolder
from builders import make_fork, make_record, make_summary
from jvm_logs import INLINED_VISIT, VIRTUAL_VISIT, visits

BOOT = BootRecord((0,), 5.0, 0.1, 1.0, 10, 10, ("java",), "")
OTHER_VISIT = (
    "                              @ 60   org.apache.lucene.Other::run (9 bytes)   inline (hot)",
    "                                @ 1   org.apache.lucene.Another::visit (9 bytes)   accessor",
)
READ = "DocIdsWriter::readInts24"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four forks of each variant; every second one of `os` has the call inlined, and is faster."""
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path))
    folder = RunFolder(tmp_path / "runs" / "20260101-000000-c")
    forks = []
    for block in range(4):
        for variant in ("es", "os"):
            inlined = variant == "es" or block % 2 == 1
            log = folder.evidence_folder(variant, block, 0) / "jvm.log.zst"
            log.parent.mkdir(parents=True)
            data = visits(*(INLINED_VISIT if inlined else VIRTUAL_VISIT), *OTHER_VISIT)
            log.write_bytes(zstandard.ZstdCompressor().compress(data))
            summary = make_summary("range", (10.0 if inlined else 20.0) + block)
            forks.append(make_fork(variant, block, summary, boots=(BOOT,), evidence=("inlining",)))
    folder.save(make_record(folder.path.name, status="complete", forks=tuple(forks)))
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["inlining", *map(str, arguments)])


def test_a_methods_tree_is_printed():
    done = call("latest", "--method", READ, "--variant", "os", "--block", 1)
    assert done.exit_code == 0, done.output
    assert "os, block 1, boot 0: org.apache.lucene.util.bkd.DocIdsWriter::readInts24" in done.stdout
    assert "@ 35  PointRangeQuery$1$1::visit (9 bytes)  inline (hot)" in done.stdout


def test_the_diff_shows_inlined_against_virtual():
    done = call("20260101", "--diff", "es", "os")
    assert done.exit_code == 0, done.output
    assert "visit in DocIdsWriter::readInts24, bci 35: 1,000 calls" in done.stdout
    assert "  os: PointValues$IntersectVisitor::visit  virtual call" in done.stdout
    again = call("20260101", "--diff", "es", "os", "--method", "BKDPointTree::addAll")
    assert "\nnone\n" in again.stdout
    json_of_block_1 = json.loads(
        call("latest", "--diff", "es", "os", "--block", 1, "--format", "json").stdout
    )
    assert (json_of_block_1["differences"], json_of_block_1["matched"]) == ([], 3)


def test_forks_are_grouped_by_the_fate_of_a_call():
    done = call("latest", "--group", READ, "--callee", "visit", "--task", "range", "--variant", "os")
    assert done.exit_code == 0, done.output
    assert "range of os, by what became of visit in DocIdsWriter::readInts24" in done.stdout
    assert "\nPointValues$IntersectVisitor::visit virtual call: 2 forks (block 0, 2)" in done.stdout
    assert (
        "NumericComparator$NumericLeafComparator$1::visit inline (hot): 2 forks (block 1, 3)" in done.stdout
    )
    assert "second group over first" in done.stdout
    nothing = call("latest", "--group", READ, "--callee", "nobody", "--task", "range", "--variant", "os")
    assert "not compiled by C2: 4 forks" in nothing.stdout


def test_a_log_file_needs_no_run(tmp_path: Path):
    for name, lines in (("a.log", INLINED_VISIT), ("b.log", VIRTUAL_VISIT)):
        (tmp_path / name).write_bytes(visits(*lines))
    alone = call(tmp_path / "a.log", "--method", READ, "--format", "json")
    assert json.loads(alone.stdout)["log"] == str(tmp_path / "a.log")
    both = call("latest", "--diff", tmp_path / "a.log", tmp_path / "b.log")
    assert "  b.log: PointValues$IntersectVisitor::visit  virtual call" in both.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what is asked for"),
        (("--method", READ), "name one of the variants: es, os"),
        (("--method", "readInts25", "--variant", "es"), "near are: DocIdsWriter::readInts24"),
        (("--diff", "es", "new"), "new has no inlining log"),
        (("--group", READ, "--variant", "es"), "--group needs --callee and --task"),
        (
            ("--group", READ, "--callee", "visit", "--task", "rnge", "--variant", "es"),
            "did you mean 'range'?",
        ),
    ],
)
def test_what_cannot_be_answered_is_said(arguments: tuple[str, ...], message: str):
    done = call("latest", *arguments)
    assert done.exit_code != 0
    assert message in f"{done.output}{done.exception} {getattr(done.exception, 'hint', '')}"


def test_a_file_has_no_forks_to_group(tmp_path: Path):
    (tmp_path / "a.log").write_bytes(visits())
    done = call(tmp_path / "a.log", "--group", READ, "--callee", "visit", "--task", "range")
    assert "a log file alone has no forks" in f"{done.output}{done.exception}"
