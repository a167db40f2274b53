"""A running cluster before it is measured: never changed, its index found, what is doubtful about it said."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.declared import MARK, places
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.model import IndexFacts, IngestReport, SegmentFacts
from benchctl.results.plan import TargetSpec
from benchctl.run.session import TargetSubject
from benchctl.run.targets import (
    check_targets,
    corpus_of_targets,
    refuse_filling,
    refuse_writes,
    target_caveats,
)
from benchctl.run.work import work_context
from benchctl.track.model import Challenge, Corpus, Documents, Index, IndexBody, Task, Template, Track
from benchctl.track.operations.catalogue import decode_operation
from builders import ES, make_plan

FACTS = ClusterFacts("elasticsearch", "8.11.0", "d9ec", "9.8.0", "Temurin 21", (), ())
INDEX = IndexFacts("", 20_000, 1, (SegmentFacts(20_000, 1, "9.8.0"),), IngestReport(*[0] * 11))


def subject(
    endpoint: Endpoint | None = None, *, shards: int = 1, index: IndexFacts | None = INDEX
) -> TargetSubject:
    endpoint = endpoint or Endpoint.of("http://127.0.0.1:9200")
    spec = msgspec.structs.replace(ES, target=TargetSpec(endpoint.hosts))
    return TargetSubject(spec, Address("es", endpoint), FACTS, shards, index)


def track(**operations: dict[str, Any]) -> Track:
    decoded = {name: decode_operation({"name": name, **raw}) for name, raw in operations.items()}
    return Track(name="big5", operations=decoded, digest="t", indices=(Index("big5", IndexBody()),))


def together(*requests: dict[str, Any]) -> dict[str, Any]:
    """A composite of these, some of them at some depth."""
    inner = {"operation-type": "composite", "requests": [{"stream": [*requests]}]}
    return {"operation-type": "composite", "requests": [{"operation-type": "search"}, inner]}


POINT = {"operation-type": "create-point-in-time", "name": "point"}
READING = {
    "range": {"body": {"query": {"match_all": {}}}},
    "health": {"operation-type": "cluster-health"},
    "raw": {"operation-type": "raw-request", "path": "/_cat/indices"},
    "nap": {"operation-type": "sleep", "duration": 1},
    "composite": together({"operation-type": "raw-request", "path": "/_cat"}),
    "point": together(POINT, {"operation-type": "delete-point-in-time", "with-point-in-time-from": "point"}),
    "async": together(
        {"operation-type": "submit-async-search", "name": "sent", "body": {}},
        {"operation-type": "get-async-search", "retrieve-results-for": "sent"},
        {"operation-type": "delete-async-search", "delete-results-for": "sent"},
    ),
}
WRITING = {
    "bulk": {"operation-type": "bulk", "bulk-size": 10},
    "merge": {"operation-type": "force-merge"},
    "refresh": {"operation-type": "refresh"},
    "drop": {"operation-type": "delete-index", "index": "big5"},
    "raw": {"operation-type": "raw-request", "path": "/big5", "method": "DELETE"},
    "post": {"operation-type": "raw-request", "path": "/big5/_doc", "method": "POST"},
    "settings": {"operation-type": "put-settings", "body": {}},
    "composite": together({"operation-type": "raw-request", "path": "/big5", "method": "DELETE"}),
    "points": together(POINT, {"operation-type": "delete-point-in-time"}),
}


def refused(challenge: Challenge, found: Track, *, writes: bool = False, **plan: Any) -> bool:
    spec = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",), writes=writes))
    return refuse_writes(spec, make_plan(schedules=(challenge,), **plan), found)


def test_reading_is_allowed():
    challenge = Challenge("c", tuple(Task(name) for name in READING))
    assert not refused(challenge, track(**READING))
    assert not refused(challenge, track(**READING), writes=True, origin="empty")


def test_leave_to_write_that_nothing_needs_is_told():
    plan = make_plan(schedules=(Challenge("c", (Task("range"),)),), origin="empty")
    spec = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",), writes=True))
    with pytest.raises(UsageError, match=r"^--allow-writes: nothing in c writes\n"):
        check_targets(msgspec.structs.replace(plan, variants=(spec,)), track(**READING))


@pytest.mark.parametrize("name", WRITING)
def test_writing_is_refused_before_anything_is_asked(name: str):
    challenge = Challenge("c", (Task(name), Task(name)))
    with pytest.raises(UsageError, match=rf"^challenge c would change the cluster es: operation '{name}'\n"):
        refused(challenge, track(**WRITING))


def test_cluster_settings_are_refused():
    challenge = Challenge("c", (Task("range"),), cluster_settings={"search.max_buckets": 10})
    for writes in (False, True):
        with pytest.raises(UsageError, match="its cluster-settings"):
            refused(challenge, track(**READING), writes=writes, origin="empty")


ON_ITS_OWN = {
    "create": {"operation-type": "create-index"},
    "again": {"operation-type": "create-index", "index": ["big5"], "settings": {"refresh_interval": "5s"}},
    "bulk": {"operation-type": "bulk", "bulk-size": 10},
    "named": {"operation-type": "bulk", "bulk-size": 10, "index": "big5"},
    "merge": {"operation-type": "force-merge"},
    "refresh": {"operation-type": "refresh", "index": "big5"},
    "flush": {"operation-type": "flush"},
    "drop": {"operation-type": "delete-index", "index": "big5"},
}


def test_a_challenge_that_makes_its_data_writes_where_that_is_allowed():
    challenge = Challenge("c", tuple(Task(name) for name in ON_ITS_OWN))
    assert refused(challenge, track(**ON_ITS_OWN), writes=True, origin="empty")
    for writes, origin in ((False, "empty"), (True, "prepared")):
        with pytest.raises(UsageError, match="would change the cluster es: operation 'create', operation"):
            refused(challenge, track(**ON_ITS_OWN), writes=writes, origin=origin)


@pytest.mark.parametrize(
    "raw",
    [
        {"operation-type": "create-index", "index": "others"},
        {"operation-type": "create-index", "index": ["big5", "others"]},
        {"operation-type": "create-index", "body": {"aliases": {"logs": {}}}},
        {"operation-type": "create-index", "body": {"settings": {"index": {"final_pipeline": "reroute"}}}},
        {"operation-type": "create-index", "settings": {"default_pipeline": "reroute"}},
        {"operation-type": "delete-index", "index": "big*"},
        {"operation-type": "delete-index", "index": "big5,others"},
        {"operation-type": "delete-index", "index": "_all"},
        {"operation-type": "delete-data-stream", "data-stream": "others"},
        {"operation-type": "refresh", "index": "_all"},
        {"operation-type": "force-merge", "index": "*"},
        {"operation-type": "bulk", "bulk-size": 10, "index": "others"},
        {"operation-type": "bulk", "bulk-size": 10, "pipeline": "reroute"},
        {"operation-type": "bulk", "bulk-size": 10, "request-params": {"pipeline": "reroute"}},
        {"operation-type": "create-index-template", "template": "big5", "body": {"index_patterns": ["*"]}},
        {"operation-type": "put-pipeline", "id": "p", "body": {}},
        {"operation-type": "put-settings", "body": {}},
        {"operation-type": "raw-request", "path": "/big5", "method": "PUT"},
        {
            "operation-type": "run-until",
            "path": "/big5",
            "method": "DELETE",
            "json-path": "a",
            "criterion": {"operator": "exists"},
        },
    ],
)
def test_everything_else_stays_refused(raw: dict[str, Any]):
    challenge = Challenge("c", (Task("create"), Task("odd")))
    with pytest.raises(UsageError, match=r"^challenge c would change the cluster es: operation 'odd'\n"):
        refused(challenge, track(**ON_ITS_OWN, odd=raw), writes=True, origin="empty")


def test_operations_of_a_challenge_are_looked_at_too():
    odd = decode_operation({"name": "odd", "operation-type": "delete-index", "index": "others"})
    challenge = Challenge("c", (Task("odd"),), operations={"odd": odd})
    with pytest.raises(UsageError, match="operation 'odd'"):
        refused(challenge, track(), writes=True, origin="empty")


@given(st.text("ab5*?,-_.<>+%/ ", max_size=6))
def test_a_name_that_reaches_further_than_one_index_is_refused(name: str):
    plain = re.fullmatch(r"[ab5][ab5._+-]*", name) is not None
    found = msgspec.structs.replace(track(**ON_ITS_OWN), indices=(Index(name, IndexBody()),))
    if plain:
        assert refused(Challenge("c", (Task("create"),)), found, writes=True, origin="empty")
    else:
        with pytest.raises(UsageError):
            refused(Challenge("c", (Task("create"),)), found, writes=True, origin="empty")


def test_without_a_name_several_indices_would_be_the_whole_cluster():
    several = msgspec.structs.replace(track(**ON_ITS_OWN), data_streams=("logs",))
    with pytest.raises(UsageError, match="operation 'merge'"):
        refused(Challenge("c", (Task("merge"),)), several, writes=True, origin="empty")


def test_action_lines_may_name_any_index():
    acting = Corpus("c", (Documents(source_file="d.json", includes_action_and_meta_data=True),))
    found = msgspec.structs.replace(track(**ON_ITS_OWN), corpora=(acting,))
    with pytest.raises(UsageError, match="operation 'bulk'"):
        refused(Challenge("c", (Task("bulk"),)), found, writes=True, origin="empty")


def test_indices_made_on_a_cluster_are_marked_from_the_start(tmp_path: Path):
    found = track()
    spec = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",), writes=True))
    assert MARK in work_context(make_plan(), found, Home(tmp_path), spec).mark
    assert not work_context(make_plan(), found, Home(tmp_path), ES).mark


def test_what_becomes_of_made_indices_is_said():
    made = dataclasses.replace(subject(), index_facts=None)
    assert (
        caveats(made)
        == "es: every fork made its own indices on the running cluster, which were removed after it"
    )


def test_one_index_at_most_is_made_on_a_cluster():
    single = track()
    refuse_filling(single, places(single))
    several = msgspec.structs.replace(single, indices=(*single.indices, Index("more", IndexBody())))
    templated = msgspec.structs.replace(single, templates=(Template("t", "component", {}),))
    for wanted in (several, templated, msgspec.structs.replace(single, data_streams=("s",))):
        with pytest.raises(UsageError, match="`fill: true` creates one index, but track 'big5' has"):
            refuse_filling(wanted, places(wanted))


def caveats(found: TargetSubject, documents: int = 20_000) -> str:
    return "; ".join(target_caveats([found], documents))


def test_what_is_always_doubtful_about_a_cluster_is_said():
    assert caveats(subject()) == (
        "es was not filled by this run: it is unknown whether its 20,000 documents are the track's corpus; "
        "every operation ran on es before its first task, to compare results"
    )


def test_a_cluster_that_benchctl_filled_holds_the_corpus():
    assert "not filled by" not in caveats(subject(index=msgspec.structs.replace(INDEX, key="k")))


def test_other_numbers_of_documents_are_said():
    assert "es holds 20,000 documents, the run's corpus has 1,000,000" in caveats(subject(), 1_000_000)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        (Endpoint.of("https://search-1:9200"), ("not on this host",)),
        (
            Endpoint(("https://search-1:9200",), Auth.bearer("t"), verify=False),
            ("not on this host", "certificate was not checked"),
        ),
        (
            Endpoint(("http://search-1:9200",), Auth.bearer("t"), verify=False),
            ("not on this host", "sent unencrypted"),
        ),
        (Endpoint(("http://127.0.0.1:1",), Auth.bearer("t")), ()),
        (Endpoint(("https://127.0.0.1:1",)), ()),
    ],
)
def test_the_way_to_a_cluster_is_said_where_it_matters(endpoint: Endpoint, said: tuple[str, ...]):
    known = ("not on this host", "certificate was not checked", "sent unencrypted")
    text = caveats(subject(endpoint))
    assert tuple(one for one in known if one in text) == said


def test_several_shards_are_said():
    assert "with 3 shards" in caveats(subject(shards=3))


def test_the_corpus_of_targets_is_what_they_hold():
    own = make_plan()
    filled = msgspec.structs.replace(own, variants=(subject().spec,))
    plan = corpus_of_targets(filled, [subject()])
    assert plan is not None
    assert plan.corpus.documents == 20_000
    assert corpus_of_targets(own, [subject()]) is None
    assert plan.corpus.digest == make_plan().corpus.digest
