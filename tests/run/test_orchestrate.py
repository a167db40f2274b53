"""When a run may go on, and how it is left when it may not."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from benchctl.endpoint import Endpoint
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.prepared_index import PreparedIndex
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.results.model import IndexFacts, IngestReport, RunRecord, SegmentFacts
from benchctl.results.plan import EngineName, TargetSpec, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run import open_run, orchestrate
from benchctl.run.bench import Bench, SilentObserver
from benchctl.run.orchestrate import engine_changes, module_caveats, vector_caveats
from benchctl.run.session import Subject, TargetSubject
from benchctl.track.model import Index, IndexBody, Track

RecordMaker = Callable[..., RunRecord]
INDEX = IndexFacts("k", 9, 1, (SegmentFacts(9, 1, "9.8.0"),), IngestReport(9, 1, 1, 1.5, 1, 1, 1, 1, 1, 1, 1))


def subject(record: RunRecord, index: IndexFacts) -> Subject:
    installation = cast("Installation", None)
    return Subject(record.plan.variants[0], installation, cast("Jdk", None), PreparedIndex(Path("/i"), index))


def test_variants_of_one_engine_with_other_modules_have_a_caveat():
    def with_modules(name: str, *modules: str, engine: EngineName = "opensearch") -> Subject:
        installation = Installation(engine, "2.11.0", Path("/e"), "a" * 64, modules, "9.7.0")
        return Subject(VariantSpec(name, engine, "2.11.0"), installation, cast("Jdk", None), None)

    other_engine = with_modules("es", "apm", engine="elasticsearch")
    plain, full = with_modules("os", "netty", "grpc"), with_modules("full", "netty", "reindex", "geo")
    assert module_caveats([other_engine, plain, dataclasses.replace(plain)]) == ()
    (text,) = module_caveats([plain, other_engine, full])
    assert "of full are not those of os (more geo, reindex; without grpc)" in text


def test_vectors_have_a_caveat_on_runtimes_without_simd():
    def on(name: str, *modules: str) -> Subject:
        runtime = Jdk(Path("/jdk"), "21.0.5", "x", 21, frozenset(modules))
        return Subject(VariantSpec(name, "opensearch", "2.11.0"), cast("Installation", None), runtime, None)

    body = IndexBody(mappings={"properties": {"x": {"type": "dense_vector"}}})
    vectors, plain = (
        Track(name="t", operations={}, digest="", indices=(Index("i", one),)) for one in (body, IndexBody())
    )
    small, full = on("small", "java.base"), on("full", "java.base", "jdk.incubator.vector")
    (text,) = vector_caveats([small, full, dataclasses.replace(small)], vectors)
    assert "of small, small lacks jdk.incubator.vector" in text
    assert vector_caveats([full], vectors) == vector_caveats([small, full], plain) == ()


def test_an_index_that_was_built_again_is_another_draw(record: RecordMaker):
    run = msgspec.structs.replace(record(), indices={"es": INDEX})
    kept = msgspec.structs.replace(INDEX, cached=True)
    assert engine_changes(run, [subject(run, kept)]) == []
    again = msgspec.structs.replace(kept, ingest=msgspec.structs.replace(INDEX.ingest, ingest_s=1.6))
    assert engine_changes(run, [subject(run, again)]) == [
        "the prepared index of es has changed or was built again"
    ]


def test_any_of_several_builds_that_was_built_again_is_another_draw(record: RecordMaker):
    second = msgspec.structs.replace(INDEX, key="k2")
    run = msgspec.structs.replace(record(), indices={"es": INDEX}, builds={"es": (INDEX, second)})
    found = dataclasses.replace(
        subject(run, INDEX),
        more_builds=(PreparedIndex(Path("/i2"), msgspec.structs.replace(second, cached=True)),),
    )
    assert engine_changes(run, [found]) == []
    changed = ["the prepared index of es has changed or was built again"]
    again = msgspec.structs.replace(second, ingest=msgspec.structs.replace(INDEX.ingest, ingest_s=1.6))
    other = dataclasses.replace(found, more_builds=(PreparedIndex(Path("/i2"), again),))
    assert engine_changes(run, [other]) == changed
    assert engine_changes(run, [dataclasses.replace(found, more_builds=())]) == changed


def test_an_index_on_a_cluster_must_stay_as_it_was(record: RecordMaker):
    run = msgspec.structs.replace(record(), indices={"es": INDEX})
    spec = msgspec.structs.replace(run.plan.variants[0], target=TargetSpec(("http://a:1",)))
    found = TargetSubject(
        spec, Address("es", Endpoint.of("http://a:1")), cast("ClusterFacts", None), 1, INDEX
    )
    filled_by_others = msgspec.structs.replace(INDEX, key="")
    assert engine_changes(run, [dataclasses.replace(found, index_facts=filled_by_others)]) == []
    grown = msgspec.structs.replace(INDEX, documents=10)
    assert engine_changes(run, [dataclasses.replace(found, index_facts=grown)]) == [
        "the index of es has changed"
    ]


@pytest.mark.parametrize(
    ("error", "raised", "status"),
    [
        (KeyboardInterrupt(), BenchctlError, "interrupted"),
        (BenchctlError("no"), BenchctlError, "failed"),
        (ZeroDivisionError(), ZeroDivisionError, "failed"),
    ],
)
def test_a_run_never_stays_running(
    record: RecordMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    raised: type[BaseException],
    status: str,
):
    def fail(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(open_run, "check_answers", fail)
    folder = RunFolder(tmp_path / "elsewhere" / "x")
    store = RunStore(folder.path.parent)
    bench = Bench(Home(tmp_path / "home"), store, SilentObserver(), threading.Event())
    run = open_run.OpenRun(bench, folder, record("x"), cast("Track", None), [])
    with pytest.raises(raised) as caught:
        orchestrate._measured(bench, run, {})
    assert folder.load().status == status
    if isinstance(error, KeyboardInterrupt):
        assert isinstance(caught.value, BenchctlError)
        assert caught.value.exit_code == ExitCode.INTERRUPTED
        assert caught.value.hint == f"resume with: benchctl resume {folder.path}"
