"""The main job on real nodes, through the command line: the whole of it, and everything that can go wrong."""

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.samples import Outcome
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.library import shipped
from builders import exact_hits
from integration.calls import Benchctl
from stored import read_parquet

pytestmark = pytest.mark.timeout(600)

SMALL = ("--warmup", "as-written", "--docs", "20k", "--heap", "512m")


@pytest.fixture(scope="session")
def main_job(benchctl: Benchctl, store: RunStore) -> tuple[subprocess.CompletedProcess[str], RunFolder]:
    done = benchctl("run", "--challenge", "big5rangedebug", "--forks", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    return done, store.find("latest", finished=False)


def java_processes(home: Home) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "java" and str(home.root) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


class Running:
    """A benchctl in the background whose lines can be waited for."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._grown = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self.lines.append(line)
                self._grown.notify_all()
        with self._grown:
            self._ended = True
            self._grown.notify_all()

    def wait_for(self, text: str, times: int = 1) -> None:
        def said() -> bool:
            return self._ended or sum(text in line for line in self.lines) >= times

        with self._grown:
            assert self._grown.wait_for(said, timeout=400), self.lines
        assert sum(text in line for line in self.lines) >= times, self.lines

    def end(self) -> int:
        status = self.process.wait(120)
        self._reader.join(10)
        return status


@contextmanager
def running(environ: dict[str, str], arguments: Sequence[str]) -> Iterator[Running]:
    command = [sys.executable, "-m", "benchctl", *arguments]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def wait_until_gone(processes: Sequence[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=60)
    assert not alive


def test_the_main_job_measures_both_engines(main_job: tuple[subprocess.CompletedProcess[str], RunFolder]):
    done, folder = main_job
    record = folder.load()
    assert record.status == "complete"
    assert [len(record.done(variant)) for variant in ("es", "os")] == [2, 2]
    for text in ("desc_sort_timestamp", "composite-date_", "range", "queries/s", "ms", "Details: "):
        assert text in done.stdout
    assert f"benchctl show {record.id} -v" in done.stdout


def test_a_measured_node_gets_no_search_but_the_schedule(main_job: tuple[object, RunFolder]):
    record = main_job[1].load()
    boots = [boot for fork in record.forks for boot in fork.boots]
    assert len(boots) == 4
    assert all(boot.searches_sent == boot.searches_counted == 30 for boot in boots)


def test_samples_logs_and_facts_are_kept(main_job: tuple[object, RunFolder]):
    folder = main_job[1]
    record = folder.load()
    for fork in record.forks:
        assert fork.samples is not None
        assert fork.files.keys() == {fork.samples}
        assert not any(folder.damage(fork, file) for file in fork.files)
        samples = read_parquet(folder.path / fork.samples)
        assert samples["end_ns"].shape == (30,)
        assert (samples["outcome"] == Outcome.OK).all()
        assert (samples["end_ns"] > samples["start_ns"]).all()
        # In turns of six requests and more, what comes first in one is not measured.
        for summary in fork.summaries:
            own = (samples["task"] == summary.task) & (samples["turn"] > 0)
            assert own.sum() == 10
            assert summary.samples == 10 - samples["turn"][own].max()
        for boot in fork.boots:
            logs = folder.path / boot.logs
            assert (logs / "stdout.log").stat().st_size > 0
            assert list(logs.rglob("gc.log*"))
            assert list((logs / "config").glob("*.yml"))
    assert {facts.variant: facts.version for facts in record.engines} == {"es": "8.11.0", "os": "2.11.0"}
    assert {facts.lucene for facts in record.engines} == {"9.8.0", "9.7.0"}
    assert len({facts.jdk for facts in record.engines}) == 1
    for facts in record.indices.values():
        assert facts.documents == 20_000
        assert len(facts.segments) == 1


def test_every_task_says_what_it_cost_its_node(main_job: tuple[object, RunFolder]):
    for fork in main_job[1].load().forks:
        for summary in fork.summaries:
            cost = summary.meters
            assert 0 < cost["cpu_search"] < cost["cpu"] < 1_000
            assert "gc" in cost


def test_engines_agree_on_the_answers(main_job: tuple[object, RunFolder]):
    answers = main_job[1].load().answers
    assert answers is not None
    assert answers.findings == ()
    hits = exact_hits(answers)["range"]
    assert hits["es"] == hits["os"]
    assert abs(hits["es"] / 20_000 - 0.276) < 0.005


def test_nothing_is_left_behind(main_job: tuple[object, RunFolder], home: Home):
    assert main_job[1].load().status == "complete"
    assert java_processes(home) == []
    assert list(home.scratch.iterdir()) == []


def test_show_and_compare_and_list_look_back(
    main_job: tuple[subprocess.CompletedProcess[str], RunFolder], benchctl: Benchctl
):
    folder = main_job[1]
    shown = benchctl("show", folder.path.name, "-v")
    assert shown.returncode == 0, shown.stderr
    assert "Lucene" in shown.stdout
    assert str(folder.path) in shown.stdout
    compared = benchctl("compare", "es", "os", "--run", folder.path.name, "--format", "json")
    assert compared.returncode == 0, compared.stderr
    assert folder.path.name in json.dumps(json.loads(compared.stdout))
    listed = benchctl("runs", "list")
    assert folder.path.name[:15] in listed.stdout


@pytest.mark.full
def test_one_node_runs_everything_when_asked_never_to_restart(benchctl: Benchctl, store: RunStore):
    done = benchctl(
        "run", "--variant", "os", "--forks", "1", "--restart", "never", "--warmup-challenge", "warmup",
        "--challenge", "big5rangedebug", "--challenge", "range-only-short", "--param", "iterations=4", *SMALL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (fork,) = store.find("latest", finished=False).load().forks
    (boot,) = fork.boots
    # 3 tasks of 30 warm up, then 3 tasks of 4 and 1 of 4.
    assert boot.searches_sent == boot.searches_counted == 90 + 12 + 4
    assert [summary.samples for summary in fork.summaries] == [4, 4, 4, 4]
    assert fork.samples is not None


ODD_OPERATIONS = """,
{"name": "lacking", "body": {"size": 0, "aggs": {"a": {"auto_date_histogram": {"field": "@timestamp"}}}}},
{"name": "wrong", "body": {"query": {"range": {"@timestamp": {"gte": "yesterday-ish"}}}}}
"""


@pytest.mark.full
def test_what_a_node_lacks_is_stepped_over_and_what_it_refuses_fails(
    benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    shutil.copytree(shipped("tracks") / "big5", tmp_path / "big5")
    with (tmp_path / "big5" / "operations" / "search.json").open("a", encoding="utf-8") as operations:
        operations.write(ODD_OPERATIONS)
    tasks = [{"operation": name, "iterations": 3} for name in ("lacking", "wrong", "range")]
    challenge = tmp_path / "odd.json"
    challenge.write_text(json.dumps({"name": "odd", "schedule": tasks}), encoding="utf-8")
    done = benchctl(
        "run", "--variant", "es", "--forks", "1", "--track", str(tmp_path / "big5"), "--challenge",
        str(challenge), *SMALL,
    )  # fmt: skip
    assert done.returncode == 1
    assert "every request failed in wrong of es" in done.stderr
    record = store.find("latest", finished=False).load()
    lacking, wrong, fine = record.forks[0].summaries
    assert "auto_date_histogram" in (lacking.unsupported or "")
    assert wrong.failures == {"http_error": 3}
    assert any("yesterday-ish" in reason for reason in wrong.failure_reasons)
    assert fine.samples == 3
    assert record.answers is not None
    assert [(found.operation, found.kind) for found in record.answers.findings] == [
        ("lacking", "unsupported"),
        ("wrong", "failed"),
    ]


def test_an_interrupted_run_keeps_its_forks_and_is_resumed(
    environ: dict[str, str], benchctl: Benchctl, store: RunStore, home: Home
):
    arguments = ["run", "--variant", "os", "--forks", "2", "--challenge", "range-only-short", *SMALL]
    with running(environ, arguments) as run:
        run.wait_for("measuring 2 forks")
        refused = benchctl("run", "--challenge", "range-only-short", *SMALL)
        assert refused.returncode == 1
        assert f"process {run.process.pid}" in refused.stderr
        run.wait_for("fork 1/2")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130, run.lines
        assert any("benchctl resume" in line for line in run.lines)
    assert java_processes(home) == []
    before = store.find("latest", finished=False).load()
    assert before.status == "interrupted"
    assert len(before.done("os")) == 1
    resumed = benchctl("resume", "latest")
    assert resumed.returncode == 0, resumed.stderr
    after = store.find(before.id).load()
    assert after.status == "complete"
    assert after.done("os")[0] == before.done("os")[0]
    assert len(after.done("os")) == 2
    added = benchctl("extend", "latest", "--forks", "1", "--quiet")
    assert added.returncode == 0, added.stderr
    more = store.find(before.id).load()
    assert more.forks[:2] == after.forks
    assert (more.status, more.looks, [fork.block for fork in more.done("os")]) == ("complete", 2, [0, 1, 2])


@pytest.mark.full
def test_a_node_killed_in_mid_task_is_a_failed_fork_and_one_that_stands_still_is_told(
    environ: dict[str, str], store: RunStore, home: Home, benchctl: Benchctl
):
    arguments = ["run", "--variant", "os", "--forks", "2", "--challenge", "range-only", *SMALL]
    arguments += ["--param", "target_throughput=60", "--param", "iterations=300"]
    with running(environ, arguments) as run:
        run.wait_for("measuring 2 forks")
        killed = server_in_use(home, run)
        killed.kill()
        wait_until_gone([killed])
        node = server_in_use(home, run, 50)  # behind its warm-up
        node.suspend()
        threading.Event().wait(3.0)
        node.resume()
        assert run.end() == 1, run.lines
        assert any("FAILED" in line and "signal 9" in line for line in run.lines), run.lines
    record: RunRecord = store.find("latest", finished=False).load()
    assert [fork.status for fork in record.forks] == ["failed", "done"]
    assert record.missing() == ((0, "os"),)
    (summary,) = record.forks[1].summaries
    driver = summary.driver
    assert driver is not None
    assert driver.window_s is not None
    assert 2.5 < summary.stalled_s < driver.window_s
    assert driver.stopped_s < 1.0
    shown = benchctl("show", record.id, "--notes").stdout
    # On a busy host, benchctl may have been kept from running for a moment, too, and says so first.
    stopped = r"(benchctl itself did not run for [^;]+ of the measured time and )?"
    assert re.search(
        rf"stalled: os: in fork 1, {stopped}{summary.stalled} of 300 requests took", " ".join(shown.split())
    )
    assert "not warmed up" not in shown


def searches_of(process: psutil.Process) -> int:
    """Searches that a node has counted; 0 while it does not answer."""
    try:
        ports = [found.laddr.port for found in process.net_connections("tcp") if found.status == "LISTEN"]
    except psutil.Error:
        return 0
    for port in ports:
        address = f"http://127.0.0.1:{port}/_nodes/_local/stats/indices/search"
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                nodes = json.load(answer)["nodes"].values()
        except (OSError, ValueError, http.client.HTTPException):
            continue
        return sum(node["indices"]["search"]["query_total"] for node in nodes)
    return 0


def server_in_use(home: Home, run: Running, searches: int = 3) -> psutil.Process:
    """The node, once it has counted more searches than that: in the middle of its first task."""
    while run.process.poll() is None:
        for process in java_processes(home):
            if searches_of(process) > searches:
                return process
    pytest.fail(f"no node was searched: {run.lines}")


def test_no_node_survives_a_benchctl_that_is_killed(environ: dict[str, str], home: Home):
    arguments = ["run", "--variant", "os", "--forks", "1", "--challenge", "range-only-short", *SMALL]
    with running(environ, arguments) as run:
        run.wait_for("measuring 1 fork")
        while not (nodes := java_processes(home)):
            assert run.process.poll() is None, run.lines
        run.process.kill()
        run.end()
    wait_until_gone(nodes)
