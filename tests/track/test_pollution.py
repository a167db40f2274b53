"""The warm-up that is derived from a track: searches for every kind of field, few, the same every time."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.track.library import track_names
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Challenge, Corpus, Documents, Index, IndexBody, Template, Track
from benchctl.track.operations.search import LoggedSearch, Search
from benchctl.track.pollution import LEAST_ITERATIONS, MOST_REQUESTS, POLLUTED, pollution
from foreign_tracks import BOOKS, SHOP, challenge_text, write_files

TYPES = (
    "date", "date_nanos", "long", "integer", "short", "byte", "unsigned_long", "double", "float",
    "half_float", "scaled_float", "keyword", "constant_keyword", "wildcard", "text", "match_only_text", "ip",
    "boolean", "geo_point", "percolator", "alias",
)  # fmt: skip


def track_of(properties: dict[str, Any], *bodies: dict[str, Any], **mapping: Any) -> Track:
    """A track of one index, and a search with each of these bodies."""
    return Track(
        name="t",
        digest="",
        indices=(Index("i", IndexBody(mappings={"properties": properties, **mapping})),),
        operations={f"o{n}": Search(name=f"o{n}", body=body) for n, body in enumerate(bodies)},
    )


def bodies_of(challenge: Challenge) -> dict[str, Any]:
    """The bodies of its searches, by name without `polluted:`."""
    found = {}
    for task in challenge.schedule:
        operation = challenge.operations[task.operation]
        assert isinstance(operation, Search)
        found[operation.name.removeprefix(f"{POLLUTED}:")] = operation.body
    return found


def texts_of(part: Any) -> Iterator[str]:
    """All keys and texts of a part of a body."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield key
            yield from texts_of(value)
    elif isinstance(part, list):
        for item in part:
            yield from texts_of(item)
    elif isinstance(part, str):
        yield part


def again(challenge: Challenge, track: Track) -> Challenge:
    """The challenge, written to a file and loaded."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "challenge.json"
        path.write_text(challenge_text(challenge), encoding="utf-8")
        # Remarks are the track's.
        return msgspec.structs.replace(load_challenge(str(path), track, {})[0], remarks=())


def check(track: Track, documents: int = 100_000) -> Challenge:
    """Derive the challenge, and check what every track's has."""
    challenge = pollution(track, documents)
    assert msgspec.json.encode(challenge) == msgspec.json.encode(pollution(track, documents))
    assert 1 <= len(challenge.schedule) <= MOST_REQUESTS
    assert {type(operation) for operation in challenge.operations.values()} == {Search}
    assert all((task.iterations or 0) >= LEAST_ITERATIONS for task in challenge.schedule)
    assert not any(text.startswith("$") for body in bodies_of(challenge).values() for text in texts_of(body))
    assert again(challenge, track) == challenge
    return challenge


@pytest.mark.parametrize("name", track_names())
def test_shipped_tracks_are_polluted_by_searches_that_come_back_from_a_file(name: str):
    track, _ = load_track(name, {})
    check(track)


@pytest.mark.parametrize("files", [{f"t/{name}": text for name, text in BOOKS.items()}, SHOP])
def test_foreign_tracks_are_polluted_too(files: dict[str, str], tmp_path: Path):
    main = next(name for name in files if name.endswith(("track.json", "workload.json")))
    track, _ = load_track(str((write_files(tmp_path, files) / main).parent), {})
    check(track)


