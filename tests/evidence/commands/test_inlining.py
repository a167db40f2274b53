"""`benchctl explain RUN inlining` on runs whose logs were made by hand."""

import json
from pathlib import Path

import msgspec
import pytest
import zstandard
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.results.model import BootRecord
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from evidence.made_histories import INLINED, logs, recorded
from jvm_logs import INLINED_VISIT, INTS, SORT_VISITOR, VIRTUAL_VISIT, head, visits

BOOT = BootRecord((0,), 5.0, 0.1, 1.0, 10, 10, ("java",), "")
OTHER_VISIT = (
    "                              @ 60   org.apache.lucene.Other::run (9 bytes)   inline (hot)",
    "                                @ 1   org.apache.lucene.Another::visit (9 bytes)   accessor",
)
READ = "DocIdsWriter::readInts24"


def logged(runs: Path) -> None:
    """Four forks of each variant; every second one of `os` has the call inlined, and is faster."""
    folder = RunFolder(runs / "20260101-000000-c")
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


@pytest.fixture(autouse=True)
def logged_run(home: Path) -> None:
    logged(home / "runs")


def call(run: object, *arguments: object) -> Result:
    return CliRunner().invoke(root, ["explain", str(run), "inlining", *map(str, arguments)])


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
    assert (
        "\nvirtual call: PointValues$IntersectVisitor::visit virtual call: 2 forks (block 0, 2)"
        in done.stdout
    )
    assert (
        "NumericComparator$NumericLeafComparator$1::visit inline (hot): 2 forks (block 1, 3)" in done.stdout
    )
    assert "second group over first" in done.stdout
    assert "\ninlined: PointRangeQuery$1$1::visit inline (hot); " in done.stdout
    nothing = call("latest", "--group", READ, "--callee", "nobody", "--task", "range", "--variant", "os")
    assert "not compiled by C2: 4 forks" in nothing.stdout


def test_a_task_is_judged_by_the_node_that_it_ran_on(home: Path):
    folder = RunFolder(home / "runs" / "20260102-000000-c")
    plan = make_plan(schedules=(Challenge("c", (Task("sort"), Task("range"))),), restart="task")
    forks = []
    for block in range(3):
        for boot, visit in enumerate((INLINED_VISIT, VIRTUAL_VISIT)):
            log = folder.evidence_folder("es", block, boot) / "jvm.log.zst"
            log.parent.mkdir(parents=True)
            log.write_bytes(zstandard.ZstdCompressor().compress(visits(*visit, *OTHER_VISIT)))
        summaries = (make_summary("sort", 1.0), msgspec.structs.replace(make_summary("range", 1.0), task=1))
        forks.append(make_fork("es", block, *summaries, boots=(BOOT, BOOT), evidence=("inlining",)))
    folder.save(make_record(folder.path.name, status="complete", plan=plan, forks=tuple(forks)))
    for task, fate in (("sort", "inlined: "), ("range", "virtual call: ")):
        done = call("20260102", "--group", READ, "--callee", "visit", "--task", task, "--variant", "es")
        assert done.exit_code == 0, done.output
        assert f"\n{fate}" in done.stdout


def test_a_call_whose_code_is_there_for_some_receivers_only_is_told_in_groups_and_differences(home: Path):
    """C2 inlined the one receiver that had nearly all calls, and dispatches the others without a word."""
    folder = RunFolder(home / "runs" / "20260101-000000-c")
    log = folder.evidence_folder("es", 2, 0) / "jvm.log.zst"
    major = (
        f"{' ' * 30}@ 35   {SORT_VISITOR}::visit (21 bytes)   inline (hot)",
        f"{' ' * 30} \\-> TypeProfile (950/1000 counts) = {SORT_VISITOR.replace('.', '/')}",
    )
    log.write_bytes(zstandard.ZstdCompressor().compress(visits(*major)))
    groups = call("latest", "--group", READ, "--callee", "visit", "--task", "range", "--variant", "es").stdout
    assert "\ninlined: PointRangeQuery$1$1::visit inline (hot); " in groups
    told = "inlined in part: NumericComparator$NumericLeafComparator$1::visit inline (hot): 1 fork (block 2)"
    assert f"\n{told}" in groups
    diff = call("latest", "--diff", "es", "os", "--block", 2)
    assert "\n      inlined in part: calls of some receivers are inlined, those of others" in diff.stdout
    site = json.loads(call("latest", "--diff", "es", "os", "--block", 2, "--format", "json").stdout)
    (visit,) = site["differences"]
    assert (visit["es"]["found"], visit["os"]["found"]) == ("partly", "virtual")
    assert "inlined in part" not in call("latest", "--diff", "es", "os", "--block", 0).stdout


