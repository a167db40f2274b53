"""What variants differ in, asked for and not, as real nodes of both engines have it."""

import json
import shutil
from pathlib import Path

import pytest

from benchctl.errors import ExitCode
from benchctl.results.likeness import resolved, side_differences
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from builders import exact_hits
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

BIG5 = Path(__file__).parents[2] / "tracks" / "big5"
SIZE = ("--challenge", "range-only-short", "--warmup", "as-written", "--docs", "2k", "--heap", "512m")
OPTIONS = "mapping:message.index_options"


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The track of big5 with another body for OpenSearch, which nobody would see in a table."""
    folder = tmp_path_factory.mktemp("tracks") / "big5"
    shutil.copytree(BIG5, folder)
    body = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    body["mappings"]["properties"]["message"]["index_options"] = "docs"
    (folder / "opensearch.json").write_text(json.dumps(body), encoding="utf-8")
    described = (folder / "track.json").read_text(encoding="utf-8")
    bodies = '"body": {"elasticsearch": "index.json", "opensearch": "opensearch.json"}'
    (folder / "track.json").write_text(described.replace('"body": "index.json"', bodies), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def record(benchctl: Benchctl, store: RunStore, track: Path) -> RunRecord:
    every = {"query": {"match_all": {}}}
    (track / "every.json").write_text(json.dumps(every), encoding="utf-8")
    variants = ("es", "os", f"asked=es,{OPTIONS}=docs", f"every=es,operation:range={track}/every.json")
    named = (word for variant in variants for word in ("--variant", variant))
    done = benchctl("run", "--track", str(track), *SIZE, "--forks", "1", *named)
    assert done.returncode == 0, done.stderr
    assert "Differ besides the engine: " in done.stdout
    assert "Search results differ on range." in " ".join(done.stdout.split())
    return store.find("latest").load()


def kind_of(record: RunRecord, contender: str, what: str) -> str | None:
    sides = [side for side in resolved(record) if side.label in ("es", contender)]
    return next((one.kind for one in side_differences(sides) if one.what == what), None)


def test_nodes_of_both_engines_report_what_is_in_force(record: RunRecord):
    es, os = (engine.in_force for engine in record.engines if engine.variant in ("es", "os"))
    for state in (es, os):
        assert state.given["mapping:@timestamp.type"] == "date"
        assert state.given["index:codec"] == "best_compression"
        assert (state.usual["merge policy"], state.usual["search concurrency"]) == ("tiered", "off")
        assert state.usual["setting:indices.queries.cache.size"] == "10%"
        assert state.usual["segments"].startswith("1")
        assert not {"index:uuid", "index:creation_date", "index:version.created"} & state.given.keys()
    # Nothing else is unlike that was not asked for.
    sides = [side for side in resolved(record) if side.label in ("es", "os")]
    assert [one.what for one in side_differences(sides) if one.kind == "unasked"] == [OPTIONS]


def test_a_mapping_is_asked_for_or_not(record: RunRecord):
    assert kind_of(record, "os", OPTIONS) == "unasked"
    assert kind_of(record, "asked", OPTIONS) == "asked"
    assert kind_of(record, "every", OPTIONS) is None
    assert record.indices["asked"].key != record.indices["es"].key


def test_another_body_is_asked_of_the_same_index(record: RunRecord):
    assert record.indices["every"].key == record.indices["es"].key
    assert record.answers is not None
    hits = exact_hits(record.answers)["range"]
    assert hits["es"] == hits["os"] < hits["every"] == 2000
    assert [(one.variant, one.kind) for one in record.answers.findings] == [("every", "different")]


def test_a_mapping_that_an_engine_refuses_is_named(benchctl: Benchctl):
    done = benchctl("run", *SIZE, "--forks", "1", "--variant", "x=os,mapping:message.type=txt")
    assert done.returncode == ExitCode.FAILED
    assert "refuses mapping:message.type=txt" in done.stderr
