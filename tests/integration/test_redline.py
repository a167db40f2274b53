"""A red-line search on real nodes, through the command line."""

import json
from pathlib import Path

import duckdb
import msgspec
import pytest

from benchctl.results.model import RunRecord, stray_boots
from benchctl.results.samples import Outcome
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = pytest.mark.timeout(600)

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
        "red-line of range on a fresh node a fork: p90 of latency within 100 ms"
        in benchctl("show", "latest", "--host").stdout
    )
    compared = benchctl("compare", "es", "os", "--challenge", "redline-range")
    assert compared.returncode == 0, compared.stderr
    assert "red-line of range" in compared.stdout


def searched(benchctl: Benchctl, store: RunStore, *words: str) -> tuple[RunRecord, str]:
    """A search by one fork of Elasticsearch: what is kept of it, and what it prints."""
    done = benchctl("redline", *words, "--variant", "es", "--tolerance", "40%", "--forks", "1", *SMALL, "-v")
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    (fork,) = record.forks
    assert fork.curve
    assert stray_boots(fork) == ()
    return record, done.stdout


@pytest.mark.full
def test_a_number_of_clients_is_searched_for_in_a_closed_loop(benchctl: Benchctl, store: RunStore):
    record, said = searched(benchctl, store, "--operation", "range", "--clients", "1..6", "--slo", "p90=20s")
    (summary,) = record.forks[0].summaries
    # Six clients never wait 20 seconds; what a busy machine lets the driver do is another matter.
    assert summary.redline_end in {"max-rate", "driver-limited"}
    assert {point.rate_per_s for point in record.forks[0].curve} <= set(range(1, 7))
    assert "red-line, clients" in said
    if summary.redline_end == "max-rate":
        assert ">= 6" in said
        assert "throughput, queries/s" in said


@pytest.mark.full
def test_a_challenge_is_searched_for_the_factor_that_all_its_rates_bear(
    benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    path = tmp_path / "mixed.json"
    path.write_text(
        """{"name": "mixed", "cluster-settings": {"search.max_buckets": "70000"}, "schedule": [
        {"operation": "range", "name": "before", "iterations": 3},
        {"parallel": {"tasks": [
            {"operation": "range", "clients": 2, "target-throughput": 40},
            {"operation": {"operation-type": "bulk", "name": "send", "bulk-size": 50},
             "target-throughput": "500 docs/s"}]}}]}""",
        encoding="utf-8",
    )
    words = ("--challenge", str(path), "--task", "range", "--slo", "p90=20s", "--max-factor", "1.5")
    record, said = searched(benchctl, store, *words)
    assert record.plan.origin == "prepared"
    # Documents are added to the copy of a fork: the next run finds the index as it was prepared.
    again, _ = searched(benchctl, store, *words)
    assert again.indices == {
        name: msgspec.structs.replace(facts, cached=True) for name, facts in record.indices.items()
    }
    (fork,) = again.forks
    logs = store.find("latest", finished=False).path / fork.boots[0].logs
    assert any("search.max_buckets" in path.read_text("utf-8", "replace") for path in logs.rglob("*.log"))
    searching, sending = fork.summaries
    assert (searching.label, searching.redline_unit, sending.label) == ("range", "x", "send")
    assert "red-line, x" in said
    assert "Rates that the factors mean" in said
    if searching.redline_per_s is not None:
        assert searching.target_per_s == pytest.approx(40 * searching.redline_per_s)
        assert sending.target_per_s == pytest.approx(10 * searching.redline_per_s)
        assert searching.redline_per_s <= 1.5
