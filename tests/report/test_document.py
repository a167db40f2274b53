from collections.abc import Callable

import msgspec

from benchctl.report.formats import Document, document
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run


def test_a_document_is_the_analysis_with_its_sources(record: RunRecord):
    analysis = analyse_run(record)
    found = document(analysis, [record, record])
    assert msgspec.json.decode(msgspec.json.encode(found), type=Document) == found
    assert [one.run for one in found.sources] == [record.id]
    printed = msgspec.to_builtins(found)
    assert {**msgspec.to_builtins(analysis), "sources": printed["sources"], "gate": None} == printed
    assert next(iter(printed)) == "schema_version"


def test_a_source_says_where_and_on_what(record: RunRecord):
    (source,) = document(analyse_run(record), [record]).sources
    assert (source.run, source.environment, source.engines) == (record.id, record.environment, record.engines)
    assert source.variants == record.plan.variants
    assert source.indices == {name: (facts,) for name, facts in record.indices.items()}


def test_every_build_of_an_index_is_there(build: Callable[..., RunRecord]):
    first = build()
    facts = first.indices["es"]
    record = build(builds={"es": (facts, facts)})
    (source,) = document(analyse_run(record), [record]).sources
    assert {name: len(builds) for name, builds in source.indices.items()} == {"es": 2, "os": 1}
