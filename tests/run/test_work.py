"""What operations are told of a plan, and what they lack, found out without a node."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.plan import CorpusFile, CorpusSpec, Plan
from benchctl.run.work import check_work, default_target, work_context
from benchctl.track.model import Challenge, Corpus, Documents, Index, IndexBody, Task, Track
from benchctl.track.operations.catalogue import decode_operation
from builders import ES, OS, make_plan

ONE = (Index("a", IndexBody({"number_of_shards": 2})),)
TWO = (*ONE, Index("b", IndexBody()))
FILE = CorpusFile(path="/f", documents=4, held=8, raw_bytes=80, sha256="s", corpus="people", index="a")


def track(indices: tuple[Index, ...] = ONE, **changes: Any) -> Track:
    return Track(name="house", operations={}, digest="t", indices=indices, **changes)


def asking(**raw: Any) -> tuple[Plan, Track]:
    """A plan whose only task is this operation."""
    operation = decode_operation({"name": "it", **raw})
    challenge = Challenge("c", (Task("it"),))
    files = CorpusSpec(0, 4, 0, "d", (FILE,))
    found = msgspec.structs.replace(track(), operations={"it": operation})
    return make_plan(schedules=(challenge,), corpus=files, origin="empty"), found


def test_the_only_index_is_what_operations_mean_that_name_none():
    for origin in ("prepared", "empty"):
        assert default_target(make_plan(origin=origin), track()) == "a"
    assert default_target(make_plan(), track((), data_streams=("s",))) == "s"


def test_of_several_indices_all_are_meant_as_far_as_they_are_there():
    assert default_target(make_plan(origin="prepared"), track(TWO)) == "a,b"
    assert default_target(make_plan(origin="empty"), track(TWO)) == "_all"
    streamed = track(ONE, corpora=(Corpus("c", (Documents(source_file="f", target_index="b"),)),))
    assert default_target(make_plan(origin="prepared"), streamed) == "a,b"


def test_operations_are_told_what_the_track_declares(tmp_path: Path):
    context = work_context(make_plan(), track(TWO, data_streams=("s",)), Home(tmp_path), OS)
    assert (context.index_name, context.engine, context.data_streams) == ("a,b,s", "opensearch", ("s",))
    assert context.indices == {"a": {"settings": {"number_of_shards": 2}}, "b": {}}
    # An index that is none of the track's gets nobody else's body.
    assert context.index_body == {}
    assert context.documents is not None
    single = work_context(make_plan(), track(), Home(tmp_path), OS)
    assert single.index_body == {"settings": {"number_of_shards": 2}}


def test_documents_come_from_files_where_there_are_any(tmp_path: Path):
    plan = make_plan(corpus=CorpusSpec(0, 4, 0, "d", (FILE,)))
    context = work_context(plan, track(), Home(tmp_path), ES)
    assert context.documents is None
    assert [(one.corpus, one.index, one.document_count) for one in context.sources] == [("people", "a", 4)]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"operation-type": "bulk", "bulk-size": 10, "corpora": "fines"}, "sends documents of corpora fines"),
        ({"operation-type": "bulk", "bulk-size": 10, "ingest-doc-count": 5}, "there are 4 documents"),
        ({"operation-type": "create-data-stream"}, "the track declares no data streams"),
        ({"operation-type": "create-index-template"}, "declares no index templates"),
    ],
)
def test_what_an_operation_lacks_is_found_out_before_any_node(raw: dict[str, Any], said: str, tmp_path: Path):
    plan, found = asking(**raw)
    with pytest.raises(UsageError, match=f"^challenge 'c', operation 'it'.*{said}"):
        check_work(plan, found, Home(tmp_path))


@pytest.mark.parametrize(
    "raw", [{"body": {}}, {"operation-type": "bulk", "bulk-size": 10}, {"operation-type": "delete-index"}]
)
def test_what_lacks_nothing_passes(raw: dict[str, Any], tmp_path: Path):
    check_work(*asking(**raw), Home(tmp_path))


def test_assertions_are_checked_where_the_plan_says_so(tmp_path: Path):
    for assertions in (False, True):
        plan = make_plan(assertions=assertions)
        assert work_context(plan, track(), Home(tmp_path), OS).assertions is assertions
