"""A real node whose load comes from two hosts: namespaces on one machine, with clocks and TLS."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchctl.results.store import RunStore
from namespaces import lan, why_not
from waiting import eventually

REASON = why_not()
pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.timeout(600)]
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


def test_the_load_of_a_run_comes_from_two_hosts(environ: dict[str, str], store: RunStore):
    with tempfile.TemporaryDirectory() as name, lan(Path(name), "main", "one", "two") as net:
        net.dask_scheduler()
        net.dask_worker("one", 5000)
        net.dask_worker("two", 86_400)
        hosts, challenge = net.folder / "hosts.yml", net.folder / "challenge.json"
        challenge.write_text(json.dumps(CHALLENGE))
        hosts.write_text(
            f"scheduler: {net.scheduler}\n"
            "tls: {ca: ca.pem, certificate: host.pem, key: host.key}\n"
            f"hosts: {{main: {{local: true, carries: [nodes], address: {net.addresses['main']}}}, "
            "one: {carries: [load]}, two: {carries: [load]}}\n"
        )

        def benchctl(*words: str) -> "subprocess.CompletedProcess[str]":
            command = net.within("main", [sys.executable, "-m", "benchctl", *words])
            return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

        assert eventually(lambda: benchctl("hosts", "check", str(hosts)).returncode == 0)
        measured = ("--challenge", str(challenge), "--variant", "es", "--docs", "20k", "--heap", "512m")
        done = benchctl("run", *measured, "--forks", "1", "--hosts", str(hosts), "-v", "--wait")
        assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert (record.plan.load_hosts, record.plan.hosts) == (("one", "two"), str(hosts))
    assert all(host.round_trip_ns > 0 for host in record.load_hosts.values())
    (fork,) = record.forks
    opened, closed = fork.summaries
    assert [(one.name, one.clients) for one in opened.hosts] == [("one", 2), ("two", 1)]
    assert [(one.name, one.clients) for one in closed.hosts] == [("one", 1), ("two", 1)]
    assert (opened.samples, closed.samples) == (24, 20)
    (boot,) = fork.boots
    # Nobody else asked the node, and nothing was asked twice.
    assert boot.searches_counted == boot.searches_sent == 3 * 10 + 20
    for summary in fork.summaries:
        for host, ahead_s in zip(summary.hosts, (5000, 86_400), strict=True):
            assert abs(host.clock_offset_ns - ahead_s * 1_000_000_000) <= host.clock_error_ns
            assert host.start_late_ns is not None
            assert host.driver.requests == 8 * host.clients if summary is opened else 10
    assert "the load came from 2 hosts (one, two)" in " ".join(record.caveats)
    assert "Load by host" in done.stdout
