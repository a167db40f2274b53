"""Bulk requests: documents and their actions, from one source and from several."""

import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.load.transport import Request
from benchctl.load.work import Source, WorkContext
from benchctl.results.samples import Outcome
from load.playing import workload


class Shelf:
    """A corpus in memory that knows how often it is open."""

    def __init__(self, documents: int) -> None:
        self.count = documents
        self.opened = self.closed = 0

    @property
    def context(self) -> WorkContext:
        return WorkContext("big5", seed=7, documents=self.documents, document_count=self.count)

    def documents(self, start: int = 0) -> Iterator[bytes]:
        self.opened += 1
        try:
            for number in range(start, self.count):
                yield b'{"n":%d}\n' % number
        finally:
            self.closed += 1


def numbers(request: Request) -> list[int]:
    """Of the documents in a body, those of updates included."""
    documents = [json.loads(line) for line in request.body.splitlines()[1::2]]
    return [document.get("doc", document)["n"] for document in documents]


def ids(request: Request) -> list[str]:
    return [next(iter(json.loads(line).values()))["_id"] for line in request.body.splitlines()[0::2]]


def bulk(shelf: Shelf, clients: int = 1, **keys: Any) -> Any:
    return workload(shelf.context, clients, operation_type="bulk", **keys)


def requests(work: Any, *clients: int) -> list[Request]:
    """What these clients are given, one after the other, until the end."""
    programs = {client: work.program(client) for client in set(clients)}
    found = [programs[client]() for client in clients]
    return [made for made in found if made is not None]


@given(documents=st.integers(0, 60), size=st.integers(1, 13), order=st.lists(st.integers(0, 2), min_size=61))
def test_whoever_is_free_takes_the_next_documents(documents: int, size: int, order: list[int]):
    work = bulk(Shelf(documents), clients=3, bulk_size=size)
    made = requests(work, *order)
    assert [number for request in made for number in numbers(request)] == list(range(documents))
    assert [request.weight for request in made] == [len(numbers(request)) for request in made]
    assert not work.endless


def test_a_bulk_request_says_where_documents_go_and_how():
    work = bulk(
        Shelf(1), bulk_size=1, index="other", pipeline="p", refresh="wait_for", timeout="5m", retry_on_429=2
    )
    (request,) = requests(work, 0, 0)
    assert request.method == "POST"
    assert request.path == "/other/_bulk?pipeline=p&refresh=wait_for&timeout=5m"
    assert request.body == b'{"index":{}}\n{"n":0}\n'
    assert "Content-Type: application/x-ndjson" in request.headers
    assert (request.searches, request.retries) == (0, 2)
    (request,) = requests(bulk(Shelf(1), bulk_size=1, refresh=True), 0)
    assert request.path == "/big5/_bulk?refresh=true"


@given(
    documents=st.integers(1, 99),
    cuts=st.lists(st.integers(1, 99), max_size=4, unique=True),
)
def test_parts_that_follow_each_other_send_every_document_once(documents: int, cuts: list[int]):
    edges = [0, *sorted(cuts), 100]
    parts = [
        requests(
            bulk(
                Shelf(documents), bulk_size=10, ingest_from_percentage=first, ingest_percentage=last - first
            ),
            *[0] * 20,
        )
        for first, last in itertools.pairwise(edges)
    ]
    sent = [request.body for part in parts for request in part]
    assert sent == [request.body for request in requests(bulk(Shelf(documents), bulk_size=10), *[0] * 20)]


@pytest.mark.parametrize(("percentage", "bodies"), [(100, 10), (50, 5), (41, 5), (0.1, 1)])
def test_a_part_of_the_corpus_is_sent_in_whole_bodies(percentage: float, bodies: int):
    made = requests(bulk(Shelf(95), bulk_size=10, ingest_percentage=percentage), *[0] * 20)
    assert len(made) == bodies


def test_a_looped_corpus_begins_again():
    shelf = Shelf(5)
    work = bulk(shelf, bulk_size=2, looped=True, ingest_percentage=70)
    assert work.endless
    assert [numbers(request) for request in requests(work, *[0] * 7)] == [
        [0, 1],
        [2, 3],
        [4],
        [0, 1],
        [2, 3],
        [4],
        [0, 1],
    ]
    work.close()
    assert (shelf.opened, shelf.closed) == (3, 3)


