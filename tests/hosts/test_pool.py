"""Two load hosts made of namespaces, with clocks and TLS: what they send, and how they are lost."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from namespaces import Lan, certify, lan, why_not
from waiting import eventually

REASON = why_not()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.timeout(300)]

# By how many seconds the clocks of the hosts are ahead: their offsets are known.
AHEAD_S = {"one": 5000, "two": 86_400}
DRIVER = Path(__file__).with_name("driver.py")
TESTS = Path(__file__).parents[1]
IMPATIENT = ("--preload", str(Path(__file__).with_name("impatient.py")))


@pytest.fixture(scope="module")
def net() -> Iterator[Lan]:
    with tempfile.TemporaryDirectory() as name, lan(Path(name), "main", *AHEAD_S) as made:
        made.dask_scheduler()
        for host, ahead_s in AHEAD_S.items():
            made.dask_worker(host, ahead_s, *IMPATIENT)
        yield made


@pytest.fixture
def hosts(net: Lan) -> Path:
    path = net.folder / "hosts.yml"
    path.write_text(
        f"scheduler: {net.scheduler}\n"
        "tls: {ca: ca.pem, certificate: host.pem, key: host.key}\n"
        f"address: {net.addresses['main']}\n"
        "load: [one, two]\n"
    )
    # Workers may just have been started, and be busy until what had them is surely gone.
    assert eventually(lambda: check(net, path).returncode == 0)
    return path


def check(net: Lan, hosts: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = net.within(
        "main", [sys.executable, "-m", "benchctl", "doctor", "--hosts", str(hosts), *options]
    )
    return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def driver(net: Lan, scenario: str, hosts: Path) -> Iterator["subprocess.Popen[str]"]:
    folder = net.folder / "main"
    folder.mkdir(exist_ok=True)
    command = net.within("main", [sys.executable, str(DRIVER), scenario, str(hosts), str(folder)])
    paths = map(str, (TESTS, TESTS / "support", TESTS.parent / "src"))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    words: dict[str, Any] = json.loads(process.stdout.readline())
    return words


def step(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Begin a step; what is said first."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return said(process)


def load_processes(net: Lan) -> list[int]:
    """Of clients, on the hosts that load comes from: what Dask workers start."""
    workers = [pid for host in AHEAD_S for pid in net.pids(host)]
    return [pid for pid in workers if "spawn_main" in " ".join(words_of(pid))]


def words_of(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.NoSuchProcess:
        return []


def dask_worker(net: Lan, host: str) -> int:
    (pid,) = [pid for pid in net.pids(host) if "dask" in words_of(pid) and "worker" in words_of(pid)]
    return pid


def test_two_hosts_send_what_one_does_at_the_same_moments_on_one_axis(net: Lan, hosts: Path):
    with driver(net, "alike", hosts) as process:
        told = said(process)
        assert process.wait() == 0
    several, single = told["runs"]
    assert several["due"] == single["due"]
    assert several["bodies"] == single["bodies"]
    assert len(set(several["bodies"])) > 100
    assert (several["processes"], single["processes"], single["hosts"]) == (2, 1, [])
    # The stub is on this host: whatever reaches it was sent before, on its clock, and answered after.
    for run in told["runs"]:
        error_ns = max((one[4] for one in run["hosts"]), default=0)
        latest = max(arrived - sent for sent, arrived in zip(run["sent"], run["arrived"], strict=True))
        soonest = min(arrived - sent for sent, arrived in zip(run["sent"], run["arrived"], strict=True))
        assert -error_ns <= soonest <= latest
        # Their clocks are more than an hour ahead.
        assert -error_ns <= run["ended_ns"] - max(run["ended"]) < 1000 * 1_000_000_000
    for name, clients, late_ns, offset_ns, error_ns in several["hosts"]:
        assert clients == {"one": 3, "two": 2}[name]
        assert abs(offset_ns - AHEAD_S[name] * 1_000_000_000) <= error_ns
        assert late_ns >= 0
    assert told["closed"] == dict.fromkeys("0123", 25)
    assert all(late_ns >= 0 for late_ns in told["closed_late"])
    # The corpus is read once, where it is.
    assert (told["documents"], told["most"], told["indexed_on"]) == (40, 1, [])
    assert told["left"] == []


def test_whatever_becomes_of_a_host_the_step_fails_by_its_name_and_the_next_has_all_again(
    net: Lan, hosts: Path
):
    with driver(net, "hanging", hosts) as process:
        assert step(process) == {"hanging": True}
        (victim,) = [pid for pid in load_processes(net) if pid in net.pids("one")]
        os.kill(victim, signal.SIGKILL)
        assert said(process)["error"] == "a load generating process on host one died with status -9"
        assert load_processes(net) == []

        assert step(process) == {"hanging": True}
        os.kill(dask_worker(net, "two"), signal.SIGKILL)
        lost = said(process)
        assert lost["error"] == "host two was lost: its Dask worker is gone"
        assert "benchctl doctor" in lost["hint"]
        assert eventually(lambda: not load_processes(net))
        # Load never comes from fewer hosts than were asked for.
        assert step(process)["error"].startswith("host two cannot be used: no Dask worker of that name")
        assert load_processes(net) == []

        net.dask_worker("two", AHEAD_S["two"], *IMPATIENT)
        assert eventually(lambda: check(net, hosts).returncode == 0)
        assert step(process) == {"hanging": True}
        assert len(load_processes(net)) == 2
        net.vanish("one")
        lost = said(process)
        assert lost["error"] == "host one was lost: it did not respond for 4 s"
        assert lost["after_s"] < 30
        # It ends them by itself: nobody can tell it to.
        assert eventually(lambda: not load_processes(net))
    net.come_back("one")


def test_a_host_is_busy_for_others_until_the_benchctl_that_has_it_is_gone(net: Lan, hosts: Path):
    with driver(net, "hanging", hosts) as process:
        assert step(process) == {"hanging": True}
        assert len(load_processes(net)) == 2
        checked = check(net, hosts, "--format", "json")
        assert checked.returncode == 1
        rows = json.loads(checked.stdout)
        for row in rows:
            assert row["state"].startswith("busy: process ")
            assert abs(row["clock offset s"] - AHEAD_S[row["host"]]) <= row["± s"] + 2e-6
        assert "one, two cannot be used now" in checked.stderr
        # Nobody says goodbye, and its connections may look alive.
        process.kill()
        assert eventually(lambda: not load_processes(net))


def test_a_certificate_of_another_authority_gets_nobody_in(net: Lan, hosts: Path, tmp_path: Path):
    certify(tmp_path)
    other = tmp_path / "hosts.yml"
    other.write_text(hosts.read_text())
    checked = check(net, other)
    assert checked.returncode == 1
    assert "cannot be reached" in checked.stderr
    assert "certificate verify failed" in checked.stderr.lower()
