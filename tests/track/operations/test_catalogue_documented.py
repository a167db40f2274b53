"""Every type and key that Rally 2.12 and OpenSearch Benchmark 2.4 document for tracks is known."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.track.load import load_track
from benchctl.track.operations import Cannot
from benchctl.track.operations.catalogue import OPERATION_TYPES, operation_keys
from foreign_tracks import write_files

LINES = (Path(__file__).parent / "cases" / "documented_keys.txt").read_text(encoding="utf-8").splitlines()
COMMON, *DOCUMENTED = (line.split() for line in LINES[1:])


@pytest.mark.parametrize("words", DOCUMENTED, ids=lambda words: words[0])
def test_every_documented_type_has_its_documented_keys(words: list[str]):
    kind = OPERATION_TYPES[words[0]]
    assert issubclass(kind, Cannot) or {*words[1:], *COMMON[1:]} <= {*operation_keys(words[0])}


DOCUMENTS = {
    "source-file": "d.json.bz2", "document-count": 3, "compressed-bytes": 1, "uncompressed-bytes": 2,
    "target-index": "i", "target-type": "t", "base-url": "http://x.invalid", "source-format": "bulk",
    "source-url": "http://x.invalid/d", "source-file-parts": [{"name": "d", "size": 1}], "meta": {},
    "includes-action-and-meta-data": False,
}  # fmt: skip
CORPUS = {
    "name": "c", "documents": [DOCUMENTS], "base-url": "http://x.invalid", "source-format": "bulk",
    "meta": {}, "includes-action-and-meta-data": False, "target-index": "i", "target-type": "t",
}  # fmt: skip
TASK = {
    "operation": "s", "name": "a", "tags": ["x"], "meta": {}, "clients": 2, "schedule": "poisson",
    "target-throughput": 5, "ignore-response-error-level": "non-fatal", "warmup-time-period": 2,
    "time-period": 3, "ramp-up-time-period": 1, "run-on-serverless": True, "serverless": True,
}  # fmt: skip
COUNTED = {"operation": "s", "warmup-iterations": 1, "iterations": 2, "target-interval": 3, "tags": "y"}
PARALLEL = {
    "tasks": [{"operation": "s", "name": "b"}], "clients": 1, "warmup-time-period": 2, "time-period": 3,
    "ramp-up-time-period": 1, "completed-by": "b",
}  # fmt: skip
CHALLENGE = {
    "name": "c", "description": "d", "user-info": "u", "meta": {}, "default": True, "parameters": {},
    "cluster-settings": {}, "schedule": [TASK, COUNTED, {"parallel": PARALLEL}],
}  # fmt: skip
TEMPLATES = [{"name": "t", "template": "t.json", "index-pattern": "x", "delete-matching-indices": True}]
MAIN = {
    "version": 2, "description": "d", "meta": {}, "parameters": {}, "dependencies": ["numpy"],
    "indices": [{"name": "i", "body": "t.json", "types": ["t"]}],
    "templates": TEMPLATES,
    "composable-templates": [{**TEMPLATES[0], "template-path": "settings"}],
    "component-templates": [{"name": "t", "template": "t.json", "template-path": "settings"}],
    "corpora": [CORPUS],
    "operations": [{"name": "s", "operation-type": "search", "param-source": "search", "body": {}}],
}  # fmt: skip


@pytest.mark.parametrize(
    "schedules",
    [
        {"challenges": [CHALLENGE]},
        {"challenge": CHALLENGE},
        {"schedule": [TASK]},
        {"test_procedures": [CHALLENGE]},
        {"test_procedure": CHALLENGE},
    ],
)
def test_every_documented_key_of_a_track_is_known(tmp_path: Path, schedules: dict[str, Any]):
    files = {"track.json": json.dumps({**MAIN, **schedules}), "t.json": '{"settings": {}, "mappings": {}}'}
    track, _ = load_track(str(write_files(tmp_path / "small", files)), {})
    assert track.faults == ()
    passed_over = {remark.message.partition("'")[2].partition("'")[0] for remark in track.remarks}
    assert passed_over <= {"run-on-serverless", "serverless"}
