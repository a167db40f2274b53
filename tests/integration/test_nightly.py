"""Nights on real nodes: one that is killed, a slow engine, too small a disk."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.home import Home
from benchctl.lock import measuring_pid
from benchctl.nightly.records import Alarm, NightRecord, SuiteFolder
from integration.calls import Benchctl
from waiting import eventually

pytestmark = pytest.mark.timeout(1200)

# All that a search does is interpreted: it takes ten times as long, and nodes start nearly as fast as ever.
SLOW = "-XX:CompileCommand=exclude,org.apache.lucene.*::*"
SLOWER = tuple(
    f"-XX:CompileCommand=exclude,{package}.*::*"
    for package in ("org.opensearch", "java.lang.invoke", "jdk.internal.foreign", "jdk.internal.misc")
)
CHALLENGE = {
    "name": "daily",
    # As many before as it is known to need alone on a node: a provisional verdict confirms nothing.
    # Of a dozen measured, one that a busy machine stalls would make it provisional, too.
    "schedule": [{"operation": "composite-date_histogram-daily", "warmup-iterations": 640, "iterations": 60}],
}
SUITE = """
variants: ["candidate=os{flags}"]
challenges: [daily.json]
# So many that a search is work, and so few that an engine without a compiler soon warms up.
docs: 10k
heap: 512m
forks: 3
# Searches take ten times as long: five forks tell, and more only where a busy machine spoils one.
confirm-forks: 8
host: {{settle: 0s{host}}}
notify:
  command: [/bin/sh, -c, "cat > told-$$.json"]
"""


class Night(msgspec.Struct, frozen=True):
    """How a night ended, as it was then.

    Attributes:
        done: the process.
        record: of the night.
        alarms: of the suite.
        told: what the notifier was given.
    """

    done: Any
    record: NightRecord
    alarms: tuple[Alarm, ...]
    told: list[dict[str, Any]]

    @property
    def raised(self) -> list[Alarm]:
        return [one for one in self.alarms if one.night == self.record.id]


class Story(msgspec.Struct, frozen=True):
    """One suite's nights, in the order in which they came.

    Attributes:
        second_start: while the killed night ran.
        cut_off: the killed night's record, as the killing left it.
    """

    second_start: Any
    cut_off: NightRecord
    quiet: Night
    no_space: Night


class Teller:
    """Runs nights, one after the other."""

    def __init__(self, benchctl: Benchctl, home: Home, environ: dict[str, str], folder: Path) -> None:
        self.benchctl = benchctl
        self.environ = environ
        self.file = folder / "nights.yml"
        self.suite = SuiteFolder(home.nightly / "nights")
        (folder / "daily.json").write_text(json.dumps(CHALLENGE))

    def write(self, *flags: str, host: str = "") -> None:
        self.file.write_text(SUITE.format(flags="".join(f",jvm:{flag}" for flag in flags), host=host))

    def night(self, *flags: str, host: str = "") -> Night:
        self.write(*flags, host=host)
        done = self.benchctl("nightly", "run", str(self.file))
        told = sorted(self.file.parent.glob("told-*.json"))
        messages = [json.loads(path.read_text()) for path in told]
        for path in told:
            path.unlink()
        return Night(done, self.newest, self.suite.state().alarms, messages)

    def killed_night(self) -> tuple[Any, NightRecord]:
        """Kill a night after its first fork; before, start a second one."""
        self.write()
        command = [sys.executable, "-m", "benchctl", "nightly", "run", str(self.file)]
        with subprocess.Popen(command, env=self.environ, stderr=subprocess.PIPE, text=True) as first:
            try:
                assert eventually(lambda: measuring_pid(self.suite.lock_name) == first.pid)
                second = self.benchctl("nightly", "run", str(self.file))
                assert first.stderr is not None
                assert any(": p90" in line for line in first.stderr)
            finally:
                first.send_signal(signal.SIGKILL)
        return second, self.newest

    @property
    def newest(self) -> NightRecord:
        return self.suite.nights(pytest.fail)[-1]


@pytest.fixture(scope="module")
def teller(
    benchctl: Benchctl, home: Home, environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Teller:
    return Teller(benchctl, home, environ, tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def story(teller: Teller) -> Story:
    second_start, cut_off = teller.killed_night()
    quiet = teller.night()
    no_space = teller.night(host=", least-free-gb: 1000000")
    return Story(second_start=second_start, cut_off=cut_off, quiet=quiet, no_space=no_space)


def test_a_second_start_says_who_is_at_work_and_leaves_it_alone(story: Story) -> None:
    assert story.second_start.returncode == 0, story.second_start.stderr
    assert "nights: the suite in" in story.second_start.stdout
    assert "is already running (process" in story.second_start.stdout
    assert "nothing is run" in story.second_start.stdout


def test_a_killed_night_is_told_and_the_next_is_measured(story: Story, teller: Teller) -> None:
    assert (story.cut_off.number, story.cut_off.status) == (1, "running")
    night = story.quiet
    assert night.done.returncode == 0, night.done.stderr
    assert night.done.stdout.startswith("Suite nights, night 2: no alarms")
    assert (night.record.status, night.record.findings) == ("done", ())
    assert teller.suite.nights(pytest.fail)[0].status == "interrupted"
    (told,) = night.told
    assert (told["night"], told["status"]) == (story.cut_off.id, "broken")


def test_a_disk_without_space_is_refused_and_told(story: Story) -> None:
    night = story.no_space
    assert (night.done.returncode, night.record.status) == (1, "refused")
    assert "are free on the disk of benchctl's home" in night.done.stderr
    (told,) = night.told
    assert told["status"] == "broken"


@pytest.mark.full
def test_a_slow_engine_is_screened_confirmed_attributed_and_told_once(story: Story, teller: Teller) -> None:
    # One night or two say little about how much nights differ on a busy machine.
    quiet = [teller.night(), teller.night()]
    night = teller.night(SLOW, *SLOWER)
    assert night.done.returncode == 3, [finding.reason for finding in night.record.findings]
    # What three forks find in a p90 of fifty requests, and what becomes of it, is a busy machine's to say.
    assert {one.direction for one in night.record.findings if one.status == "confirmed"} == {"slower"}
    (alarm,) = (one for one in night.raised if one.finding.key.metric == "throughput")
    found = alarm.finding
    assert found.direction == "slower"
    assert found.effect_percent < -50
    assert found.high_percent < 0
    assert found.since == night.record.id
    # A quiet night that was slow by chance counts against the engine, and the one before it is the last good.
    assert found.last_good in {night.record.id for night in (story.quiet, *quiet)}
    assert any(SLOW in change for change in alarm.changes)
    assert found.run in found.command
    (told,) = night.told
    assert told["status"] == "alarm"
    assert "candidate is slower: composite-date_histogram-daily of daily" in told["text"]
    assert told["text"] == night.done.stdout
