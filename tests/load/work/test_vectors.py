"""Vectors of data sets: bodies of both engines, recall against plain sums, bulk requests, what is refused."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.vectors import generated_groups, generated_queries, generated_vectors
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.transport import Answer, Request
from benchctl.load.work import WorkContext
from benchctl.load.work.vectors import check_data_sets, encode, recall
from benchctl.results.plan import CorpusSpec, EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations.catalogue import decode_operation
from load.playing import found, play_operation, request_of, workload

DOCUMENTS = 300
CORPUS = CorpusSpec(seed=3, documents=DOCUMENTS, generator_version=1, digest="", generator="vectors")
FIELDS: Mapping[EngineName, Mapping[str, Any]] = {
    "elasticsearch": {"type": "dense_vector", "dims": 128, "similarity": "l2_norm"},
    "opensearch": {
        "type": "knn_vector",
        "dimension": 128,
        "method": {"engine": "lucene", "space_type": "l2"},
    },
}
ES: EngineName = "elasticsearch"
OS: EngineName = "opensearch"
NEAREST = {"field": "v", "k": 5}
BY_GROUP = {"range": {"group": {"lt": 40}}}


def context(engine: EngineName = ES, home: Path | None = None, **field: Any) -> WorkContext:
    mapped = {**FIELDS[engine], **field}
    return WorkContext(
        "vectors",
        index_body={"mappings": {"properties": {"v": mapped, "number": {"type": "integer"}}}},
        engine=engine,
        seed=7,
        corpus=CORPUS,
        home=None if home is None else Home(home),
        document_count=DOCUMENTS,
    )


def searched(where: WorkContext, **keys: Any) -> Request:
    return request_of(where, operation_type="vector-search", **{**NEAREST, **keys})


def body_of(where: WorkContext, **keys: Any) -> Any:
    return json.loads(searched(where, **keys).body)


def several(where: WorkContext, count: int, clients: int = 1, client: int = 0, **keys: Any) -> list[Request]:
    program = workload(where, clients, operation_type="vector-search", **{**NEAREST, **keys}).program(client)
    made = [program() for _ in range(count)]
    return [request for request in made if isinstance(request, Request)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "corpora").mkdir()
    return tmp_path


def query(number: int) -> list[float]:
    return [round(value, 3) for value in generated_queries(CORPUS.seed, number + 1).rows()[number].tolist()]


# Bodies.


def test_elasticsearch_is_asked_by_its_knn_part():
    assert body_of(context(ES)) == {
        "size": 5,
        "_source": False,
        "docvalue_fields": ["number"],
        "knn": {"field": "v", "query_vector": query(0), "k": 5, "num_candidates": 8},
    }
    keys = {"candidates": 50, "filter": BY_GROUP, "oversample__factor": 2.0}
    assert body_of(context(ES), **keys)["knn"] == {
        "field": "v",
        "query_vector": query(0),
        "k": 5,
        "num_candidates": 50,
        "filter": BY_GROUP,
        "rescore_vector": {"oversample": 2.0},
    }


def test_a_data_stream_may_be_searched():
    paths = [searched(context(), **keys).path for keys in ({}, {"index": "i"}, {"data_stream": "s"})]
    assert [path.partition("?")[0] for path in paths] == ["/vectors/_search", "/i/_search", "/s/_search"]


def test_opensearch_is_asked_by_a_query():
    assert body_of(context(OS)) == {
        "size": 5,
        "_source": False,
        "docvalue_fields": ["number"],
        "query": {"knn": {"v": {"vector": query(0), "k": 5}}},
    }
    keys = {"candidates": 50, "filter": BY_GROUP, "oversample__factor": 2.0}
    assert body_of(context(OS), **keys)["query"]["knn"]["v"] == {
        "vector": query(0),
        "k": 5,
        "filter": BY_GROUP,
        "method_parameters": {"ef_search": 50},
        "rescore": {"oversample_factor": 2.0},
    }


@pytest.mark.parametrize("engine", [ES, OS])
def test_keys_of_the_body_stand_beside_the_query(engine: EngineName):
    own = {"size": 3, "stored_fields": "_none_", "query": {"match_all": {}}, "docvalue_fields": ["x"]}
    body = body_of(context(engine), body=own, profile_query=True)
    assert {key: body[key] for key in own if key != "query"} == {
        key: own[key] for key in own if key != "query"
    }
    assert body["profile"] is True
    assert ("match_all" in json.dumps(body), "query" in body) == (False, engine == OS)


def test_parts_of_the_own_query_are_merged():
    es = body_of(context(ES), body={"knn": {"similarity": 0.5, "k": 99}})
    assert (es["knn"]["similarity"], es["knn"]["k"]) == (0.5, 5)
    own = {"query": {"knn": {"v": {"method_parameters": {"ef_search": 7}}}}}
    assert body_of(context(OS), body=own)["query"]["knn"]["v"]["method_parameters"] == {"ef_search": 7}


def test_filters_of_hits_are_no_filters_of_neighbours():
    late = {"filter__body": BY_GROUP, "filter__type": "post_filter"}
    for engine in (ES, OS):
        body = body_of(context(engine), **late)
        assert body["post_filter"] == BY_GROUP
        assert json.dumps(body).count("group") == 1
    both = body_of(context(OS), filter__body=BY_GROUP, filter__type="boolean")["query"]["bool"]
    assert both["filter"] == BY_GROUP
    assert "knn" in both["must"][0]
    early = body_of(context(OS), filter__body=BY_GROUP, filter__type="efficient")
    assert early["query"]["knn"]["v"]["filter"] == BY_GROUP


def test_a_filter_without_a_type_has_no_effect(home: Path):
    request = searched(context(ES, home), filter__body=BY_GROUP, filter__type={})
    assert b"filter" not in request.body
    assert judged(request, numbered_hits(brute_force(0))).recall == 1.0


def test_values_change_beside_the_vectors():
    values = {"n": {"kind": "list", "items": [1, 2, 3]}}
    made = several(context(), 3, values=values, filter={"term": {"group": "${n}"}})
    assert [json.loads(one.body)["knn"]["filter"]["term"]["group"] for one in made] == [1, 2, 3]


def test_requests_take_the_queries_in_turn_and_clients_share_them():
    made = several(context(), 5, num__vectors=3)
    assert [json.loads(one.body)["knn"]["query_vector"] for one in made] == [
        query(number) for number in (0, 1, 2, 0, 1)
    ]
    shared = several(context(), 2, clients=2, client=1, num__vectors=3)
    assert [json.loads(one.body)["knn"]["query_vector"] for one in shared] == [query(1), query(0)]
    work = workload(context(), operation_type="vector-search", **NEAREST, num__vectors=3, repetitions=2)
    assert (work.endless, work.requests) == (False, 6)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_encoded_vectors_mean_the_same_float32(values: list[float]):
    rows = np.array([values], np.float32)
    (text,) = encode(rows)
    assert np.array_equal(np.array(json.loads(text), np.float32), rows[0])


def test_thousandths_are_written_as_such():
    assert encode(np.array([[0.1, -1.234, 9.999]], np.float32)) == [b"[0.1,-1.234,9.999]"]


# Recall.


@given(
    hits=st.lists(st.integers(0, 30), max_size=20, unique=True),
    exact=st.lists(st.integers(0, 30), max_size=10, unique=True),
    missing=st.integers(0, 4),
)
def test_recall_is_a_plain_share(hits: list[int], exact: list[int], missing: int):
    k = len(exact) + missing
    judged = recall(hits, frozenset(exact), k)
    if not exact:
        assert judged is None
        return
    assert judged == pytest.approx(sum(hit in exact for hit in hits[:k]) / len(exact))


def test_hits_that_repeat_count_once():
    assert recall([1, 1, 2], frozenset({1, 2}), 2) == 1.0


def judged(request: Request, hits: list[dict[str, Any]]) -> Answer:
    return request.judge(200, json.dumps(found(hits, len(hits))).encode())


def numbered_hits(numbers: list[int]) -> list[dict[str, Any]]:
    return [{"_id": f"x{number}", "fields": {"number": [number]}} for number in numbers]


def brute_force(number: int, selected: Any = slice(None), *, space: str = "l2") -> list[int]:
    rows = generated_vectors(CORPUS.seed, DOCUMENTS).rows().astype(float)
    asked = generated_queries(CORPUS.seed, number + 1).rows()[number].astype(float)
    far = ((rows - asked) ** 2).sum(axis=1)
    if space == "cosine":
        far = -(rows @ asked) / np.linalg.norm(rows, axis=1)
    numbers = np.arange(DOCUMENTS)[selected]
    order: list[int] = numbers[np.argsort(far[numbers])].tolist()
    return order[:5]


@pytest.mark.parametrize("engine", [ES, OS])
def test_answers_are_held_against_the_exact_neighbours(home: Path, engine: EngineName):
    first, second = several(context(engine, home), 2)
    exact = brute_force(0)
    assert judged(first, numbered_hits(exact)).recall == 1.0
    assert judged(first, numbered_hits([exact[0], -5, *exact[2:]])).recall == 0.8
    assert judged(second, numbered_hits(brute_force(1))).recall == 1.0
    assert judged(first, []).recall == 0.0


def test_the_space_is_that_of_the_mapping(home: Path):
    request = searched(context(ES, home, similarity="cosine"))
    assert judged(request, numbered_hits(brute_force(0, space="cosine"))).recall == 1.0


@pytest.mark.parametrize(
    ("condition", "groups"),
    [
        (BY_GROUP, range(40)),
        ({"term": {"group": 7}}, [7]),
        ({"term": {"group": {"value": 7}}}, [7]),
        ({"terms": {"group": [7, 8]}}, [7, 8]),
    ],
)
def test_filters_by_group_have_neighbours_of_their_own(home: Path, condition: Any, groups: Any):
    request = searched(context(ES, home), filter=condition)
    selected = np.isin(generated_groups(CORPUS.seed, DOCUMENTS), list(groups))
    exact = brute_force(0, selected)
    assert judged(request, numbered_hits(exact)).recall == 1.0


@pytest.mark.parametrize(
    "keys",
    [
        {"calculate_recall": False},
        {"filter": {"range": {"number": {"lt": 40}}}},
        {"filter": {"range": {"group": {"lt": 40, "gt": 3}}}},
        {"filter": {"range": {"group": {"gte": 40}}}},
        {"filter__body": BY_GROUP, "filter__type": "post_filter"},
        {"body": {"size": 3}},
        {"body": {"post_filter": BY_GROUP}},
        {"body": {"knn": {"filter": [BY_GROUP]}}},
    ],
)
def test_without_exact_neighbours_there_is_no_recall(home: Path, keys: dict[str, Any]):
    answer = judged(searched(context(ES, home), **keys), numbered_hits([1]))
    assert (answer.outcome, answer.recall) == (Outcome.OK, None)


def test_fewer_documents_have_other_neighbours(home: Path):
    fewer = replace(context(ES, home), corpus=CorpusSpec(3, 100, 1, "", generator="vectors"))
    exact = brute_force(0, slice(0, 100))
    assert exact != brute_force(0)
    assert judged(searched(fewer), numbered_hits(exact)).recall == 1.0


def test_hits_without_numbers_are_no_answer(home: Path):
    answer = judged(searched(context(ES, home)), [{"_id": "abc"}])
    assert (answer.outcome, "'number'" in answer.reason) == (Outcome.BAD_BODY, True)


def test_failures_stay_what_they_are(home: Path):
    request = searched(context(ES, home))
    assert request.judge(500, b"{}").recall is None
    assert request.judge(500, b"{}").outcome is Outcome.HTTP_ERROR


# Data sets.


def hdf5(path: Path, **more: Any) -> Path:
    draw = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file["train"] = draw.random((20, 4), np.float32)
        file["test"] = draw.random((3, 4), np.float32)
        for name, rows in {"neighbors": [[4, 2], [0, -1], [-1, -1]], **more}.items():
            if rows is not None:
                file[name] = np.array(rows)
    return path


def of_file(path: Path, **keys: Any) -> dict[str, Any]:
    return {"data__set__format": "hdf5", "data__set__path": str(path), "k": 2, **keys}


def test_a_file_has_queries_and_their_neighbours(tmp_path: Path):
    file = hdf5(tmp_path / "a.hdf5")
    made = several(context(dims=4), 4, **of_file(file))
    with h5py.File(file) as data:
        queries = data["test"][:]
    sent = [json.loads(one.body)["knn"]["query_vector"] for one in made]
    assert np.array_equal(np.array(sent[:3], np.float32), queries)
    assert sent[3] == sent[0]
    hits = [{"_id": "2"}, {"_id": "9"}]
    assert [judged(one, hits).recall for one in made[:3]] == [0.5, 0.0, None]


def test_ids_may_be_among_the_fields(tmp_path: Path):
    own = {"stored_fields": "_none_", "docvalue_fields": ["_id"]}
    keys = of_file(hdf5(tmp_path / "a.hdf5"), body=own, id_field_name="_id")
    (request,) = several(context(dims=4), 1, **keys)
    hits = [{"fields": {"_id": ["4"]}}, {"fields": {"_id": ["2"]}}]
    assert judged(request, hits).recall == 1.0


def test_a_corpus_of_the_track_may_be_the_data_set(tmp_path: Path):
    where = replace(context(dims=4), data_sets={("sift", "hdf5"): hdf5(tmp_path / "a.hdf5")})
    assert len(several(where, 1, data__set__corpus="sift", k=2)) == 1
    with pytest.raises(BenchctlError, match="no corpus 'other' of source-format hdf5"):
        several(where, 1, data__set__corpus="other", k=2)
    missing = replace(where, data_sets={("sift", "hdf5"): tmp_path / "b.hdf5"})
    with pytest.raises(BenchctlError, match=r"b\.hdf5"):
        several(missing, 1, data__set__corpus="sift", k=2)


@pytest.mark.parametrize(
    ("more", "keys", "said"),
    [
        ({"neighbors": None}, {}, "no data set 'neighbors'"),
        ({}, {"k": 3}, "2 neighbours, and 3 are required"),
        ({}, {"field": None}, "require field"),
        ({}, {"data__set__path": "", "data__set__corpus": "x"}, "no corpus 'x'"),
    ],
)
def test_data_sets_that_do_not_fit_are_refused(tmp_path: Path, more: Any, keys: Any, said: str):
    raw: dict[str, Any] = {**NEAREST, **of_file(hdf5(tmp_path / "a.hdf5", **more)), **keys}
    given_keys = {key: value for key, value in raw.items() if value is not None}
    with pytest.raises(BenchctlError, match=said):
        workload(context(dims=4), operation_type="vector-search", **given_keys)


def test_other_dimensions_than_those_of_the_mapping_are_refused(tmp_path: Path):
    file = hdf5(tmp_path / "a.hdf5")
    with pytest.raises(BenchctlError, match="has 4 dimensions, and field 'v' 128"):
        several(context(), 1, **of_file(file))
    with pytest.raises(BenchctlError, match="has 4 dimensions"):
        workload(context(), operation_type="bulk-vector-data-set", field="v", bulk__size=5, **bulk_keys(file))


def test_fields_of_nested_documents_are_refused(tmp_path: Path):
    where = context(dims=4)
    nested = {"type": "nested", "properties": where.index_body["mappings"]["properties"]}
    where = replace(where, index_body={"mappings": {"properties": {"deep": nested}}})
    with pytest.raises(BenchctlError, match=r"field 'deep\.v' is nested"):
        several(where, 1, **of_file(hdf5(tmp_path / "a.hdf5"), field="deep.v"))


def test_a_space_without_exact_neighbours_is_refused(home: Path):
    with pytest.raises(BenchctlError, match="cannot compute exact neighbours by l1 are unknown"):
        several(context(OS, home, method={"space_type": "l1"}), 1)
    assert several(context(OS, home, method={"space_type": "l1"}), 1, calculate_recall=False)


def test_other_documents_have_no_vectors_to_search_for():
    with pytest.raises(BenchctlError, match="no vectors to search for"):
        several(replace(context(), corpus=None), 1)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"max__distance": 2.0}, "by radius"),
        ({"min__score": 0.5}, "by radius"),
        ({"filter__type": "script", "filter__body": BY_GROUP}, "filter_type script"),
        ({"filter__type": "boolean", "filter__body": BY_GROUP}, "filter_type boolean"),
    ],
)
def test_other_searches_are_not_done(keys: dict[str, Any], said: str):
    played = play_operation(
        lambda _: (200, {}), context(ES), operation_type="vector-search", **NEAREST, **keys
    )
    assert played.answer is not None
    assert said in played.answer.lacking
    assert played.requests == []


# Bulk requests.


def bulk_keys(file: Path) -> dict[str, Any]:
    return {"data__set__format": "hdf5", "data__set__path": str(file)}


def bulk(file: Path, **keys: Any) -> list[Request]:
    where = context(dims=4)
    work = workload(
        where, operation_type="bulk-vector-data-set", field="v", bulk__size=8, **bulk_keys(file), **keys
    )
    program = work.program(0)
    made = []
    while isinstance(request := program(), Request):
        made.append(request)
    return made


def test_vectors_are_indexed_under_their_numbers(tmp_path: Path):
    file = hdf5(tmp_path / "a.hdf5")
    made = bulk(file, index="other")
    assert [(one.method, one.path, one.weight) for one in made] == [
        ("POST", "/other/_bulk", weight) for weight in (8, 8, 4)
    ]
    lines = [json.loads(line) for one in made for line in one.body.splitlines()]
    assert lines[::2] == [{"index": {"_id": str(number)}} for number in range(20)]
    with h5py.File(file) as data:
        assert np.array_equal(np.array([line["v"] for line in lines[1::2]], np.float32), data["train"][:])


def test_numbers_may_be_in_a_field(tmp_path: Path):
    (made,) = bulk(hdf5(tmp_path / "a.hdf5"), id_field_name="number", num__vectors=3)
    lines = [json.loads(line) for line in made.body.splitlines()]
    assert lines[::2] == [{"index": {}}] * 3
    assert [line["number"] for line in lines[1::2]] == [0, 1, 2]
    assert made.path == "/vectors/_bulk"


def test_attributes_are_not_indexed(tmp_path: Path):
    with pytest.raises(msgspec.ValidationError, match="filter_attributes: only vectors are indexed"):
        bulk(hdf5(tmp_path / "a.hdf5"), filter__attributes=["colour"])


# Before a node starts.


def checked(
    path: Path, *, num: int = -1, search: Mapping[str, Any] | None = None, within: bool = False, **field: Any
) -> None:
    files = {"data_set_path": str(path), "field": "v"}
    asked = {"name": "s", "operation-type": "vector-search", "k": 2, **files, **(search or {})}
    check_data_sets(
        [
            decode_operation(
                {"name": "b", "operation-type": "bulk-vector-data-set", "bulk_size": 8, "num_vectors": num}
                | files
            ),
            decode_operation(
                {"name": "c", "operation-type": "composite", "requests": [asked]} if within else asked
            ),
        ],
        context(dims=4, **field),
    )


def test_neighbours_in_more_vectors_than_are_indexed_are_refused(tmp_path: Path):
    path = hdf5(tmp_path / "a.hdf5")
    checked(path)
    checked(path, num=5)
    with pytest.raises(BenchctlError, match="neighbour 4 is not a vector of the corpus"):
        checked(path, num=4)
    with pytest.raises(BenchctlError, match="neighbour 4 is not a vector of the corpus"):
        checked(path, num=4, within=True)
    checked(path, num=4, search={"calculate-recall": False})


@pytest.mark.parametrize("part", ["train", "test"])
def test_vectors_that_no_engine_takes_are_refused(tmp_path: Path, part: str):
    path = hdf5(tmp_path / "zero.hdf5")
    with h5py.File(path, "a") as file:
        file[part][1] = 0
    checked(path, similarity="l2_norm")
    with pytest.raises(BenchctlError, match=r"zero\.hdf5: vector 1, .* is zero"):
        checked(path, similarity="cosine")
    infinite = hdf5(tmp_path / "nan.hdf5")
    with h5py.File(infinite, "a") as file:
        file[part][2] = math.nan
    with pytest.raises(BenchctlError, match=r"nan\.hdf5: vector 2, .*not a number"):
        checked(infinite)
