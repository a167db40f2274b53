"""The track of vectors on real nodes: recall as counted by other means, and alike graphs."""

import math
from pathlib import Path
from typing import Any

import pytest

from benchctl.corpus.vectors import generated_groups, generated_queries, generated_vectors
from benchctl.engine.equipment import equip
from benchctl.engine.node import Node
from benchctl.engine.prepared_index import PreparedIndex, copy_index
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.plan import EngineName
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.nodes, pytest.mark.timeout(600)]

VARIANTS: dict[EngineName, str] = {
    "elasticsearch": "es",
    "opensearch": "os-knn=os@2.19.1,plugin:org.opensearch.plugin:opensearch-knn:2.19.1.0",
}
DOCUMENTS, QUERIES, K, CANDIDATES, PERCENT = 2_000, 1_000, 10, 10, 10
HEAP_MB = 512


@pytest.fixture(scope="module")
def record(benchctl: Benchctl, store: RunStore, installations: object) -> RunRecord:
    """One fork of both engines, whose measured searches are those of all queries, once."""
    assert installations
    variants = [word for text in VARIANTS.values() for word in ("--variant", text)]
    counts = {"queries": QUERIES, "iterations": QUERIES, "warmup_iterations": 0, "candidates": CANDIDATES}
    params = [word for name, value in counts.items() for word in ("--param", f"{name}={value}")]
    words = ("--docs", str(DOCUMENTS), "--forks", "1", "--heap", f"{HEAP_MB}m")
    done = benchctl("run", "--track", "vectors", "--challenge", "knn", *variants, *params, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return store.find("latest", finished=False).load()


def search(engine: EngineName, query: list[float], accepted: dict[str, Any]) -> dict[str, Any]:
    """A body as users write it."""
    common = {"size": K, "docvalue_fields": ["number"]}
    if engine == "elasticsearch":
        asked = {"field": "vector", "query_vector": query, "k": K, "num_candidates": CANDIDATES, **accepted}
        return {"knn": asked, **common}
    asked = {"vector": query, "k": K, "method_parameters": {"ef_search": CANDIDATES}, **accepted}
    return {"query": {"knn": {"vector": asked}}, **common}


def counted(home: Home, record: RunRecord, engine: EngineName, scratch: Path) -> dict[str, float]:
    """Recall by task: searches of a node on the run's index, against distances to all documents."""
    name = VARIANTS[engine].partition("=")[0]
    spec = next(spec for spec in record.plan.variants if spec.name == name)
    kit = equip(home, spec, lambda *_: None)
    (root,) = home.indices.glob(f"{engine}-{spec.version}-vectors-{DOCUMENTS}-*")
    copy_index(PreparedIndex(root, record.indices[name]), scratch / "data")
    vectors = generated_vectors(record.plan.corpus.seed, DOCUMENTS).rows().tolist()
    groups = generated_groups(record.plan.corpus.seed, DOCUMENTS).tolist()
    queries = generated_queries(record.plan.corpus.seed, QUERIES).rows().tolist()
    recalls = {}
    with Node(
        kit.builder,
        kit.jdk,
        data=scratch / "data",
        folder=scratch / "boot",
        owner=home.node_owner,
        heap_mb=HEAP_MB,
        expect_index="vectors",
    ) as node:
        for task, accepted, share in (
            ("knn", {}, 100),
            ("knn-filtered", {"filter": {"range": {"group": {"lt": PERCENT}}}}, PERCENT),
        ):
            found = 0
            among = [number for number in range(DOCUMENTS) if groups[number] < share]
            for query in queries:
                nearest = sorted(among, key=lambda number, query=query: math.dist(query, vectors[number]))[:K]
                hits = node.client.search("vectors", search(engine, query, accepted))["hits"]["hits"]
                found += sum(hit["fields"]["number"][0] in nearest for hit in hits)
            recalls[task] = found / (K * QUERIES)
        node.stop()
    return recalls


def test_recall_is_what_a_count_of_hits_among_the_nearest_of_all_gives(
    record: RunRecord, home: Home, engine: EngineName, scratch: Path
):
    name = VARIANTS[engine].partition("=")[0]
    (fork,) = (fork for fork in record.forks if fork.variant == name)
    sent = [(task.label, task.driver and task.driver.requests, task.failures) for task in fork.summaries]
    assert sent == [
        ("knn", QUERIES, {}),
        ("knn-filtered", QUERIES, {}),
    ]
    measured = {task.label: task.meters["recall"] for task in fork.summaries}
    expected = counted(home, record, engine, scratch)
    # All but the first of each turn are measured.
    assert measured == {task: pytest.approx(recall, abs=0.01) for task, recall in expected.items()}
    assert 0.5 < measured["knn"] <= 1


def test_the_run_tells_that_the_runtime_lacks_simd(record: RunRecord):
    assert [text for text in record.caveats if "jdk.incubator.vector" in text]
