"""Every type and key that Rally 2.12 and OpenSearch Benchmark 2.4 document for tracks is known."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchctl.track.load import load_track
from benchctl.track.operations.catalogue import OPERATION_TYPES, decode_operation
from foreign_tracks import write_files

COMMON = "name meta tags include-in-reporting request-timeout request-params headers opaque-id"
RETRIES = "retries retry-until-success retry-wait-period retry-on-timeout retry-on-error"
SEARCHES = (
    "index data-stream body cache detailed-results response-compression-enabled with-point-in-time-from"
)
PAGES = "pages results-per-page"
TEMPLATE = f"template body settings {RETRIES}"
NO_TEMPLATE = f"template only-if-exists {RETRIES}"
VECTORS = "index field data_set_format data_set_path data_set_corpus num_vectors id-field-name"
BULK = (
    "bulk-size ingest-percentage corpora indices data-streams batch-size pipeline conflicts "
    "conflict-probability on-conflict recency detailed-results timeout refresh looped"
)
NEIGHBORS = "neighbors_data_set_format neighbors_data_set_path neighbors_data_set_corpus"
ON_INDEX = f"index {RETRIES}"
ON_SNAPSHOT = "repository snapshot body wait-for-completion request-params"
WAITS = "repository completion-recheck-wait-period"

BOTH: Mapping[str, str] = {
    "bulk": BULK,
    "force-merge": "index mode max-num-segments poll-period",
    "index-stats": f"condition {ON_INDEX}",
    "node-stats": "",
    "search": f"type assertions {PAGES} {SEARCHES}",
    "paginated-search": f"{PAGES} {SEARCHES}",
    "scroll-search": f"{PAGES} {SEARCHES}",
    "put-pipeline": f"id body {RETRIES}",
    "put-settings": f"body {RETRIES}",
    "cluster-health": ON_INDEX,
    "refresh": ON_INDEX,
    "create-index": f"body settings {ON_INDEX}",
    "delete-index": f"only-if-exists {ON_INDEX}",
    "create-data-stream": f"data-stream {RETRIES}",
    "delete-data-stream": f"data-stream only-if-exists {RETRIES}",
    "create-index-template": TEMPLATE,
    "create-composable-template": TEMPLATE,
    "create-component-template": TEMPLATE,
    "delete-index-template": f"delete-matching-indices index-pattern {NO_TEMPLATE}",
    "delete-composable-template": f"delete-matching-indices index-pattern {NO_TEMPLATE}",
    "delete-component-template": NO_TEMPLATE,
    "shrink-index": f"source-index target-index target-body shrink-node {RETRIES}",
    "raw-request": "path method body ignore",
    "sleep": "duration",
    "create-snapshot-repository": f"repository body {RETRIES}",
    "delete-snapshot-repository": f"repository {RETRIES}",
    "create-snapshot": ON_SNAPSHOT,
    "restore-snapshot": ON_SNAPSHOT,
    "wait-for-snapshot-create": f"snapshot {WAITS} {RETRIES}",
    "wait-for-recovery": f"completion-recheck-wait-period {ON_INDEX}",
    "create-transform": f"transform-id body defer-validation {RETRIES}",
    "start-transform": f"transform-id timeout {RETRIES}",
    "wait-for-transform": (
        "transform-id force timeout wait-for-completion wait-for-checkpoint transform-timeout "
        f"poll-interval {RETRIES}"
    ),
    "delete-transform": f"transform-id force {RETRIES}",
    "composite": "requests max-connections",
    "submit-async-search": "index body",
    "get-async-search": f"retrieve-results-for {RETRIES}",
    "delete-async-search": "delete-results-for",
}
RALLY: Mapping[str, str] = {
    "composite-agg": f"{PAGES} {SEARCHES}",
    "create-ml-datafeed": f"datafeed-id body {RETRIES}",
    "delete-ml-datafeed": f"datafeed-id force {RETRIES}",
    "start-ml-datafeed": f"datafeed-id body start end timeout {RETRIES}",
    "stop-ml-datafeed": f"datafeed-id force timeout {RETRIES}",
    "create-ml-job": f"job-id body {RETRIES}",
    "delete-ml-job": f"job-id force {RETRIES}",
    "open-ml-job": f"job-id {RETRIES}",
    "close-ml-job": f"job-id force timeout {RETRIES}",
    "wait-for-current-snapshots-create": f"{WAITS} {RETRIES}",
    "open-point-in-time": "index keep-alive",
    "close-point-in-time": "with-point-in-time-from",
    "sql": "body pages",
    "esql": "query filter body",
    "downsample": "fixed-interval source-index target-index",
    "field-caps": "index fields body index-filter index_filter",
    "transform-stats": f"transform-id condition {RETRIES}",
    "create-ilm-policy": f"policy-name body {RETRIES}",
    "delete-ilm-policy": f"policy-name {RETRIES}",
}
OPENSEARCH: Mapping[str, str] = {
    "vector-search": (
        f"k filter filter_type filter_body calculate-recall {VECTORS} {NEIGHBORS} "
        "response-compression-enabled profile-query profile-metrics"
    ),
    "bulk-vector-data-set": f"bulk_size filter_attributes retries detailed-results {VECTORS}",
    "delete-pipeline": f"id {RETRIES}",
    "create-search-pipeline": f"id body {RETRIES}",
    "create-point-in-time": "index keep-alive",
    "delete-point-in-time": "with-point-in-time-from",
    "list-all-point-in-time": "",
    "register-ml-model": f"model-name model-version model-format model-config-file {RETRIES}",
    "register-remote-ml-model": f"body {RETRIES}",
    "deploy-ml-model": RETRIES,
    "delete-ml-model": f"model-name {RETRIES}",
    "create-ml-connector": f"body {RETRIES}",
    "delete-ml-connector": f"connector_name {RETRIES}",
    "train-knn-model": f"model_id body {RETRIES}",
    "delete-knn-model": f"model_id ignore-if-model-does-not-exist {RETRIES}",
    "update-concurrent-segment-search-settings": f"enable max_slice_count {RETRIES}",
    "produce-stream-message": BULK,
    "proto-bulk": BULK,
    "proto-search": SEARCHES,
    "proto-vector-search": f"k {VECTORS} {NEIGHBORS}",
    "proto-bulk-vector-data-set": f"bulk_size {VECTORS}",
}
DOCUMENTED = {**BOTH, **RALLY, **OPENSEARCH}


@pytest.mark.parametrize("kind", DOCUMENTED)
def test_every_documented_type_has_its_documented_keys(kind: str):
    assert kind in OPERATION_TYPES
    unknown = []
    for key in [*COMMON.split(), *DOCUMENTED[kind].split()]:
        try:
            decode_operation({"operation-type": kind, "name": "x", key: object()})
        except (
            ValueError
        ) as err:  # it is the value that nothing can be made of, or another key that is missing
            if "unknown field" in str(err):
                unknown.append(key)
    assert unknown == []


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
