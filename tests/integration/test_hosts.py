"""Load from several hosts: namespaces on one machine, with clocks and TLS of their own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from benchctl.home import Home
from benchctl.results.store import RunStore
from integration.test_run import java_processes
from namespaces import Lan, lan, why_not
from waiting import eventually

REASON = why_not()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.timeout(600)]
CHALLENGE = {
    "name": "from-two-hosts",
    "schedule": [
        {
            "operation": "range",
            "clients": 3,
            "warmup-iterations": 2,
            "iterations": 8,
            "target-throughput": 60,
        },
        {"name": "closed", "operation": "range", "clients": 2, "iterations": 10},
    ],
}
AHEAD_S = {"one": 5000, "two": 86_400}


@dataclass
class Ground:
    """The hosts, and a benchctl on the first of them."""

    net: Lan
    home: Home
    environ: dict[str, str]
    hosts: Path
    challenge: Path

    def command(self, *words: str) -> list[str]:
        return self.net.within("main", [sys.executable, "-m", "benchctl", *words])

    def benchctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words), env=self.environ, capture_output=True, text=True, check=False
        )

    def measured(self, *more: str) -> list[str]:
        common = ("--docs", "5000", "--heap", "512m", "--forks", "1", "--hosts", str(self.hosts))
        return ["run", "--challenge", str(self.challenge), "--variant", "os", *common, *more]

    def processes(self, host: str, word: str) -> list[int]:
        """Those of a host that have a word in their command, by id."""
        found = []
        for pid in self.net.pids(host):
            with suppress(psutil.NoSuchProcess):
                found += [pid] if word in psutil.Process(pid).cmdline() else []
        return found


@pytest.fixture(scope="module")
def ground(home: Home, environ: dict[str, str]) -> Iterator[Ground]:
    with (
        tempfile.TemporaryDirectory(dir=home.root.parent) as name,
        lan(Path(name), "main", *AHEAD_S) as net,
    ):
        net.folder.chmod(0o755)
        net.dask_scheduler()
        for host, ahead_s in AHEAD_S.items():
            net.dask_worker(host, ahead_s)
        challenge, hosts = net.folder / "challenge.json", net.folder / "hosts.yml"
        challenge.write_text(json.dumps(CHALLENGE))
        hosts.write_text(
            f"scheduler: {net.scheduler}\n"
            "tls: {ca: ca.pem, certificate: host.pem, key: host.key}\n"
            f"address: {net.addresses['main']}\n"
            f"load: [{', '.join(AHEAD_S)}]\n"
        )
        made = Ground(net, home, environ, hosts, challenge)
        assert eventually(lambda: made.benchctl("doctor", "--hosts", str(hosts)).returncode == 0)
        yield made


def test_load_of_a_run_is_on_several_hosts(ground: Ground, store: RunStore):
    done = ground.benchctl(*ground.measured("-v"))
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert (record.plan.load_hosts, record.plan.hosts) == (("one", "two"), str(ground.hosts))
    assert record.load_hosts.keys() == AHEAD_S.keys()
    assert all(host.round_trip_ns > 0 for host in record.load_hosts.values())
    (fork,) = record.forks
    opened, closed = fork.summaries
    assert [(one.name, one.clients) for one in opened.hosts] == [("one", 2), ("two", 1)]
    assert [(one.name, one.clients) for one in closed.hosts] == [("one", 1), ("two", 1)]
    assert (opened.samples, closed.samples) == (24, 20)
    for summary in fork.summaries:
        for host, ahead_s in zip(summary.hosts, AHEAD_S.values(), strict=True):
            assert abs(host.clock_offset_ns - ahead_s * 1_000_000_000) <= host.clock_error_ns
            assert host.start_late_ns is not None
            assert host.driver.requests == 8 * host.clients if summary is opened else 10
    (boot,) = fork.boots
    # Nobody else asked the nodes, and nothing was asked twice.
    assert boot.searches_counted == boot.searches_sent == 3 * 10 + 20
    # The costliest of the hosts' drivers counts.
    assert (cost := record.calibration) is not None
    assert cost.hosts.keys() == AHEAD_S.keys()
    assert cost.error_p50_ns == max(one.error_p50_ns for one in cost.hosts.values()) > 0
    assert "the load came from 2 hosts (one, two)" in " ".join(record.caveats)
    assert "Driver: requests sent" in done.stdout


@pytest.mark.full
def test_a_host_that_is_lost_fails_the_fork_by_name_and_leaves_nothing_anywhere(
    ground: Ground, store: RunStore
):
    command = ground.command(*ground.measured())
    with subprocess.Popen(command, env=ground.environ, stderr=subprocess.PIPE, text=True) as run:
        # Not the node that builds an index, where there is none yet.
        assert eventually(lambda: [*ground.home.scratch.glob("fork-*")] and java_processes(ground.home))
        (worker,) = ground.processes("two", "--no-nanny")
        os.kill(worker, signal.SIGKILL)
        _, said = run.communicate()
    assert run.returncode == 1, said
    assert not java_processes(ground.home)
    (fork,) = store.find("latest", finished=False).load().forks
    assert (fork.status, fork.reason.partition("\n")[0]) == (
        "failed",
        "host two was lost: its Dask worker is gone",
    )
    assert not list(ground.home.scratch.iterdir())