def test_a_looped_corpus_without_documents_ends():
    assert requests(bulk(Shelf(0), bulk_size=2, looped=True), 0, 0) == []


def test_the_corpus_is_opened_when_it_is_needed_and_closed_on_demand():
    shelf = Shelf(9)
    work = bulk(shelf, bulk_size=2)
    program = work.program(0)
    assert shelf.opened == 0
    assert program() is not None
    work.close()
    assert (shelf.opened, shelf.closed) == (1, 1)
    assert program() is None
    work.close()


def test_threads_take_every_document_once():
    work = bulk(Shelf(4000), clients=4, bulk_size=7)
    made: list[list[Request]] = [[] for _ in range(4)]

    def take_all(client: int) -> None:
        program = work.program(client)
        while (request := program()) is not None:
            made[client].append(request)

    threads = [threading.Thread(target=take_all, args=(client,)) for client in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each client's own come in order; together they are all.
    assert sorted(n for part in made for request in part for n in numbers(request)) == list(range(4000))
    for part in made:
        own = [n for request in part for n in numbers(request)]
        assert own == sorted(own)


def test_without_a_corpus_nothing_can_be_sent():
    with pytest.raises(BenchctlError, match="'x' sends documents"):
        workload(WorkContext("big5"), operation_type="bulk", bulk_size=1)


CONFLICTS: dict[str, Any] = {"bulk_size": 50, "conflicts": "sequential", "conflict_probability": 40}


def test_conflicting_ids_are_those_of_the_same_client():
    work = bulk(Shelf(1000), clients=2, **CONFLICTS)
    first, second = (requests(work, *[client] * 10) for client in (0, 1))
    own = [{number for request in part for number in ids(request)} for part in (first, second)]
    assert not own[0] & own[1]
    assert len(own[0]) < 450
    assert [number for request in first for number in numbers(request)] == list(range(500))


def test_ids_are_the_same_whenever_the_task_runs_and_others_in_another():
    def given_ids(seed: int) -> list[str]:
        shelf = Shelf(50)
        context = WorkContext("big5", seed=seed, documents=shelf.documents, document_count=50)
        (request,) = requests(workload(context, 1, operation_type="bulk", **CONFLICTS), 0)
        return ids(request)

    assert given_ids(1) == given_ids(1) != given_ids(2)


def test_updates_are_of_ids_that_were_sent_before():
    work = bulk(Shelf(500), on_conflict="update", recency=0.5, **{**CONFLICTS, "conflicts": "random"})
    sent: set[str] = set()
    updates = 0
    for request in requests(work, *[0] * 10):
        for line in request.body.splitlines()[0::2]:
            ((action, target),) = json.loads(line).items()
            assert (action == "update") == (target["_id"] in sent)
            updates += action == "update"
            sent.add(target["_id"])
    assert 150 < updates < 250


def source(name: str, count: int, *, actions: bool = False, **target: Any) -> Source:
    """Numbered documents of a corpus."""

    def documents() -> Iterator[bytes]:
        for number in range(count):
            line = b'{"index":{"_index":"own"}}\n' if actions else b""
            yield line + b'{"%s":%d}\n' % (name.encode(), number)

    return Source(documents, count, name, has_actions=actions, **target)


CONTEXT = WorkContext(
    "fallback",
    sources=(
        source("logs", 5, index="one"),
        source("more", 3, index="two"),
        source("flow", 4, data_stream="stream"),
        source("free", 2, actions=True),
    ),
)


def sent(context: WorkContext = CONTEXT, **raw: Any) -> list[Request]:
    program = workload(context, operation_type="bulk", **raw).program(0)
    made = []
    while (request := program()) is not None:
        assert isinstance(request, Request)
        made.append(request)
    return made


def summary(requests: list[Request]) -> list[tuple[str, int]]:
    return [(request.path, request.weight) for request in requests]


def test_every_file_goes_where_its_documents_belong():
    assert summary(sent(bulk_size=4)) == [
        ("/one/_bulk", 4),
        ("/one/_bulk", 1),
        ("/two/_bulk", 3),
        ("/stream/_bulk", 4),
        ("/_bulk", 2),
    ]


def test_a_body_has_what_its_documents_need():
    one, _, _, stream, free = sent(bulk_size=4, ingest_percentage=100)
    assert one.body.startswith(b'{"index":{}}\n{"logs":0}\n{"index":{}}\n{"logs":1}\n')
    assert stream.body == b"".join(b'{"create":{}}\n{"flow":%d}\n' % number for number in range(4))
    assert free.body == b"".join(b'{"index":{"_index":"own"}}\n{"free":%d}\n' % number for number in range(2))


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ({"corpora": "logs"}, ["/one/_bulk"]),
        ({"corpora": ["more", "free"]}, ["/two/_bulk", "/_bulk"]),
        ({"indices": ["two", "one"]}, ["/one/_bulk", "/two/_bulk"]),
        ({"data_streams": "stream"}, ["/stream/_bulk"]),
    ],
)
def test_an_operation_takes_only_what_it_names(raw: Any, paths: list[str]):
    assert [path for path, _ in summary(sent(bulk_size=9, **raw))] == paths


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"corpora": "nowhere"}, "documents of corpora nowhere, but no corpus"),
        ({"indices": "one", "corpora": "more"}, "corpora more and indices one"),
        ({"ingest_doc_count": 15}, "ingest-doc-count is 15, and there are 14"),
        ({"conflicts": "random"}, "makes conflicts"),
    ],
)
def test_what_is_not_there_cannot_be_sent(raw: Any, said: str):
    with pytest.raises(BenchctlError, match=said):
        workload(CONTEXT, operation_type="bulk", bulk_size=1, **raw)


