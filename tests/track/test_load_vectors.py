"""The shipped track of vectors: one graph in the words of either engine, and its searches."""

from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import IndexBody

ENGINES = ("elasticsearch", "opensearch")
SPACES = {
    "l2": ("l2_norm", "l2"),
    "cosine": ("cosine", "cosinesimil"),
    "dot_product": ("max_inner_product", "innerproduct"),
}


def bodies(**params: Any) -> tuple[IndexBody, IndexBody]:
    track, _ = load_track("vectors", params)
    es, os = (track.of(engine).indices[0].body for engine in ENGINES)
    return es, os


def vectors(**params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    es, os = (body.mappings["properties"]["vector"] for body in bodies(**params))
    return es, os


def test_engines_have_the_same_graph_in_words_of_their_own():
    es, os = vectors()
    assert es["index_options"] == {"type": "hnsw", "m": 16, "ef_construction": 100}
    assert os["method"]["parameters"] == {"m": 16, "ef_construction": 100}
    assert (es["type"], es["dims"]) == ("dense_vector", 128)
    assert (os["type"], os["dimension"], os["method"]["engine"]) == ("knn_vector", 128, "lucene")
    es_body, os_body = bodies()
    assert os_body.settings == es_body.settings | {"index.knn": True}
    for body in (es_body, os_body):
        del body.mappings["properties"]["vector"]
    assert es_body.mappings == os_body.mappings


@pytest.mark.parametrize(("space", "names"), SPACES.items())
def test_spaces_have_the_engines_names(space: str, names: tuple[str, str]):
    es, os = vectors(space=space)
    assert (es["similarity"], os["method"]["space_type"]) == names


def test_parameters_reach_both_graphs():
    es, os = vectors(quantisation="int8_hnsw", m=8, ef_construction=50)
    assert es["index_options"] == {"type": "int8_hnsw", "m": 8, "ef_construction": 50}
    assert os["method"]["parameters"] == {"encoder": {"name": "sq"}, "m": 8, "ef_construction": 50}


def test_what_only_one_engine_has_is_not_replaced_in_the_other():
    es, os = vectors(quantisation="bbq_hnsw")
    assert es["index_options"]["type"] == os["method"]["parameters"]["encoder"]["name"] == "bbq_hnsw"


def test_a_space_that_is_none_is_refused():
    with pytest.raises(UsageError, match=r"elasticsearch\.json|opensearch\.json") as caught:
        load_track("vectors", {"space": "l3"})
    assert "parameter space: 'l3' is none of l2, cosine, dot_product" in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [("selectivity", 0), ("selectivity", 101), ("m", 1), ("ef_construction", 1.5), ("k", "ten"), ("k", True),
     ("quantisation", "int2"), ("candidates", 10_001), ("warm_up", 0), ("queries", 0)],
)  # fmt: skip
def test_a_parameter_out_of_its_bounds_is_refused(name: str, value: Any):
    with pytest.raises(UsageError, match=f"line [0-9]+, .*parameter {name}: {value!r} is"):
        load_track("vectors", {name: value})


def test_its_challenge_searches_all_and_a_tenth():
    track, _ = load_track("vectors", {"candidates": 50, "k": 5})
    challenge, _ = load_challenge("knn", track, {})
    assert challenge.default
    assert [(task.label, task.warmup_iterations, task.iterations) for task in challenge.schedule] == [
        ("knn", 10_000, 1000),
        ("knn-filtered", 2000, 1000),
    ]
    operations = {**track.operations, **challenge.operations}
    plain, filtered = (operations[task.operation] for task in challenge.schedule)
    asked = [(one.field, one.k, one.candidates, one.filter) for one in (plain, filtered)]
    assert asked == [("vector", 5, 50, None), ("vector", 5, 50, {"range": {"group": {"lt": 10}}})]