NAMES = st.text(min_size=1, max_size=5)
FIELDS = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(TYPES) | st.text() | st.none() | st.integers()}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(("object", "nested", "keyword", "date")),
            "properties": st.dictionaries(NAMES, inner, max_size=4) | st.none() | st.text(),
            "fields": st.dictionaries(NAMES, inner, max_size=2),
            "index": st.booleans() | st.text(),
            "enabled": st.booleans(),
        },
    ),
    max_leaves=12,
)
LITERALS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(
    ("2023-01-01", "2023-01-01T00:00:00Z", "now-1d", "0001-01-01", "9999-12-31T23:59:59", "${x}", "{{ x }}")
)  # fmt: skip
REQUESTS = st.recursive(
    LITERALS,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        NAMES
        | st.sampled_from(
            ("query", "range", "term", "terms", "match", "field", "sort", "aggs", "gte", "lt", "value",
             "ranges", "query_string", "date_histogram", "avg")
        ),
        inner,
        max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip


@given(
    properties=st.dictionaries(NAMES, FIELDS, max_size=8),
    dynamic=st.sampled_from([True, False, "strict", "true"]),
    body=st.dictionaries(NAMES, REQUESTS, max_size=3),
    documents=st.integers(0, 10**10),
)
def test_any_mapping_and_operation_gives_a_valid_challenge(
    properties: dict[str, Any], dynamic: object, body: dict[str, Any], documents: int
):
    check(track_of(properties, {"query": body}, dynamic=dynamic), documents)


def test_a_track_without_fields_is_asked_for_documents():
    assert list(bodies_of(check(track_of({}))))[:3] == ["all", "count", "index-order"]


def test_every_type_that_can_be_searched_has_requests_and_others_none():
    challenge = check(track_of({kind: {"type": kind} for kind in TYPES}))
    kinds = {name.partition(":")[0] for name in bodies_of(challenge)}
    for kind in ("date", "long", "double", "keyword", "text", "ip", "boolean", "geo_point"):
        assert kind in kinds or len(challenge.schedule) == MOST_REQUESTS


def test_a_date_is_sorted_both_ways_and_ranges_split_the_documents_in_two():
    bodies = bodies_of(check(track_of({"at": {"type": "date"}})))
    sorts = [body["sort"][0]["at"]["order"] for body in bodies.values() if "at" in str(body.get("sort"))]
    assert {"asc", "desc"} <= set(sorts)
    below = bodies["date:at:range-below"]["query"]["bool"]["filter"][0]["range"]["at"]
    above = bodies["date:at:range-above"]["query"]["constant_score"]["filter"]["range"]["at"]
    assert below["lt"] == above["gte"]
    assert any("search_after" in body for body in bodies.values())
    assert {body.get("track_total_hits") for body in bodies.values()} == {None, True, False}


def test_bounds_are_those_of_the_tracks_own_operations_but_not_the_same():
    days = [f"2023-01-{day:02}T00:00:00" for day in range(1, 9)]
    track = track_of(
        {"at": {"type": "date"}, "size": {"type": "long"}},
        *({"query": {"range": {"at": {"gte": one, "lt": other}}}} for one, other in pairwise(days)),
        *({"query": {"range": {"size": {"lte": number}}}} for number in (3, 30, 300, 3000, 30000, 300000)),
    )
    bodies = bodies_of(check(track))
    assert bodies["date:at:range-wide"]["query"]["range"]["at"] == {
        "gte": "2023-01-01T00:00:01Z",
        "lt": "2023-01-08T00:00:01Z",
        "format": "strict_date_optional_time",
    }
    assert bodies["long:size:range-wide"]["query"]["range"]["size"] == {"gte": 3, "lt": 300000}


def test_fields_that_no_mapping_has_are_guessed_from_what_operations_do_with_them():
    bodies = [
        {"query": {"term": {"host": "a"}}},
        {"query": {"range": {"seen": {"gte": "2023-01-01"}}}},
        {"query": {"range": {"bytes": {"gte": 20}}}},
        {"query": {"match": {"title": "some words"}}},
        {"aggs": {"a": {"terms": {"field": "region"}}}},
        {"aggs": {"a": {"avg": {"field": "load"}}}},
    ]
    found = {":".join(name.split(":")[:2]) for name in bodies_of(check(track_of({}, *bodies)))}
    assert found >= {
        "keyword:host", "date:seen", "long:bytes", "text:title", "keyword:region", "long:load",
    }  # fmt: skip
    closed = bodies_of(check(track_of({"at": {"type": "date"}}, *bodies, dynamic="strict")))
    assert not any("host" in name for name in closed)


def test_fields_that_operations_use_come_first():
    properties = {f"k{number}": {"type": "keyword"} for number in range(30)}
    used = check(track_of(properties, {"aggs": {"a": {"terms": {"field": "k27"}}}}))
    assert next(name for name in bodies_of(used) if name.startswith("keyword:")).startswith("keyword:k27:")


def test_multi_fields_and_objects_are_walked_and_nested_objects_are_not():
    properties = {
        "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "cloud": {"properties": {"region": {"type": "keyword"}, "off": {"type": "ip", "index": False}}},
        "tags": {"type": "nested", "properties": {"key": {"type": "keyword"}}},
    }
    uses = ({"aggs": {"a": {"terms": {"field": name}}}} for name in ("cloud.off", "query"))
    challenge = check(track_of({**properties, "query": {"type": "percolator"}}, *uses))
    bodies = bodies_of(challenge)
    found = {":".join(name.split(":")[:2]) for name in bodies}
    assert {"text:title", "keyword:title.raw", "keyword:cloud.region"} <= found
    assert not any("cloud.off" in name or "query" in name or "tags" in name for name in found)


def test_searches_name_the_indices_that_have_a_field_where_there_are_several():
    def index(name: str, **fields: str) -> Index:
        return Index(
            name, IndexBody(mappings={"properties": {n: {"type": kind} for n, kind in fields.items()}})
        )

    track = Track(
        name="t", digest="", operations={}, indices=(index("a", at="date"), index("b", at="date", k="ip"))
    )
    indices = {
        name.split(":")[2]: operation.index
        for name, operation in check(track).operations.items()
        if isinstance(operation, Search) and name.count(":") > 1
    }
    assert indices == {"at": "a,b", "k": "b"}


def test_mappings_of_templates_and_their_components_are_read():
    part = {"template": {"mappings": {"properties": {"seen": {"type": "date"}}}}}
    whole = {"composed_of": ["part"], "template": {"mappings": {"properties": {"host": {"type": "keyword"}}}}}
    old = {"mappings": {"properties": {"size": {"type": "long"}}}}
    track = Track(
        name="t",
        digest="",
        operations={},
        data_streams=("logs-a",),
        templates=(
            Template("part", "component", part),
            Template("whole", "composable", whole, "logs-*"),
            Template("old", "index", old, "old-*"),
        ),
    )
    found = {":".join(name.split(":")[:2]) for name in bodies_of(check(track))}
    assert {"date:seen", "keyword:host", "long:size"} <= found


def test_more_documents_get_fewer_iterations_and_at_least_two():
    track = track_of({"at": {"type": "date"}})
    counts = [pollution(track, documents).schedule[0].iterations or 0 for documents in (1000, 10**6, 10**9)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1] > counts[2] == LEAST_ITERATIONS


def test_iterations_can_be_set_as_of_other_challenges():
    track, _ = load_track("big5", {})
    challenge, known = load_challenge(POLLUTED, track, {"iterations": 7}, 10**9)
    assert {task.iterations for task in challenge.schedule} == {7}
    assert known == {"iterations"}


def test_nothing_of_a_track_is_read_as_a_template_or_as_a_value():
    names = ("{{ 1 }}", "${x}", "a{b", "{% if %}")
    track = track_of({name: {"type": "date"} for name in names}, {"query": {"term": {"k": "{{ k }}"}}})
    assert json.loads(challenge_text(check(track)))["name"] == POLLUTED


def test_a_log_of_the_track_is_the_pollution_as_it_is():
    file = Documents(source_file="q.json", document_count=30, source_format="queries")
    logged = Track(name="t", operations={}, digest="", logs=(Corpus("pollution", (file,)),))
    challenge = pollution(logged, 10)
    (task,) = challenge.schedule
    operation = challenge.operations[task.operation]
    assert isinstance(operation, LoggedSearch)
    assert (operation.log, operation.shape, task.iterations) == ("pollution", None, 30)
    assert task.operation.startswith(f"{POLLUTED}:")
    # However long it is.
    endless = msgspec.structs.replace(file, document_count=10**9)
    many = msgspec.structs.replace(logged, logs=(Corpus("pollution", (endless,)),))
    assert pollution(many, 10).schedule[0].iterations == 5_000