def test_the_only_corpus_of_a_context_has_no_name_to_choose_it_by():
    context = WorkContext("big5", documents=lambda: iter([b"{}\n"]), document_count=1)
    with pytest.raises(BenchctlError, match="corpora big5"):
        workload(context, operation_type="bulk", bulk_size=1, corpora="big5")
    (request,) = sent(context, bulk_size=1, data_stream="logs")
    assert (request.path, request.body) == ("/logs/_bulk", b'{"create":{}}\n{}\n')


def test_types_stand_in_the_path_for_nodes_that_have_them():
    context = WorkContext("i", sources=(source("a", 1, index="one", type="doc"),))
    assert summary(sent(context, bulk_size=1)) == [("/one/doc/_bulk", 1)]
    assert summary(sent(context, bulk_size=1, type="log")) == [("/one/log/_bulk", 1)]


@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=4), size=st.integers(1, 7), data=st.data())
def test_as_many_documents_are_sent_as_are_asked_for_from_the_beginning(
    counts: list[int], size: int, data: st.DataObject
):
    sources = [source(f"c{place}", count, index=f"i{place}") for place, count in enumerate(counts)]
    wanted = data.draw(st.integers(0, sum(counts)))
    if not wanted:
        return
    requests = sent(WorkContext("x", sources=tuple(sources)), bulk_size=size, ingest_doc_count=wanted)
    everything = b"".join(b"".join(one.open()) for one in sources).splitlines()
    documents = [line for request in requests for line in request.body.splitlines()[1::2]]
    assert documents == everything[:wanted]
    assert all(request.weight <= size for request in requests)


def test_a_percentage_is_taken_of_every_file_in_whole_requests():
    assert summary(sent(bulk_size=2, ingest_percentage=50, indices=["one", "two"])) == [
        ("/one/_bulk", 2),
        ("/one/_bulk", 2),
        ("/two/_bulk", 2),
    ]


def test_a_loop_begins_again_with_the_first_file():
    program = workload(
        CONTEXT, operation_type="bulk", bulk_size=9, looped=True, corpora=["more", "flow"]
    ).program(0)
    made = [program() for _ in range(5)]
    paths = [request.path for request in made if isinstance(request, Request)]
    assert paths == ["/two/_bulk", "/stream/_bulk"] * 2 + ["/two/_bulk"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("weight", 3, Outcome.OK),
        ("success-count", 3, Outcome.OK),
        ("success-count", 4, Outcome.BAD_BODY),
        ("error-count", 0, Outcome.OK),
    ],
)
def test_the_documents_of_a_request_are_asserted(name: str, value: int, expected: Outcome):
    context = WorkContext("big5", documents=Shelf(3).documents, document_count=3, assertions=True)
    assertions = [{"property": name, "condition": "==", "value": value}]
    (request,) = sent(context, bulk_size=5, assertions=assertions)
    assert (
        request.judge(200, b'{"took":1,"errors":false,"items":[{"index":{"status":201}}]}').outcome
        is expected
    )
