"""Terms of an index as values: which are drawn, where they are kept, and what cannot be asked."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from benchctl.engine.client import NodeRequestError
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import Plan
from benchctl.results.store import RunStore
from benchctl.run import orchestrate
from benchctl.run.bench import Bench, Observer
from benchctl.run.orchestrate import with_terms
from benchctl.run.session import Subject
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations.catalogue import decode_operation
from benchctl.track.values import Terms
from builders import make_plan

COUNTS = {
    "process.name": [("cron", 3), ("httpd", 14), ("kernel", 15), ("sshd", 200)],
    "metrics.size": [(1, 40), (2, 300)],
}


class Node:
    """One that answers with `COUNTS`, two terms a page."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.asked = 0
        self.client = self

    def request(self, method: str, target: str, *, body: Any) -> Any:
        assert (method, target) == ("POST", "/big5/_search")
        self.asked += 1
        if self.refuses:
            raise NodeRequestError("POST /big5/_search", 400, "Text fields are not optimised")
        composite = body["aggs"]["all"]["composite"]
        every = COUNTS[composite["sources"][0]["term"]["terms"]["field"]]
        after = composite.get("after", {}).get("term")
        first = 0 if after is None else 1 + [term for term, _ in every].index(after)
        page = every[first : first + composite["size"]]
        found: dict[str, Any] = {
            "buckets": [{"key": {"term": term}, "doc_count": count} for term, count in page]
        }
        if page:
            found["after_key"] = {"term": page[-1][0]}
        return {"aggregations": {"all": found}}

    def stop(self, *, at_once: bool) -> None:
        assert at_once


class Made(Subject):
    """A variant whose nodes are made up."""

    def __init__(self, root: Path, node: Node) -> None:
        object.__setattr__(self, "index", SimpleNamespace(root=root))
        object.__setattr__(self, "node", node)

    def workspace(self, *_: Any) -> Any:
        return nullcontext(Path("/"))

    def start(self, *_: Any) -> Any:
        return nullcontext(cast("Any", self).node)


@pytest.fixture(autouse=True)
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orchestrate, "_PAGE", 2)


def planned(**source: Any) -> tuple[Plan, Track]:
    raw = {"kind": "terms", "field": "process.name", "least": 10, "below": 100} | source
    operation = decode_operation(
        {"name": "by", "body": {"query": {"term": {"process.name": "${one}"}}}, "values": {"one": raw}}
    )
    challenge = Challenge("c", (Task("by"),), operations={"by": operation})
    plan = make_plan(schedules=(challenge,), seed=7)
    plan = msgspec.structs.replace(plan, corpus=msgspec.structs.replace(plan.corpus, documents=1000))
    track, _ = load_track("big5", {})
    return plan, track.with_challenges(challenge)


def drawn(tmp_path: Path, node: Node, **source: Any) -> tuple[Any, ...]:
    plan, track = planned(**source)
    bench = Bench(Home(tmp_path), RunStore(tmp_path / "runs"), Observer(), cast("Any", None))
    asked, ready = with_terms(bench, plan, track, [cast("Any", Made(tmp_path, node))])
    found = [
        cast("Any", operations["by"]).values["one"].items
        for operations in (asked.schedules[0].operations, ready.operations)
    ]
    assert found[0] == found[1]
    # Whoever goes on with the plan asks nobody again.
    again, _ = with_terms(bench, asked, track.with_challenges(*asked.schedules), [])
    assert again is asked
    return cast("tuple[Any, ...]", found[0])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, {"httpd", "kernel"}),
        ({"least": 1, "below": 15}, {"cron", "httpd"}),
        ({"least": 1, "below": 100}, {"cron", "httpd", "kernel"}),
        ({"least": 0.01, "below": 0.1}, {"httpd", "kernel"}),
        ({"least": 0.1, "below": 0.5}, {"sshd"}),
    ],
)
def test_terms_are_those_that_hit_so_many_documents(
    tmp_path: Path, source: dict[str, Any], expected: set[str]
):
    assert set(drawn(tmp_path, Node(), **source)) == expected


def test_the_seed_draws_as_many_as_are_wanted(tmp_path: Path):
    one = drawn(tmp_path, Node(), least=1, below=1000, size=2)
    assert len(one) == 2
    assert drawn(tmp_path, Node(), least=1, below=1000, size=2) == one
    assert sorted(drawn(tmp_path, Node(), least=1, below=1000)) == ["cron", "httpd", "kernel", "sshd"]


def test_orders_of_magnitude_come_in_turn_where_fields_are_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def names(**source: Any) -> list[str]:
        found = drawn(tmp_path, Node(), field=["process.name"], least=1, below=1000, **source)
        return [one["process.name"] for one in found]

    assert names()[0::3] == 2 * ["cron"]
    assert sorted(names()[1::3]) == ["httpd", "kernel"]
    assert names()[2::3] == 2 * ["sshd"]
    assert len(names(size=1)) == 3
    # Filled up, they are never more than values may be.
    monkeypatch.setattr(orchestrate, "POOL_LIMIT", 5)
    assert len(names()) == 3


def test_terms_of_several_fields_come_with_their_field(tmp_path: Path):
    found = drawn(tmp_path, Node(), field=["process.name", "metrics.size"])
    expected = [{"process.name": "httpd"}, {"process.name": "kernel"}, {"metrics.size": 1}]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    with pytest.raises(UsageError, match=r"process\.name or metrics\.size hits"):
        drawn(tmp_path, Node(), field=["process.name", "metrics.size"], least=500, below=900)
    for empty in ([], "", [""]):
        with pytest.raises(msgspec.ValidationError, match="field"):
            msgspec.convert({"kind": "terms", "field": empty, "least": 1, "below": 2}, Terms)
    with pytest.raises(ValueError, match="names a duplicate"):
        Terms(field=("a", "a"), least=1, below=2)


def test_the_index_is_asked_once(tmp_path: Path):
    node = Node()
    drawn(tmp_path, node)
    asked = node.asked
    assert asked == 3
    drawn(tmp_path, node, least=1)
    assert node.asked == asked
    (tmp_path / "terms.json").write_text("torn")
    drawn(tmp_path, node)
    assert node.asked == 2 * asked


def test_what_no_term_hits_and_what_cannot_be_asked_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no term of process\.name hits from 300 to 900 documents .* 200"):
        drawn(tmp_path, Node(), least=300, below=900)
    with pytest.raises(BenchctlError, match=r"process\.name cannot be read: Text fields"):
        drawn(tmp_path / "none", Node(refuses=True))
    plan, track = planned()
    bench = Bench(Home(tmp_path), RunStore(tmp_path / "runs"), Observer(), cast("Any", None))
    with pytest.raises(UsageError, match="the challenge creates its own"):
        with_terms(bench, msgspec.structs.replace(plan, origin="empty"), track, [])


@pytest.mark.parametrize(("least", "below"), [(0, 5), (5, 5), (0.5, 2), (-1, 1), (9, 5)])
def test_a_range_is_of_documents_or_of_their_share(least: float, below: float):
    with pytest.raises(ValueError, match="not a range of documents"):
        Terms(field="f", least=least, below=below)
