"""Nights on real nodes: quiet ones, a slow engine, a slow host, one that is killed, two at once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchctl.home import Home
from benchctl.results.nightly.events import Raised, alarms_of
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.nightly.model import NightRecord
from integration.calls import Benchctl
from waiting import eventually

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(600)]

# Searches are interpreted, and nothing else: they take many times as long, and nodes start as fast as ever.
SLOW = "-XX:CompileCommand=exclude,org.apache.lucene.*::*"
SLOWER = "-XX:CompileCommand=exclude,org.elasticsearch.search.*::*"
CHALLENGE = {
    "name": "daily",
    "schedule": [{"operation": "composite-date_histogram-daily", "warmup-iterations": 10, "iterations": 15}],
}

SUITE = """
name: nights
variants: ["candidate=es{flags}"]
canary: steady=os
challenges: [daily.json]
docs: 20k
heap: 512m
forks: 3
host: {{settle: 0s, max-load: 1000, max-busy: 100%}}
notify:
  - {{kind: command, run: [/bin/sh, -c, "cat > told-$$.json"]}}
{more}
"""


class Nights:
    """A suite on real nodes, and what it told."""

    def __init__(self, benchctl: Benchctl, home: Home, environ: dict[str, str], folder: Path) -> None:
        self.benchctl = benchctl
        self.environ = environ
        self.file = folder / "nights.yml"
        (folder / "daily.json").write_text(json.dumps(CHALLENGE))
        self.suite = SuiteFolder(home.nightly / "nights")
        self.site = home.nightly / "site" / "nights"

    def write(self, *flags: str, more: str = "") -> None:
        self.file.write_text(SUITE.format(flags="".join(f",jvm:{flag}" for flag in flags), more=more))

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        self.write(*flags)
        return self.benchctl("nightly", "run", str(self.file), "--wait", "--format", "json")

    def started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchctl", "nightly", "run", str(self.file), "--wait"]
        return subprocess.Popen(command, env=self.environ, stderr=subprocess.PIPE, text=True)

    @property
    def records(self) -> list[NightRecord]:
        return self.suite.nights(pytest.fail)

    def told(self) -> list[dict[str, Any]]:
        """What the notifier was given since it was last asked."""
        found = []
        for path in sorted(self.file.parent.glob("told-*.json")):
            found.append(json.loads(path.read_text()))
            path.unlink()
        return found


@pytest.fixture(scope="module")
def nights(
    benchctl: Benchctl, home: Home, environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Nights:
    """A suite that has had two quiet nights."""
    found = Nights(benchctl, home, environ, tmp_path_factory.mktemp("suite"))
    for number in (1, 2):
        done = found.run()
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["status"] == "quiet"
        assert found.records[-1].number == number
    assert found.told() == []
    return found


@contextmanager
def crowded(cpu: int) -> Iterator[None]:
    """One CPU for this process and all that it starts, and work on it that is not ours."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        burner.kill()
        burner.wait()


def raised(events: Sequence[Any], night: NightRecord) -> list[Raised]:
    return [one for one in events if isinstance(one, Raised) and one.night == night.id]


def test_a_slow_host_moves_the_canary_and_nobody_is_told(nights: Nights) -> None:
    with crowded(min(os.sched_getaffinity(0))):
        done = nights.run()
    assert done.returncode == 0, done.stderr
    record = nights.records[-1]
    assert "steady" in record.canary_moved
    assert {one.status for one in record.findings} == {"held"}
    assert len(record.runs) == 1
    assert alarms_of(nights.suite.events(pytest.fail)) == ()
    assert nights.told() == []


def test_a_slow_engine_is_screened_confirmed_attributed_and_told_once(nights: Nights) -> None:
    done = nights.run(SLOW, SLOWER)
    assert done.returncode == 3, done.stderr
    record = nights.records[-1]
    assert {one.status for one in record.findings} == {"confirmed"}
    events = nights.suite.events(pytest.fail)
    (alarm,) = (one for one in raised(events, record) if one.key.metric == "throughput")
    assert alarm.direction == "slower"
    assert alarm.effect_percent is not None
    assert alarm.effect_percent < -50
    assert alarm.high_percent is not None
    assert alarm.high_percent < 0
    # The night of the slow host is not a good one.
    assert (alarm.since, alarm.last_good) == (record.id, nights.records[-3].id)
    assert any(SLOW in change.after for change in alarm.changes)
    assert alarm.confirmation is not None
    assert min(alarm.confirmation.forks_good, alarm.confirmation.forks_tonight) >= 5
    assert SLOW in alarm.command
    (told,) = nights.told()
    assert told["status"] == "alarm"
    assert "candidate is slower: composite-date_histogram-daily of daily" in told["text"]
    assert (nights.site / "runs" / f"{alarm.confirmation.run}.html").is_file()
    assert SLOW in (nights.site / "alarms.html").read_text()


def test_a_killed_night_is_gone_on_with_and_a_second_start_leaves_it_alone(nights: Nights) -> None:
    nights.write(more="on-busy: exit")
    number = nights.records[-1].number + 1
    first = nights.started()
    path = nights.suite.root / "lock"
    try:
        assert eventually(lambda: path.read_text().startswith("{") and str(first.pid) in path.read_text())
        second = nights.benchctl("nightly", "run", str(nights.file))
        assert second.returncode == 0
        assert f"process {first.pid} of user" in second.stdout
        assert "nothing is run" in second.stdout
        assert first.stderr is not None
        assert any("block 0: p90" in line for line in first.stderr)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
        if first.stderr is not None:
            first.stderr.close()
    assert nights.records[-1].status == "running"
    done = nights.run()
    assert done.returncode in {0, 3}, done.stderr
    record = nights.records[-1]
    assert (record.number, record.status, record.forks_done) == (number, "done", 3)


def test_a_disk_without_space_is_refused_and_told(nights: Nights) -> None:
    nights.told()
    nights.write()
    text = nights.file.read_text().replace("settle: 0s", "settle: 0s, least-free-gb: 1000000")
    nights.file.write_text(text)
    refused = nights.benchctl("nightly", "run", str(nights.file), "--wait")
    assert refused.returncode == 1
    assert "are free on the disk of benchctl's home" in refused.stderr
    (told,) = nights.told()
    assert told["status"] == "broken"
