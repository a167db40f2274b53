"""Dry runs look at documents and clusters as a run does, and leave nothing behind."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asked import asked
from benchctl.cli.measuring import conclude
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.lock import host_lock
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.host import describe_host
from benchctl.run.plan import plan_run
from builders import make_fork, make_record, make_summary
from cli.conftest import Benchctl, Ended
from stub_cluster import stub_cluster

pytestmark = pytest.mark.usefixtures("maven")
MEASURED = ("run", "-n", "--challenge", "range-only")
SMALL = ("--variant", "es", "--heap", "256m")
DECLARED = {"source-file": "docs.json", "document-count": 7}


def test_a_dry_run_says_what_would_be_measured_and_leaves_nothing(home: Path, benchctl: Benchctl):
    dry = (*MEASURED, *SMALL, "--docs", "300k", "--forks", "3")
    with host_lock(wait=False, on_wait=print):  # nobody is disturbed
        held = benchctl(*dry)
        assert held.status == 0
        assert f"another benchctl is measuring on this host: process {os.getpid()} of user" in held.err
        assert held.out == (
            "would measure range-only with es, 3 forks each on 300,000 documents\n"
            "throttled: range to 2 requests/s (55 s a fork); as fast as nodes answer instead: "
            "--param target_throughput=0\n"
            "steps: fetch elasticsearch 8.11.0; generate 300,000 documents; index on elasticsearch 8.11.0; "
            "measure 3 forks\n"
            "total: about 4 min 08 s, downloads not counted\n"
        )
    assert "another benchctl" not in benchctl(*dry).err
    assert benchctl(*dry, "--variant", "es@9.9.9").status == ExitCode.USAGE
    nowhere = benchctl(*dry, "--runs", "/sys/kernel/runs")
    assert nowhere.status == ExitCode.FAILED
    assert "cannot keep runs in /sys/kernel/runs" in nowhere.err
    search = "redline -n --operation range --slo p90=50ms --clients 8 --page-cache cold --docs 300k"
    assert benchctl(*search.split(), *SMALL).out.startswith(
        "would measure redline-range with es, 3 forks each on 300,000 documents\n"
        "steps: fetch elasticsearch 8.11.0; "
    )
    assert not [path for name in ("run.json", "*.zip") for path in home.rglob(name)]


def test_a_dry_extension_says_how_much_is_added_and_changes_nothing(home: Path, benchctl: Benchctl):
    here, (plan, _) = describe_host(), plan_run(asked(forks=2, challenges=("range-only",)))
    forks = tuple(make_fork(name, block, wall_s=30.0) for block in range(2) for name in ("es", "os"))
    folder = RunFolder(home / "runs" / "one")
    folder.save(make_record("one", plan=plan, forks=forks, status="complete", environment=here))
    before = folder.record_path.read_bytes()
    with host_lock(wait=False, on_wait=print):
        more = benchctl("extend", "one", "--forks", "8", "-n")
        timed = benchctl("extend", "one", "--until-decided", "--budget", "20m", "-n")
        assert benchctl("resume", "one", "-n").out == "run one is complete\n"
    assert more.out == "run one: would measure 8 more forks of es and os, about 8 min 00 s (range-only)\n"
    assert timed.out.startswith("run one: would measure up to 48 more forks of es and os, up to 20 min 00 s")
    assert folder.record_path.read_bytes() == before
    moved = msgspec.structs.replace(folder.load(), environment=msgspec.structs.replace(here, cpus=99))
    folder.save(moved)
    assert benchctl("extend", "one", "-n").status == ExitCode.FAILED


def test_a_dry_run_looks_at_running_clusters_as_a_run_does(tmp_path: Path, benchctl: Benchctl):
    fills, targets = tmp_path / "fills.json", tmp_path / "targets.yml"
    schedule = [{"operation": {"operation-type": "create-index"}}, {"operation": "range", "iterations": 3}]
    fills.write_text(json.dumps({"name": "fills", "schedule": schedule}))

    with stub_cluster() as node:

        def dry(*words: object, entry: str = "") -> Ended:
            targets.write_text(f"prod: {{url: 'http://127.0.0.1:{node.port}', {entry}}}")
            return benchctl("run", "-n", "--targets", targets, *words)

        found = dry("--challenge", "range-only")
        assert found.status == ExitCode.OK
        assert f"prod: opensearch 2.11.0 at http://127.0.0.1:{node.port}; 1,000 documents" in found.out
        changing = dry("--challenge", fills)
        assert changing.status == ExitCode.USAGE
        assert "would change the cluster prod: operation 'create-index'" in changing.err
        assert "--allow-writes" in changing.err
        missing = {"error": {"type": "index_not_found_exception", "reason": "no such index [big5]"}}
        node.answers["GET", "/big5/_stats/docs"] = (404, missing)
        lacking = dry("--challenge", "range-only")
        assert lacking.status == ExitCode.FAILED
        assert "prod has no index 'big5'" in lacking.err
        filling = dry("--challenge", "range-only", "--docs", "5k", entry="fill: true")
        assert "its index would be created and filled with 5,000 documents" in filling.out
        node.answers["GET", "/big5/_mapping"] = (404, {})
        making = dry("--challenge", fills, "--allow-writes")
        assert "challenges would make big5 there, which is removed after every fork" in making.out
        assert all(method == "GET" for method, *_ in node.seen)


# Documents of a track of one's own.


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "docs.json").write_bytes(lines(7))
    return folder


def lines(count: int) -> bytes:
    return b"".join(b'{"id":%d}\n' % number for number in range(count))


def write_track(folder: Path, *files: dict[str, Any], indices: tuple[str, ...] = ("shop",)) -> None:
    search = {"name": "q", "operation-type": "search", "index": "shop", "body": {"size": 0}}
    track = {"indices": [{"name": name} for name in indices], "schedule": [{"operation": search}]}
    corpora = {"corpora": [{"name": "shop", "documents": list(files)}]} if files else {}
    (folder / "track.json").write_text(json.dumps({**track, **corpora}))


def dry(benchctl: Benchctl, folder: Path, *words: object) -> Ended:
    return benchctl("run", "-n", "--track-path", folder, *SMALL, *words)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"source-file": "gone.json", "document-count": 7}, "gone.json"),
        ({**DECLARED, "uncompressed-bytes": 9}, "63 bytes"),
        ({"source-file": "../shop/docs.json", "document-count": 7}, "../shop/docs.json"),
    ],
)
def test_documents_that_are_not_there_end_a_dry_run(
    file: dict[str, Any], said: str, shop: Path, benchctl: Benchctl
):
    write_track(shop, file)
    ended = dry(benchctl, shop)
    assert (ended.status, said in ended.err) == (ExitCode.USAGE, True)


def test_documents_are_those_that_the_track_declares_and_nothing_is_kept(
    shop: Path, home: Path, benchctl: Benchctl
):
    write_track(shop, DECLARED)
    assert "on 7 documents\n" in dry(benchctl, shop).out
    dry(benchctl, shop, "--corpus", shop / "docs.json", "--test-mode")
    assert not list(home.rglob(".files/*"))


def test_a_track_without_documents_says_which_it_gets(shop: Path, benchctl: Benchctl):
    write_track(shop)
    (shop / "one.json").write_bytes(lines(1))
    assert "those of big5 are generated" in dry(benchctl, shop, "--docs", "1000").out
    given = dry(benchctl, shop, "--corpus", shop / "one.json")
    assert "big5" not in given.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "forks for 3m, at least 6 and at most 50 per variant"),
        (("--forks", "4", "--budget", "30m"), "forks for 30m, at most 4 per variant"),
    ],
)
def test_a_length_by_time_says_how_many_forks_there_are_at_most(
    words: tuple[str, ...], said: str, shop: Path, benchctl: Benchctl
):
    write_track(shop, DECLARED)
    assert said in dry(benchctl, shop, *words).out


def test_what_is_to_be_fetched_is_told(shop: Path, benchctl: Benchctl):
    file = {"source-file": "far.json.bz2", "document-count": 9, "compressed-bytes": 3 * 10**9}
    write_track(shop, {**file, "base-url": "https://me:pw@example.org/c/"})
    said = dry(benchctl, shop).out
    assert "fetch https://example.org/c/far.json.bz2 (3.0 GB)" in said


# The end of a run.


def test_verbose_prints_what_a_run_was_measured_on(home: Path, capsys: pytest.CaptureFixture[str]):
    folder = RunStore(home / "runs").create("one")
    record = make_record("one")
    folder.save(record)
    printed = []
    for details in (False, True):
        with contextlib.suppress(BenchctlError):  # its forks were not run
            conclude(folder, record, Home(home), "text", details=details)
        printed.append(capsys.readouterr().out)
    assert [record.environment.cpu_model in text for text in printed] == [False, True]


def test_where_every_request_failed_the_way_to_the_reasons_is_told(home: Path):
    folder = RunStore(home / "runs").create("one")
    failed = make_summary("range", 10.0, samples=0, failures={"http_error": 3})
    record = make_record("one", forks=(make_fork("es", 0, failed), make_fork("os", 0, failed)))
    plan = msgspec.structs.replace(record.plan, forks=1)
    folder.save(msgspec.structs.replace(record, plan=plan))
    with pytest.raises(BenchctlError, match="every request failed in range of es, range of os") as caught:
        conclude(folder, folder.load(), Home(home), "text", details=False)
    assert caught.value.hint == "see the reasons with: benchctl show one --notes"
