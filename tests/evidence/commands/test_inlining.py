"""`benchctl explain RUN inlining` on runs whose logs were made by hand."""

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest
import zstandard
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.results.model import BootRecord
from benchctl.results.store import RunFolder
from builders import make_fork, make_record, make_summary
from evidence.made_histories import INLINED, logs, recorded
from jvm_logs import INLINED_VISIT, SORT_VISITOR, VIRTUAL_VISIT, visits

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


def shown(run: object, *arguments: object) -> str:
    done = call(run, *arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def refused(run: object, *arguments: object) -> str:
    done = call(run, *arguments)
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


def test_the_diff_shows_inlined_against_virtual(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    whole = shown("20260101", "--diff", "es", "os")
    both = "NumericComparator$NumericLeafComparator$1, PointRangeQuery$1$1"
    assert f"visit in DocIdsWriter::readInts24 1,000 es inlined: {both} os virtual call" in whole
    assert "3 call sites" in whole
    assert "virtual call" not in shown("20260101", "--diff", "es", "os", "--method", "BKDPointTree::addAll")
    of_block_1 = json.loads(shown("latest", "--diff", "es", "os", "--block", 1, "--format", "json"))
    assert (of_block_1["differences"], of_block_1["matched"]) == ([], 3)


def test_programs_get_both_sides_of_each_site():
    document = json.loads(shown("20260101", "--diff", "es", "os", "--format", "json"))
    (only,) = document["differences"]
    assert document["sides"] == ["es", "os"]
    assert only["moved"] is False
    assert (only["baseline"]["found"], only["contender"]["found"]) == ("inlined", "virtual")
    assert [outcome for _, outcome, _ in only["contender"]["callees"]] == ["virtual"]
    assert [seen["count"] for seen in only["baseline"]["receivers"]] == [600, 400]
    assert (document["baseline_only"], document["contender_only"]) == (0, 0)


def test_programs_get_the_whole_tree():
    document = json.loads(shown("latest", "--method", READ, "--variant", "es", "--format", "json"))
    assert document["compilation"]["method"].endswith(READ)
    calls = document["tree"]["calls"]
    assert [call["callee"].rpartition("::")[2] for call in calls] == ["visit", "visit", "run", "visit"]
    assert (calls[1]["bci"], calls[1]["outcome"], calls[3]["parent"]) == (35, "inlined", 2)
    assert [seen["count"] for seen in calls[1]["receivers"]] == [400, 600]


def test_a_call_whose_code_is_there_for_some_receivers_only_is_told(home: Path):
    """C2 inlined the one receiver that had nearly all calls, and dispatches the others without a word."""
    folder = RunFolder(home / "runs" / "20260101-000000-c")
    log = folder.evidence_folder("es", 2, 0) / "jvm.log.zst"
    major = (
        f"{' ' * 30}@ 35   {SORT_VISITOR}::visit (21 bytes)   inline (hot)",
        f"{' ' * 30} \\-> TypeProfile (950/1000 counts) = {SORT_VISITOR.replace('.', '/')}",
    )
    log.write_bytes(zstandard.ZstdCompressor().compress(visits(*major)))
    site = json.loads(shown("latest", "--diff", "es", "os", "--block", 2, "--format", "json"))
    (visit,) = site["differences"]
    assert (visit["baseline"]["found"], visit["contender"]["found"]) == ("partly", "virtual")
    assert "inlined in part" in shown("latest", "--diff", "es", "os", "--block", 2)
    assert "inlined in part" not in shown("latest", "--diff", "es", "os", "--block", 0)


def test_without_options_it_shows_what_depends_on_what_ran_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "120")
    folder = RunFolder(home / "runs" / "20260102-000000-c")
    logs(folder)
    folder.save(msgspec.structs.replace(recorded(folder, "es", "os"), id=folder.path.name))
    assert "visit in DocIdsWriter::readInts24 x 2" in shown("20260102")
    (pair,) = json.loads(call("20260102", "--variant", "os", "--format", "json").stdout)["histories"]
    assert pair["sites"][0]["outcomes"] == [INLINED, "virtual call"]
    assert "os, block 0, boot 0" in shown("20260102", "--boot", "0")
    assert "no inlining log of that variant" in refused("20260102", "--variant", "es")
    report = CliRunner().invoke(root, ["show", "20260102", "-v"])
    assert "visit in DocIdsWriter::readInts24 x 2" in " ".join(report.stdout.split())


def test_a_log_file_needs_no_run(tmp_path: Path):
    for name, lines in (("a.log", INLINED_VISIT), ("b.log", VIRTUAL_VISIT)):
        (tmp_path / name).write_bytes(visits(*lines))
    alone = json.loads(shown(tmp_path / "a.log", "--method", READ, "--format", "json"))
    assert alone["log"] == str(tmp_path / "a.log")
    both = ("--diff", tmp_path / "a.log", tmp_path / "b.log", "--format", "json")
    for run in (tmp_path / "a.log", "latest"):
        document = json.loads(shown(run, *both))
        assert document["sides"] == document["logs"] == [str(tmp_path / name) for name in ("a.log", "b.log")]
        assert len(document["differences"]) == 1
    assert "inlined" in shown("latest", "--diff", tmp_path / "a.log", "os")
    assert "no inlining log of that variant" in refused(
        tmp_path / "a.log", "--diff", tmp_path / "a.log", "os"
    )
    (site,) = json.loads(shown(tmp_path / "b.log", "--format", "json"))["sites"]
    assert (site["found"], site["key"]["name"]) == ("virtual", "visit")
    assert json.loads(shown(tmp_path / "a.log", "--format", "json"))["sites"] == []


def test_the_command_that_the_list_prints_shows_how_the_first_two_variants_differ():
    listed = CliRunner().invoke(root, ["explain", "latest", "--format", "json"])
    (command,) = re.findall(r"benchctl explain [^\s\"]+ inlining", listed.stdout)
    program, *arguments = shlex.split(command)
    assert program == "benchctl"
    done = CliRunner().invoke(root, [*arguments, "--format", "json"])
    assert json.loads(done.stdout)["sides"] == ["es", "os"]
    assert len(json.loads(done.stdout)["differences"]) == 1
    assert "virtual call" in shown("latest", "--variant", "os")


def test_a_run_of_histories_without_logs_lacks_these_and_no_option(home: Path):
    folder = RunFolder(home / "runs" / "20260103-000000-h")
    folder.save(msgspec.structs.replace(recorded(folder, "es", "os"), id=folder.path.name))
    done = call("20260103")
    assert isinstance(done.exception, UsageError)
    assert "no inlining log" in done.exception.message
    assert "--evidence inlining" in done.exception.hint
