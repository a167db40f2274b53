"""Indices that have a body for each engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Index, IndexBody, Track


def loaded(folder: Path, entry: Any, **files: Any) -> Track:
    folder.mkdir()
    for name, body in files.items():
        (folder / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    path = folder / "track.json"
    path.write_text(json.dumps({"indices": [{"name": "one", "body": entry}]}), encoding="utf-8")
    return load_track(str(path), {})[0]


BOTH = {"elasticsearch": "es.json", "opensearch": "os.json"}
ONE, OTHER = ({"settings": {"number_of_shards": count}} for count in (1, 2))


def test_an_engine_has_its_own_body_and_no_trace_of_the_others(tmp_path: Path):
    track = loaded(tmp_path / "t", BOTH, es=ONE, os=OTHER)
    assert track.of("elasticsearch").indices == (Index("one", IndexBody(ONE["settings"])),)
    assert track.of("opensearch").indices == (Index("one", IndexBody(OTHER["settings"])),)
    same = loaded(tmp_path / "same", "es.json", es=ONE)
    assert same.of("opensearch") == same.of("elasticsearch") == same


def test_a_track_is_another_with_another_body_of_either_engine(tmp_path: Path):
    tracks = (
        loaded(tmp_path / "a", BOTH, es=ONE, os=ONE),
        loaded(tmp_path / "b", BOTH, es=ONE, os=OTHER),
        loaded(tmp_path / "c", BOTH, es=OTHER, os=ONE),
    )
    assert len({track.digest for track in tracks}) == 3


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"elasticsearch": "es.json"}, "opensearch"),
        ({**BOTH, "solr": "es.json"}, "solr"),
        ({**BOTH, "opensearch": "none.json"}, "none.json"),
    ],
)
def test_bodies_that_are_not_both_engines_are_refused(tmp_path: Path, entry: Any, place: str):
    with pytest.raises(UsageError, match=place):
        loaded(tmp_path / "t", entry, es=ONE, os=OTHER)


@pytest.mark.parametrize("kind", ["dense_vector", "knn_vector", "keyword"])
def test_a_track_with_vectors_is_known_by_its_mappings(tmp_path: Path, kind: str):
    body = {"mappings": {"properties": {"x": {"properties": {"y": {"type": kind}}}}}}
    assert loaded(tmp_path / "t", "es.json", es=body).has_vectors == (kind != "keyword")
