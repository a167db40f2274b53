"""A track whose Python plug-in makes its documents, queries, operations and pauses, on real nodes."""

from pathlib import Path

import pytest

from benchctl.results.store import RunStore
from integration.calls import Benchctl
from plugins import write_track

pytestmark = pytest.mark.full

BOOKS = 600
FILES = {
    "track.json": """
    {
      "version": 2,
      "indices": [{"name": "books", "body": "index.json"}],
      "challenges": [{"name": "write-and-read", "default": true, "schedule": [
        {"operation": {"operation-type": "create-index"}},
        {"operation": {"name": "write", "operation-type": "bulk", "param-source": "written-books",
                       "books": 600, "bulk-size": 50}, "clients": 2},
        {"operation": "refresh"},
        {"operation": {"name": "by-year", "operation-type": "search", "param-source": "years"},
         "warmup-iterations": 2, "iterations": 8},
        {"operation": {"name": "tally", "operation-type": "tally-books"},
         "iterations": 3, "schedule": "unhurried", "millis": 40}
      ]}]
    }
    """,
    "index.json": """
    {"settings": {"number_of_shards": 1, "number_of_replicas": 0},
     "mappings": {"properties": {"year": {"type": "integer"}}}}
    """,
    "schedules.py": """
    class Unhurried:
        def __init__(self, task):
            self.step = task.params["millis"] / 1000

        def next(self, current):
            return current + self.step
    """,
    "track.py": """
    import asyncio
    from pathlib import Path

    from esrally.driver.runner import Runner, mandatory
    from esrally.track.params import ParamSource

    from .schedules import Unhurried

    Path(__file__).with_name("executed").touch()


    class WrittenBooks(ParamSource):
        infinite = False

        def partition(self, partition_index, total_partitions):
            mine = WrittenBooks(self.track, self._params)
            mine.numbers = iter(range(partition_index, self._params["books"], total_partitions))
            return mine

        def params(self):
            lines = []
            for _, number in zip(range(self._params["bulk-size"]), self.numbers):
                lines.append({"index": {"_index": self.track.indices[0].name, "_id": str(number)}})
                lines.append({"year": 1900 + number % 10})
            if not lines:
                raise StopIteration
            return {"body": lines, "bulk-size": len(lines) // 2, "unit": "docs"}


    def years(track, params, **kwargs):
        return {"index": None, "body": {"query": {"term": {"year": 1907}}, "track_total_hits": True}}


    class Tally(Runner):
        async def __call__(self, es, params):
            found = await es.count(index="books")
            await asyncio.sleep(0.001)
            again = await es.perform_request("POST", "/books/_search", body={"track_total_hits": True})
            assert again["hits"]["total"]["value"] == found["count"]
            return {"weight": found["count"], "unit": "docs", "hits": found["count"]}


    def register(registry):
        registry.register_param_source("written-books", WrittenBooks)
        registry.register_param_source("years", years)
        registry.register_runner("tally-books", Tally(), async_runner=True)
        registry.register_scheduler("unhurried", Unhurried)
    """,
}


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_track(tmp_path_factory.mktemp("plugin") / "library", FILES)


@pytest.mark.usefixtures("installations")
def test_a_plug_in_runs_on_both_engines_once_it_is_trusted(benchctl: Benchctl, store: RunStore, books: Path):
    arguments = ("run", "--track", str(books), "--forks", "1", "--heap", "512m", "--docs", "1000")
    refused = benchctl(*arguments)
    assert refused.returncode == 2
    assert "operation type 'tally-books'" in refused.stderr
    assert "benchctl track trust" in refused.stderr
    assert not (books / "executed").exists()

    assert benchctl("track", "trust", str(books)).returncode == 0
    assert not (books / "executed").exists()

    done = benchctl(*arguments)
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert record.plan.plugin is not None
    assert record.plan.plugin.path == str(books / "track.py")
    assert len(record.forks) == 2
    for fork in record.forks:
        found = {summary.label: summary for summary in fork.summaries}
        assert (found["write"].samples, found["write"].unit) == (BOOKS // 50, "docs")
        assert found["write"].failures == {}
        assert (found["by-year"].samples, found["by-year"].hits) == (8, BOOKS // 10)
        tally = found["tally"]
        assert (tally.samples, tally.hits, tally.unit) == (3, BOOKS, "docs")
        assert tally.latency is not None
    notes = benchctl("show", record.id, "--notes").stdout
    assert "spaced by the track's own scheduler 'unhurried'" in " ".join(notes.split())

    with (books / "schedules.py").open("a", encoding="utf-8") as file:
        file.write("# another one\n")
    assert benchctl(*arguments).returncode == 2
