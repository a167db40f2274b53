"""A running cluster before it is measured: never changed, its index found, what is doubtful about it said."""

from typing import Any

import msgspec
import pytest

from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.declared import places
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import UsageError
from benchctl.results.model import IndexFacts, IngestReport, SegmentFacts
from benchctl.results.plan import TargetSpec
from benchctl.run.session import TargetSubject
from benchctl.run.targets import corpus_of_targets, refuse_filling, refuse_writes, target_caveats
from benchctl.track.model import Challenge, Index, IndexBody, Task, Template, Track
from benchctl.track.operations.catalogue import decode_operation
from builders import ES, make_plan

FACTS = ClusterFacts("elasticsearch", "8.11.0", "d9ec", "9.8.0", "Temurin 21", (), ())
INDEX = IndexFacts("", 20_000, 1, (SegmentFacts(20_000, 1, "9.8.0"),), IngestReport(*[0] * 11))


def subject(endpoint: Endpoint | None = None, *, shards: int = 1, index: IndexFacts = INDEX) -> TargetSubject:
    endpoint = endpoint or Endpoint.of("http://127.0.0.1:9200")
    spec = msgspec.structs.replace(ES, target=TargetSpec(endpoint.hosts))
    return TargetSubject(spec, Address("es", endpoint), FACTS, shards, index)


def track(**operations: dict[str, Any]) -> Track:
    decoded = {name: decode_operation({"name": name, **raw}) for name, raw in operations.items()}
    return Track(name="big5", operations=decoded, digest="t", indices=(Index("big5", IndexBody()),))


READING = {
    "range": {"body": {"query": {"match_all": {}}}},
    "health": {"operation-type": "cluster-health"},
    "raw": {"operation-type": "raw-request", "path": "/_cat/indices"},
    "nap": {"operation-type": "sleep", "duration": 1},
}
WRITING = {
    "bulk": {"operation-type": "bulk", "bulk-size": 10},
    "merge": {"operation-type": "force-merge"},
    "refresh": {"operation-type": "refresh"},
    "drop": {"operation-type": "delete-index", "index": "big5"},
    "raw": {"operation-type": "raw-request", "path": "/big5", "method": "DELETE"},
    "post": {"operation-type": "raw-request", "path": "/big5/_doc", "method": "POST"},
    "settings": {"operation-type": "put-settings", "body": {}},
}


def test_reading_is_allowed():
    challenge = Challenge("c", tuple(Task(name) for name in READING))
    refuse_writes("es", [challenge], track(**READING))


@pytest.mark.parametrize("name", WRITING)
def test_writing_is_refused_before_anything_is_asked(name: str):
    challenge = Challenge("c", (Task(name), Task(name)))
    with pytest.raises(UsageError, match=rf"^challenge c would change the cluster es: operation '{name}'\n"):
        refuse_writes("es", [challenge], track(**WRITING))


def test_cluster_settings_are_refused():
    challenge = Challenge("c", (Task("range"),), cluster_settings={"search.max_buckets": 10})
    with pytest.raises(UsageError, match="its cluster-settings"):
        refuse_writes("es", [challenge], track(**READING))


def test_one_index_at_most_is_made_on_a_cluster():
    single = track()
    refuse_filling(single, places(single))
    several = msgspec.structs.replace(single, indices=(*single.indices, Index("more", IndexBody())))
    templated = msgspec.structs.replace(single, templates=(Template("t", "component", {}),))
    for wanted in (several, templated, msgspec.structs.replace(single, data_streams=("s",))):
        with pytest.raises(UsageError, match="--fill-target makes one index, and track 'big5' wants"):
            refuse_filling(wanted, places(wanted))


def caveats(found: TargetSubject, documents: int = 20_000) -> str:
    return "; ".join(target_caveats([found], documents))


def test_what_is_always_doubtful_about_a_cluster_is_said():
    assert caveats(subject()) == (
        "es was not filled by this run: nothing says that its 20,000 documents are the track's corpus; "
        "es was asked every operation before its first task, to compare the answers"
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
            ("not on this host", "travelled unencrypted"),
        ),
        (Endpoint(("http://127.0.0.1:1",), Auth.bearer("t")), ()),
        (Endpoint(("https://127.0.0.1:1",)), ()),
    ],
)
def test_the_way_to_a_cluster_is_said_where_it_matters(endpoint: Endpoint, said: tuple[str, ...]):
    known = ("not on this host", "certificate was not checked", "travelled unencrypted")
    text = caveats(subject(endpoint))
    assert tuple(one for one in known if one in text) == said


def test_several_shards_are_said():
    assert "with 3 shards" in caveats(subject(shards=3))


def test_the_corpus_of_targets_is_what_they_hold():
    plan = corpus_of_targets(make_plan(), {"es": subject()})
    assert plan.corpus.documents == 20_000
    assert plan.corpus.digest == make_plan().corpus.digest
