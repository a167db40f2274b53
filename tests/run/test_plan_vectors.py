"""Tracks with vectors: which nodes can have them, and how many builds of their indices there are."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asked import asked
from benchctl.errors import UsageError
from benchctl.results.plan import StopSpec, TargetSpec, VariantSpec
from benchctl.run.plan import RunSpec, check_vectors, plan_run
from benchctl.track.load import load_track
from benchctl.track.model import Track
from builders import ES, OS
from foreign_tracks import write_files

LUCENE = {"type": "knn_vector", "dimension": 4, "method": {"name": "hnsw", "engine": "lucene"}}
DENSE = {"type": "dense_vector", "dims": 4}
AGAIN = msgspec.structs.replace(ES, name="again", jvm_flags=("-Xss2m",))
KNN = msgspec.structs.replace(OS, plugins=("org.opensearch.plugin:opensearch-knn:2.19.1.0",))
RUNNING = msgspec.structs.replace(OS, target=TargetSpec(("http://h:9200",)))


def track(folder: Path, field: dict[str, Any], *, knn: bool = True) -> tuple[Track, str]:
    body = {
        "settings": {"index": {"knn": knn}} if knn else {},
        "mappings": {"properties": {"inner": {"properties": {"v": field}}}},
    }
    operation = {"name": "near", "operation-type": "search", "body": {"size": 1}}
    schedule = [{"operation": operation, "iterations": 3}]
    whole = {
        "indices": [{"name": "one", "body": "index.json"}],
        "challenges": [{"name": "c", "schedule": schedule}],
    }
    write_files(folder, {"index.json": json.dumps(body), "track.json": json.dumps(whole)})
    path = str(folder / "track.json")
    return load_track(path, {})[0], path


@pytest.mark.parametrize(
    ("variant", "field"),
    [
        (ES, DENSE),
        (KNN, LUCENE),
        (msgspec.structs.replace(OS, distribution="official"), {"type": "knn_vector", "dimension": 4}),
        (msgspec.structs.replace(OS, distribution="/some/where"), LUCENE),
        (RUNNING, LUCENE),
    ],
)
def test_nodes_with_what_vectors_need_are_taken(tmp_path: Path, variant: VariantSpec, field: dict[str, Any]):
    check_vectors((variant,), track(tmp_path, field)[0])


@pytest.mark.parametrize(
    ("variant", "field", "said", "hint"),
    [
        (OS, LUCENE, "field 'v' of track .* requires the plug-in opensearch-knn", "opensearch-knn:2.19.1.0"),
        (KNN, {**LUCENE, "method": {"engine": "nmslib"}}, "engine nmslib requires native", "lucene"),
        (KNN, {"type": "knn_vector", "dimension": 4}, "engine faiss, the default, requires native", "lucene"),
        (KNN, DENSE, "is a dense_vector, which opensearch does not have", "for each engine"),
        (ES, LUCENE, "is a knn_vector, which elasticsearch does not have", "for each engine"),
    ],
)
def test_nodes_that_cannot_have_vectors_are_refused(
    tmp_path: Path, variant: VariantSpec, field: dict[str, Any], said: str, hint: str
):
    with pytest.raises(UsageError, match=said) as refused:
        check_vectors((variant,), track(tmp_path, field)[0])
    assert hint in (refused.value.hint or "")


def test_vectors_without_graphs_need_no_native_libraries(tmp_path: Path):
    check_vectors((KNN,), track(tmp_path, {"type": "knn_vector", "dimension": 4}, knn=False)[0])


def options(path: str, **changes: Any) -> RunSpec:
    usual = {"variants": (ES,), "challenges": ("c",), "forks": 6, "track": path, "free_builds": True}
    return asked(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "builds"),
    [
        ({}, 3),
        ({"forks": 2}, 2),
        ({"free_builds": False}, 1),
        ({"free_builds": False, "index_builds": 2}, 2),
        ({"stop": StopSpec(decided=True, least_forks=5), "variants": (ES, AGAIN)}, 1),
    ],
)
def test_graphs_are_built_three_times_unless_something_else_is_asked_for(
    tmp_path: Path, changes: dict[str, Any], builds: int
):
    _, path = track(tmp_path, DENSE)
    assert plan_run(options(path, **changes))[0].index_builds == builds


def test_indices_without_vectors_are_built_once(tmp_path: Path):
    _, path = track(tmp_path, {"type": "keyword"})
    plan, _ = plan_run(options(path))
    assert plan.index_builds == 1
