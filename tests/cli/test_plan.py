"""Plans of runs, and how their records are listed."""

from pathlib import Path

import msgspec
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, StopSpec
from benchctl.results.store import RunStore
from benchctl.run.host import describe_host
from benchctl.run.plan import RunSpec, plan_run
from builders import CORPUS, ES, OS, make_environment, make_fork, make_record, make_summary


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, [*arguments])


def planned(forks: int, stop: StopSpec | None = None) -> Plan:
    options = RunSpec(
        variants=(ES, OS),
        challenges=("range-only-short",),
        warmup_challenges=(),
        restart="challenge",
        forks=forks,
        seed=1,
        heap_mb=1024,
        track="big5",
        corpus=CORPUS,
        segments=1,
        params={},
        stop=stop,
    )
    plan, _ = plan_run(options)
    return plan


def earlier(forks: int = 6) -> RunRecord:
    """A run of the default sizes on this very machine."""
    done = tuple(
        make_fork(name, block, make_summary("range", 10 + block % 3), wall_s=15.0)
        for block in range(forks)
        for name in ("es", "os")
    )
    host = make_environment(fingerprint=describe_host().fingerprint)
    return make_record("a", plan=planned(forks), forks=done, environment=host)


def test_the_rule_becomes_part_of_the_plan():
    stop = StopSpec(decided=True, budget_s=60.0)
    assert planned(50, stop).stop == stop
    assert planned(5).stop is None


def test_tags_and_early_ends_are_listed(home: Path):
    record = earlier()
    ended = msgspec.structs.replace(
        record,
        plan=msgspec.structs.replace(record.plan, forks=50),
        tags=("nightly", "before-upgrade"),
        stopped="ended early",
    )
    RunStore(home / "runs").create("a").save(ended)
    (line,) = (line for line in call("runs", "list").output.splitlines() if "12/12" in line)
    assert "nightly, before-upgrade" in line
