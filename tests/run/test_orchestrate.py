"""When a run may go on, and how it is left when it may not."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from benchctl.endpoint import Endpoint
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.prepared_index import PreparedIndex
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.lock import SHARE_VARIABLE
from benchctl.results.model import IndexFacts, IngestReport, RunRecord, SegmentFacts
from benchctl.results.plan import EngineName, TargetSpec, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run import orchestrate, study
from benchctl.run.bench import Bench, Observer
from benchctl.run.orchestrate import engine_caveats, engine_changes, host_caveats, plan_caveats
from benchctl.run.session import Subject, TargetSubject
from benchctl.track.model import Index, IndexBody, Track
from builders import make_environment, make_plan

RecordMaker = Callable[..., RunRecord]
INDEX = IndexFacts("k", 9, 1, (SegmentFacts(9, 1, "9.8.0"),), IngestReport(9, 1, 1, 1.5, 1, 1, 1, 1, 1, 1, 1))


def subject(record: RunRecord, index: IndexFacts) -> Subject:
    installation = cast("Installation", None)
    return Subject(record.plan.variants[0], installation, cast("Jdk", None), PreparedIndex(Path("/i"), index))


def equipped(
    name: str, engine: EngineName = "opensearch", modules: tuple[str, ...] = (), runtime: tuple[str, ...] = ()
) -> Subject:
    installation = Installation(engine, "2.11.0", Path("/e"), "a" * 64, modules, "9.7.0")
    jdk = Jdk(Path("/jdk"), "21.0.5", "x", 21, frozenset(runtime))
    return Subject(VariantSpec(name, engine, "2.11.0"), installation, jdk, None)


PLAIN = Track(name="t", operations={}, digest="", indices=(Index("i", IndexBody()),))


def test_variants_of_one_engine_with_other_modules_have_a_caveat():
    other_engine = equipped("es", "elasticsearch", ("apm",))
    plain = equipped("os", modules=("netty", "grpc"))
    full = equipped("full", modules=("netty", "reindex", "geo"))
    assert engine_caveats([other_engine, plain, dataclasses.replace(plain)], PLAIN) == ()
    (text,) = engine_caveats([plain, other_engine, full], PLAIN)
    assert "of full are not those of os (geo, grpc, reindex)" in text


def test_vectors_have_a_caveat_on_runtimes_without_simd():
    body = IndexBody(mappings={"properties": {"x": {"type": "dense_vector"}}})
    vectors = msgspec.structs.replace(PLAIN, indices=(Index("i", body),))
    small, full = equipped("small"), equipped("full", runtime=("jdk.incubator.vector",))
    (text,) = engine_caveats([small, full, dataclasses.replace(small)], vectors)
    assert "of small, small lacks jdk.incubator.vector" in text
    assert engine_caveats([full], vectors) == engine_caveats([small, full], PLAIN) == ()


def test_a_busy_or_shared_host_is_a_caveat():
    quiet = make_environment(load_before=(0.0, 0.0, 0.0), other_java=(), governor=None)
    busy = make_environment(load_before=(99.0, 0.0, 0.0), other_java=("pid 7",), governor="powersave")
    assert host_caveats(quiet, {}) == ()
    told = " ".join(host_caveats(busy, {SHARE_VARIABLE: "1"}))
    assert all(part in told for part in ("pid 7", "powersave", "99.0", SHARE_VARIABLE))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test_mode": True}, "--test-mode"),
        ({"workers": 2}, "from 2 processes"),
        ({"load_hosts": ("a", "b")}, "2 hosts (a, b)"),
        ({"origin": "empty"}, "results were not compared"),
    ],
)
def test_what_the_plan_makes_doubtful_is_a_caveat(changes: dict[str, Any], said: str):
    assert plan_caveats(make_plan()) == ()
    (text,) = plan_caveats(make_plan(**changes))
    assert said in text


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

    monkeypatch.setattr(study, "check_answers", fail)
    folder = RunFolder(tmp_path / "elsewhere" / "x")
    store = RunStore(folder.path.parent)
    bench = Bench(Home(tmp_path / "home"), store, Observer(), threading.Event())
    run = study.OpenRun(bench, folder, record("x"), cast("Track", None), [])
    with pytest.raises(raised) as caught:
        orchestrate._measured(bench, run)
    assert folder.load().status == status
    if isinstance(error, KeyboardInterrupt):
        assert isinstance(caught.value, BenchctlError)
        assert caught.value.exit_code == ExitCode.INTERRUPTED
        assert caught.value.hint == f"resume with: benchctl resume {folder.path}"
