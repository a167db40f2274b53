"""A red-line search on real nodes, through the command line."""

import json

import duckdb
import pytest

from benchctl.results.model import stray_boots
from benchctl.results.samples import Outcome
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

SMALL = ("--docs", "20k", "--heap", "512m", "--warm-up", "1", "--settle", "0.1", "--step-time", "0.5")
SEARCH = (
    "redline",
    "--operation",
    "range",
    "--slo",
    "p90=100ms",
    "--tolerance",
    "40%",
    "--forks",
    "1",
    *SMALL,
)


def test_a_search_finds_compares_and_keeps_everything(benchctl: Benchctl, store: RunStore):
    done = benchctl(*SEARCH)
    assert done.returncode == 0, done.stderr
    assert "red-line, queries/s" in done.stdout
    assert "red-line of" in done.stdout
    assert "red-line of range, p90 of latency within 100 ms" in " ".join(done.stdout.split())

    folder = store.find("latest", finished=False)
    record = folder.load()
    assert record.status == "complete"
    assert record.plan.redline is not None
    for fork in record.forks:
        (summary,) = fork.summaries
        # What a busy machine finds in steps of a second is not for a test to say.
        assert summary.redline_end in {"found", "driver-limited", "unsettled"}
        assert {"pass", "fail"} <= {point.verdict for point in fork.curve}
        assert stray_boots(fork) == ()
        assert [boot.searches_counted for boot in fork.boots] == [fork.boots[0].searches_sent]
        assert fork.samples is not None
        rows = (
            duckdb.read_parquet(str(folder.path / fork.samples))
            .filter(f"outcome = {int(Outcome.OK)}")
            .aggregate("task, warmup, count(*)")
            .fetchall()
        )
        measured = {task: count for task, warmup, count in rows if not warmup}
        assert measured == {point.step: point.samples for point in fork.curve}
        assert {task for task, warmup, _ in rows if warmup} >= {0}

    shown = benchctl("show", "latest", "--format", "json")
    found = json.loads(shown.stdout)
    assert "os: range by offered rate" in benchctl("show", "latest", "-v").stdout
    assert [row["metric"] for row in found["rows"]] == ["redline"]
    assert [curve["variant"] for curve in found["redline"]["curves"]] == ["es", "os"]
    assert (
        "red-line of range on a fresh node per fork: p90 of latency within 100 ms"
        in benchctl("show", "latest", "--host").stdout
    )
    compared = benchctl("compare", "es", "os", "--challenge", "redline-range")
    assert compared.returncode == 0, compared.stderr
    assert "red-line of range" in compared.stdout
