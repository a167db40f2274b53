"""Nodes and load on several hosts: namespaces on one machine, with clocks, TLS and homes of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psutil
import pytest

from benchctl.evidence.call_sites import logs_of
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
FAILING = {
    "name": "failing",
    "schedule": [
        {
            "parallel": {
                "tasks": [
                    {"name": "searches", "operation": "range", "clients": 3, "time-period": 12},
                    *(
                        {
                            "operation": {
                                "name": action,
                                "operation-type": "failover",
                                "action": action,
                                "node": "node-2",
                                "delay": delay,
                            }
                        }
                        for action, delay in (("kill", 1), ("restart", 2))
                    ),
                ]
            }
        }
    ],
}
AHEAD_S = {"one": 5000, "two": 86_400}
NODES = ["node-1", "node-2", "node-3"]
# Started by the script: to learn a direct start would take every host longer than this.
SPREAD = "os3=os,nodes:3,replicas:2,start:script"


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

    def measured(self, *more: str, load: bool = True) -> list[str]:
        hosts = self.hosts if load else self.hosts.with_name("nodes.yml")
        challenge = self.challenge if load else self.challenge.with_name("failing.json")
        common = ("--docs", "5000", "--heap", "512m", "--forks", "1", "--hosts", str(hosts))
        return ["run", "--challenge", str(challenge), "--variant", SPREAD, *common, *more]

    def processes(self, host: str, word: str) -> list[int]:
        """Those of a host that have a word in their command, by id."""
        found = []
        for pid in self.net.pids(host):
            with suppress(psutil.NoSuchProcess):
                found += [pid] if word in psutil.Process(pid).cmdline() else []
        return found

    def nodes(self, host: str) -> list[int]:
        return self.processes(host, "org.opensearch.bootstrap.OpenSearch")


@pytest.fixture(scope="module")
def ground(home: Home, environ: dict[str, str]) -> Iterator[Ground]:
    with (
        tempfile.TemporaryDirectory(dir=home.root.parent) as name,
        lan(Path(name), "main", *AHEAD_S) as net,
    ):
        net.folder.chmod(0o755)
        net.dask_scheduler()
        for host, ahead_s in AHEAD_S.items():
            # What would be downloaded and unpacked there.
            for part in ("artifacts", "engines", "jdks"):
                shutil.copytree(
                    home.root / part, net.folder / host / part, copy_function=os.link, symlinks=True
                )
            net.dask_worker(host, ahead_s, BENCHCTL_HOME=str(net.folder / host))
        challenge, hosts = net.folder / "challenge.json", net.folder / "hosts.yml"
        challenge.write_text(json.dumps(CHALLENGE))
        hosts.write_text(
            f"scheduler: {net.scheduler}\n"
            "tls: {ca: ca.pem, certificate: host.pem, key: host.key}\n"
            "hosts:\n"
            f"  main: {{local: true, carries: [nodes], address: {net.addresses['main']}}}\n"
            + "".join(
                f"  {host}: {{carries: [nodes, load], address: {net.addresses[host]}}}\n" for host in AHEAD_S
            )
        )
        hosts.with_name("nodes.yml").write_text(hosts.read_text().replace("[nodes, load]", "[nodes]"))
        challenge.with_name("failing.json").write_text(json.dumps(FAILING))
        made = Ground(net, home, environ, hosts, challenge)
        assert eventually(lambda: made.benchctl("doctor", "--hosts", str(hosts)).returncode == 0)
        yield made


def test_load_and_nodes_of_a_run_are_on_several_hosts(ground: Ground, store: RunStore):
    done = ground.benchctl(
        *ground.measured("-v", "--evidence", "inlining,profile", "--evidence-forks", "all")
    )
    assert done.returncode == 0, done.stderr
    folder = store.find("latest", finished=False)
    record = folder.load()
    assert (record.plan.load_hosts, record.plan.hosts) == (("one", "two"), str(ground.hosts))
    assert record.plan.node_hosts == {"os3": ("", "one", "two")}
    assert record.node_hosts.keys() == record.load_hosts.keys() == AHEAD_S.keys()
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
    assert "the load came from 2 hosts (one, two)" in (said := " ".join(record.caveats))
    assert "os3 was on one, two and this host: every time measured has their network in it" in said
    assert "hosts of os3 are one machine (this host, one, two)" in said
    assert "Load by host" in done.stdout
    assert "os3: node-1 on this host, node-2 on one, node-3 on two" in done.stdout

    assert [(node.name, node.host) for node in boot.node_starts] == list(
        zip(NODES, ["", *AHEAD_S], strict=True)
    )
    # Copies found their shards where they were, and started on the fork's clock, whatever that of their host.
    assert boot.recovered_bytes == 0
    assert all(0 <= node.origin_ns < fork.wall_s * 1e9 for node in boot.node_starts)
    for node, home in zip(
        boot.node_starts, (ground.home.root, *map(ground.net.folder.joinpath, AHEAD_S)), strict=True
    ):
        assert str(home) in node.command[0]
        assert (folder.path / node.logs / "logs" / "gc.log").is_file()
        assert (folder.path / node.logs / "stdout.log").stat().st_size
        (index,) = (home / "indices").glob("opensearch-2.11.0-3-nodes-*-part")
        assert [path.name for path in (index / "data").iterdir()] == [node.name]
    assert [node.name for node in boot.jvms] == NODES
    for name in NODES:
        assert (folder.evidence_folder("os3", 0, 0, name) / "profile.json").is_file()
    assert [log.node for log in logs_of(folder, record)] == NODES
    for summary in fork.summaries:
        assert sorted(summary.node_meters) == NODES
        assert all({"cpu", "gc", "open_files"} <= part.keys() for part in summary.node_meters.values())
        assert summary.meters["cpu"] == pytest.approx(
            sum(part["cpu"] for part in summary.node_meters.values())
        )
    with duckdb.connect() as database:
        rows = database.execute(
            "SELECT node, min(t_ns), max(t_ns), max(node_cpu_percent) FROM read_parquet(?) "
            "WHERE kind = 'node' GROUP BY node ORDER BY node",
            [str(folder.path / str(fork.telemetry))],
        ).fetchall()
    assert [row[0] for row in rows] == NODES
    assert all(0 < first <= last < fork.wall_s * 1e9 and cpu > 0 for _, first, last, cpu in rows)


@pytest.mark.full
def test_nodes_there_may_be_killed_and_come_back_and_lost_where_that_is_put_up_with(
    ground: Ground, store: RunStore
):
    command = ground.command(*ground.measured("--on-node-loss", "continue", load=False))
    with subprocess.Popen(command, env=ground.environ, stderr=subprocess.PIPE, text=True) as run:
        # Node-2 is killed and started again by the challenge; node-3 by nobody that benchctl knows.
        assert run.stderr is not None
        assert any("node-2 was killed" in line for line in run.stderr)
        assert eventually(lambda: ground.nodes("one"))
        (node_3,) = ground.nodes("two")
        os.kill(node_3, signal.SIGKILL)
        _, said = run.communicate()
    assert run.returncode == 0, said
    (fork,) = store.find("latest", finished=False).load().forks
    (boot,) = fork.boots
    # With one node missing there is no place for every copy, and node-2 is back all the same.
    assert {(fate.node, fate.what) for fate in boot.fates} == {
        ("node-2", "killed"),
        ("node-2", "started again"),
        ("node-3", "lost"),
    }
    assert all(0 < fate.at_ns < fork.wall_s * 1e9 for fate in boot.fates)
    searches, *acts = fork.summaries
    assert searches.failures["refused"] > 0
    assert [(one.label, one.samples, one.failures) for one in acts] == [("kill", 1, {}), ("restart", 1, {})]
    assert not any(map(ground.nodes, ("main", *AHEAD_S)))


@pytest.mark.full
def test_a_host_that_is_lost_fails_the_fork_by_name_and_leaves_nothing_anywhere(
    ground: Ground, store: RunStore
):
    command = ground.command(*ground.measured())
    with subprocess.Popen(command, env=ground.environ, stderr=subprocess.PIPE, text=True) as run:
        assert eventually(lambda: all(map(ground.nodes, ("main", *AHEAD_S))))
        (worker,) = ground.processes("two", "--no-nanny")
        os.kill(worker, signal.SIGKILL)
        _, said = run.communicate()
    assert run.returncode == 1, said
    assert eventually(lambda: not any(map(ground.nodes, AHEAD_S)))
    assert not java_processes(ground.home)
    (fork,) = store.find("latest", finished=False).load().forks
    assert (fork.status, fork.reason.partition("\n")[0]) == (
        "failed",
        "host two was lost: its Dask worker is gone",
    )
    assert not list((ground.net.folder / "one" / "scratch").iterdir())
    assert not list(ground.home.scratch.iterdir())