def test_forks_whose_compilation_was_given_up_since_are_named(home: Path):
    folder = RunFolder(home / "runs" / "20260101-000000-c")
    log = folder.evidence_folder("os", 2, 0) / "jvm.log.zst"
    gone = head(9000, 77, 4, INTS, 198) + "   made not entrant"
    log.write_bytes(zstandard.ZstdCompressor().compress(visits(*VIRTUAL_VISIT, gone)))
    done = call("latest", "--group", READ, "--callee", "visit", "--task", "range", "--variant", "os")
    assert "block 2: that compilation was given up at 9.00 s" in done.stdout
    assert done.stdout.count("given up") == 1


def test_without_options_it_shows_what_depends_on_what_ran_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "120")
    folder = RunFolder(home / "runs" / "20260102-000000-c")
    logs(folder)
    record = msgspec.structs.replace(recorded(folder, "es", "os"), id=folder.path.name)
    folder.save(record)
    done = call("20260102")
    assert done.exit_code == 0, done.output
    assert "visit in DocIdsWriter::readInts24 x 2" in done.stdout
    (pair,) = json.loads(call("20260102", "--variant", "os", "--format", "json").stdout)["histories"]
    assert pair["sites"][0]["outcomes"] == [INLINED, "virtual call"]
    assert "--level cannot be used" in str(call("20260102", "--level", "4").exception)
    assert "es has no inlining log" in str(call("20260102", "--variant", "es").exception)
    shown = CliRunner().invoke(root, ["show", "20260102", "-v"])
    assert "visit in DocIdsWriter::readInts24 x 2" in " ".join(shown.stdout.split())


def test_a_log_file_needs_no_run(tmp_path: Path):
    for name, lines in (("a.log", INLINED_VISIT), ("b.log", VIRTUAL_VISIT)):
        (tmp_path / name).write_bytes(visits(*lines))
    alone = call(tmp_path / "a.log", "--method", READ, "--format", "json")
    assert json.loads(alone.stdout)["log"] == str(tmp_path / "a.log")
    both = call(tmp_path / "a.log", "--diff", tmp_path / "a.log", tmp_path / "b.log")
    assert "  b.log: PointValues$IntersectVisitor::visit  virtual call" in both.stdout
    mixed = call(tmp_path / "a.log", "--diff", tmp_path / "a.log", "os")
    assert isinstance(mixed.exception, UsageError)
    assert "inlined" in call("latest", "--diff", tmp_path / "a.log", "os").stdout


def test_two_log_files_of_one_name_are_told_apart(tmp_path: Path):
    paths = [tmp_path / side / "jvm.log" for side in ("a", "b")]
    for path, lines in zip(paths, (INLINED_VISIT, VIRTUAL_VISIT), strict=True):
        path.parent.mkdir()
        path.write_bytes(visits(*lines))
    document = json.loads(call("latest", "--diff", *paths, "--format", "json").stdout)
    assert set(document["only"]) == set(map(str, paths))
    assert {str(path) for path in paths} <= document["differences"][0].keys()


def test_a_file_has_no_forks_to_group(tmp_path: Path):
    (tmp_path / "a.log").write_bytes(visits())
    done = call(tmp_path / "a.log", "--group", READ, "--callee", "visit", "--task", "range")
    assert "a log file alone has no forks" in f"{done.output}{done.exception}"
    done = call(tmp_path / "a.log", "--method", READ, "--block", 1)
    assert "a log file alone has no variants, blocks or boots" in str(done.exception)


def test_a_run_of_histories_without_logs_lacks_these_and_no_option(home: Path):
    folder = RunFolder(home / "runs" / "20260103-000000-h")
    folder.save(msgspec.structs.replace(recorded(folder, "es", "os"), id=folder.path.name))
    done = call("20260103")
    assert isinstance(done.exception, UsageError)
    assert "no inlining log" in done.exception.message
    assert "--evidence inlining" in done.exception.hint
