"""What forks begin on: decided from what the challenges do, refused where one would find no data."""

import json
from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.run.documents import needed_corpora, origin_of, sends_documents, streams_made
from benchctl.track.model import Challenge, Corpus, Documents, Index, IndexBody, Task, Track
from benchctl.track.operations.catalogue import PluginOperation, decode_operation
from builders import make_plan
from golden import Cases

PEOPLE = Corpus(
    "people",
    (
        Documents(source_file="readers.json", document_count=2, target_index="readers"),
        Documents(source_file="fines.json", document_count=3, target_index="fines"),
    ),
)
VISITS = Corpus(
    "visits", (Documents(source_file="visits.json", document_count=5, target_data_stream="visits-x"),)
)
OPERATIONS: dict[str, dict[str, Any]] = {
    "ask": {"operation-type": "search", "body": {}},
    "send": {"operation-type": "bulk", "bulk-size": 10},
    "send-readers": {"operation-type": "bulk", "bulk-size": 10, "indices": ["readers"]},
    "send-visits": {
        "operation-type": "bulk",
        "bulk-size": 10,
        "corpora": "visits",
        "data-stream": "visits-x",
    },
    "send-elsewhere": {"operation-type": "proto-bulk", "bulk-size": 10},
    "delete": {"operation-type": "delete-index"},
    "create": {"operation-type": "create-index"},
    "create-readers": {"operation-type": "create-index", "index": ["readers", "x"]},
    "create-other": {"operation-type": "create-index", "index": "other"},
    "create-stream": {"operation-type": "create-data-stream", "data-stream": "visits-x"},
    "put": {"operation-type": "raw-request", "method": "PUT", "path": "/readers?timeout=1s"},
    "put-together": {
        "operation-type": "composite",
        "requests": [{"stream": [{"operation-type": "raw-request", "method": "PUT", "path": "/readers"}]}],
    },
    "put-other": {"operation-type": "raw-request", "method": "PUT", "path": "/_cluster/settings"},
    "restore": {"operation-type": "restore-snapshot", "repository": "r", "snapshot": "s"},
    "shrink": {
        "operation-type": "shrink-index",
        "source-index": "readers",
        "target-index": "n",
        "target-body": {},
    },
}


def track(*corpora: Corpus, indices: tuple[str, ...] = ("readers", "fines")) -> Track:
    decoded = {name: decode_operation({"name": name, **raw}) for name, raw in OPERATIONS.items()}
    own = PluginOperation(name="own-bulk", type="bulk", param_source="mine")
    return Track(
        name="house",
        operations={**decoded, "own-bulk": own},
        digest="t",
        indices=tuple(Index(name, IndexBody()) for name in indices),
        corpora=corpora,
    )


def challenge(*operations: str, name: str = "c") -> Challenge:
    return Challenge(name, tuple(Task(one) for one in operations))


def test_a_challenge_that_makes_what_the_track_declares_begins_on_nothing(cases: Cases):
    cases(
        "origins", lambda operations: origin_of(track(PEOPLE, VISITS), [challenge(*json.loads(operations))])
    )


def test_generated_documents_are_appended_to_what_was_prepared():
    assert origin_of(track(), [challenge("send", "ask")]) == "prepared"
    assert origin_of(track(), [challenge("create", "send")]) == "empty"


def test_where_nothing_is_declared_nothing_is_prepared():
    assert origin_of(track(indices=()), [challenge("ask")]) == "empty"
    assert origin_of(track(VISITS, indices=()), [challenge("ask")]) == "prepared"


def test_several_challenges_share_the_data_that_the_first_one_makes():
    first, second = challenge("create", "send", name="fill"), challenge("ask", name="ask")
    assert origin_of(track(PEOPLE), [first, second]) == "empty"
    with pytest.raises(UsageError, match="'ask' comes before 'fill', which makes the data"):
        origin_of(track(PEOPLE), [second, first])


def test_a_warm_up_before_there_is_data_is_refused():
    fill, warm = challenge("create", "send", name="fill"), challenge("ask", name="warm")
    with pytest.raises(UsageError, match="warm-up challenge 'warm' runs on every fresh node first"):
        origin_of(track(PEOPLE), [fill], [warm])
    assert origin_of(track(PEOPLE), [challenge("ask")], [warm]) == "prepared"


def files(*operations: str, origin: str = "empty") -> list[str]:
    chosen = needed_corpora(track(PEOPLE, VISITS), [challenge(*operations)], origin)  # type: ignore[arg-type]
    return [one.source_file for corpus in chosen for one in corpus.documents]


def test_only_the_documents_that_are_sent_are_needed():
    everything = ["readers.json", "fines.json", "visits.json"]
    assert files("ask", origin="prepared") == everything
    assert files("ask") == []
    assert files("send") == everything
    assert files("own-bulk") == everything
    assert files("send-readers") == ["readers.json"]
    assert files("send-visits", "ask") == ["visits.json"]
    assert files("send-readers", "send-visits") == ["readers.json", "visits.json"]
    assert files("send-elsewhere") == []


def test_data_streams_of_tasks_are_known_by_name():
    plan = make_plan(schedules=(challenge("create-stream", "send-visits", "ask"),))
    assert streams_made(plan, track(VISITS)) == ("visits-x",)
    assert sends_documents(track(), plan.schedules)
    assert not sends_documents(track(), [challenge("ask", "send-elsewhere")])
