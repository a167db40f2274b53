"""What only the load generator does, on real nodes through the command line: every way to make load."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchctl.results.model import RunRecord
from benchctl.results.samples import Outcome
from benchctl.results.store import RunFolder, RunStore
from benchctl.stats.analyse import analyse_run
from integration.calls import Benchctl
from stored import read_parquet

pytestmark = pytest.mark.timeout(600)

SMALL = ("--warmup", "as-written", "--docs", "20k", "--heap", "512m", "--forks", "1")

MANY_WAYS = Path(__file__).parent / "challenges" / "many-ways.json"
SAME_RESULTS = MANY_WAYS.with_name("same-results.json")


def latest(store: RunStore) -> tuple[RunFolder, RunRecord]:
    folder = store.find("latest", finished=False)
    return folder, folder.load()


def test_many_ways_to_make_load_in_one_schedule(benchctl: Benchctl, store: RunStore):
    """From two processes: most other runs here make their load from one."""
    done = benchctl("run", "--challenge", str(MANY_WAYS), "--workers", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    folder, record = latest(store)
    assert {fork.variant for fork in record.forks} == {"es", "os"}
    hits = []
    for fork in record.forks:
        (boot,) = fork.boots
        assert boot.searches_sent == boot.searches_counted
        found = {summary.label: summary for summary in fork.summaries}
        assert not any(summary.failures for summary in fork.summaries)
        send = found["send"].meters
        assert send["indexing"] > 0
        assert send["cpu"] > 0
        assert not found["beside"].meters.keys() & {"cpu"}
        assert (found["range"].samples, found["range"].warmup_samples) == (40, 10)
        # It would have gone on for two minutes.
        assert found["beside"].samples < 1000
        assert (found["send"].unit, found["send"].samples) == ("docs", 8)
        assert found["scroll-three"].pages is not None
        assert found["scroll-three"].samples == 4
        assert found["moving-range"].samples == 30
        assert {summary.label for summary in fork.summaries if not summary.reported} == {
            "refresh",
            "force-merge",
            "refresh-again",
        }
        assert all(summary.driver is not None for summary in fork.summaries)
        columns = read_parquet(folder.path / (fork.samples or ""))
        assert np.isin(columns["outcome"], [Outcome.OK, Outcome.CANCELLED]).all()
        moving = columns["task"] == 7
        order = np.lexsort((columns["start_ns"][moving], columns["client"][moving]))
        hits.append(columns["hits"][moving][order].tolist())
    # The same values in the same order on both, and not always the same ones.
    assert hits[0] == hits[1]
    assert len(set(hits[0])) > 5
    # Preparation is not a result, and documents are not queries.
    assert "refresh" not in done.stdout
    # The screen shows what differs most, which may remove it.
    assert "throughput, docs/s" in benchctl("show", record.id, "-v").stdout


@pytest.mark.full
def test_the_same_searches_return_the_same(benchctl: Benchctl, store: RunStore):
    done = benchctl("run", "--challenge", str(SAME_RESULTS), *SMALL)
    assert done.returncode == 0, done.stderr
    _, record = latest(store)
    assert {fork.variant for fork in record.forks} == {"es", "os"}
    for fork in record.forks:
        samples = {summary.label: summary.answers for summary in fork.summaries}
        for label, sample in samples.items():
            assert sample is not None, label
            assert (sample.changed, sample.example) == (0, ""), label
            assert sample.repeated > 0, label
            assert (sample.first is None) is (label in {"days", "desc_sort_with_after_timestamp"}), label
        days = samples["days"]
        assert days is not None
        # The first request of a turn is warm-up.
        assert 8 < days.checked <= 96
        assert days.repeated == days.checked - 3
    caveats = {caveat for row in analyse_run(record).rows for caveat in row.caveats}
    assert [caveat.text for caveat in caveats if caveat.code == "hits-changed"] == []


def test_a_cold_page_cache_holds_nothing_of_the_index(benchctl: Benchctl, store: RunStore):
    words = ("--challenge", "range-only-short", "--variant", "os", "--page-cache", "cold")
    done = benchctl("run", *words, *SMALL)
    assert done.returncode == 0, done.stderr
    _, record = latest(store)
    (fork,) = record.forks
    assert (fork.summaries[0].samples, fork.summaries[0].failures) == (10, {})
    assert fork.boots[0].searches_sent == fork.boots[0].searches_counted
    # A start reads some of the index, and the first range the rest of what it needs.
    assert fork.boots[0].resident is not None
    assert fork.boots[0].resident < 0.01
    assert "page cache (cold) " in benchctl("show", record.id, "--host").stdout


@pytest.mark.full
def test_a_failing_request_ends_a_fork_where_that_is_the_policy(
    benchctl: Benchctl, store: RunStore, tmp_path: Path
):
    wrong = {
        "name": "wrong",
        "schedule": [
            {
                "operation": {
                    "name": "no-such-date",
                    "body": {"query": {"range": {"@timestamp": {"gte": "soon"}}}},
                }
            }
        ],
    }
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong))
    done = benchctl("run", "--challenge", str(path), "--variant", "os", "--on-error", "abort", *SMALL)
    assert done.returncode == 1
    _, record = latest(store)
    assert record.forks[0].status == "failed"
    assert "no-such-date" in record.forks[0].reason


@pytest.mark.full
def test_the_benchmark_of_the_load_generator_measures_on_a_real_node(environ: dict[str, str]):
    program = Path(__file__).parent.parent / "benchmarks" / "bench_load.py"
    command = [sys.executable, str(program), "--smoke", "--format", "json", "--rows", "real"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    start, bulk = json.loads(done.stdout)["lines"]
    assert start["figures"]["seconds"] > 0
    assert bulk["figures"]["docs_per_s"] > 0
