"""Which documents are sent: those of the corpora, indices and data streams that are meant, and how many."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.load.request import Request
from benchctl.load.workload import Source, WorkContext
from load.playing import workload


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
        ({"corpora": "nowhere"}, "documents of corpora nowhere, and there is no corpus"),
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
