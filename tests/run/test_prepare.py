"""What a variant is asked again, what a run keeps of its answers, and what the generator is asked."""

import dataclasses
import threading
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from asked import asked as asked_for
from benchctl.corpus.big5 import GENERATOR_VERSION
from benchctl.endpoint import Endpoint
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import Starts
from benchctl.engine.node import ARCHIVED
from benchctl.engine.prepared_index import IndexKey, PreparedIndex
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.answers import Answer
from benchctl.results.model import EngineFacts, IndexFacts, IngestReport
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.run import prepare
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.plan import plan_run
from benchctl.run.prepare import (
    Workshop,
    _book,
    building_heap_mb,
    check_answers,
    check_memory,
    prepare_started,
    started_alike,
    started_as_before,
)
from benchctl.run.session import AnySubject, Subject, TargetSubject
from benchctl.run.work import operations_used
from benchctl.track.model import Track
from benchctl.track.pollution import POLLUTED
from builders import ES, OS, exact_hits, make_plan
from observed import Told

CORPUS = CorpusSpec(seed=1, documents=2000, generator_version=GENERATOR_VERSION, digest="ab" * 32)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "corpora").mkdir(exist_ok=True)
    return Home(tmp_path)


def planned(*warmups: str) -> tuple[Plan, Track]:
    return plan_run(asked_for(warmup_challenges=warmups, corpus=CORPUS))


INDEX = IndexFacts("", 2000, 1, (), IngestReport(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    root = tmp_path / "index"
    root.mkdir()
    return Subject(
        ES,
        Installation("elasticsearch", "8.11.0", Path("/es"), "a" * 64, (), "9.8.0", "sha512"),
        Jdk(Path("/jdk"), "21.0.8", "Temurin", 21, frozenset()),
        PreparedIndex(root, msgspec.structs.replace(INDEX, cached=True)),
    )


def remembers(subject: AnySubject) -> bool:
    """Whether a variant need not be asked what it was asked before."""
    (operation,) = operations_used(*planned())
    return _book(subject).get(operation) is not None


@pytest.fixture
def asked(subject: Subject) -> Subject:
    """A variant that was asked in an earlier run."""
    (operation,) = operations_used(*planned())
    book = _book(subject)
    book.add(operation, Answer(total=7, ids="a"))
    book.save()
    return subject


def changed(subject: Subject, **fields: Any) -> Subject:
    return dataclasses.replace(subject, spec=msgspec.structs.replace(subject.spec, **fields))


def test_answers_are_remembered_for_the_same_index_on_a_jvm_set_up_alike(asked: Subject):
    assert remembers(asked)
    assert remembers(changed(asked, name="es-again"))
    assert not remembers(changed(asked, jvm_flags=("-XX:-Inline",)))
    assert not remembers(changed(asked, settings={"search.max_buckets": 10}))
    assert not remembers(dataclasses.replace(asked, jdk=dataclasses.replace(asked.jdk, version="17.0.1")))
    assert not remembers(dataclasses.replace(asked, jdk=dataclasses.replace(asked.jdk, vendor="Other")))


def test_a_replaced_jar_or_another_environment_has_to_prove_its_answers(asked: Subject):
    assert not remembers(changed(asked, environment={"A": "b"}))
    jars = (("lucene-core-9.8.0.jar", "1" * 64),)
    installation = dataclasses.replace(asked.installation, jars=jars)
    assert not remembers(dataclasses.replace(asked, installation=installation))
    assert remembers(changed(asked, heap_mb=300, warmups=("warmup",)))


def test_an_index_of_an_older_version_has_the_answers_of_each_that_reads_it(asked: Subject):
    newer = dataclasses.replace(asked.installation, version="8.19.0")
    assert not remembers(dataclasses.replace(asked, installation=newer))


def test_a_cluster_is_asked_every_time(asked: Subject):
    cluster = TargetSubject(
        asked.spec, Address("es", Endpoint.of("http://a:1")), cast("ClusterFacts", None), 1, INDEX
    )
    assert not remembers(cluster)


def test_what_is_remembered_is_not_asked_again(asked: Subject, home: Home):
    observer = Told()
    check = check_answers([asked, changed(asked, name="os")], *planned(), home, observer)
    assert exact_hits(check) == {"range": {"es": 7, "os": 7}}
    assert observer.stages == []


@pytest.mark.parametrize(("builds", "ids"), [(1, "a"), (2, "")])
def test_ids_are_those_of_the_only_build(asked: Subject, home: Home, builds: int, ids: str):
    plan, track = planned()
    check = check_answers([asked], msgspec.structs.replace(plan, index_builds=builds), track, home, Told())
    assert check.answers == {"range": {"es": Answer(7, ids=ids)}}


def test_variants_with_their_own_bodies_are_asked_these_and_held_against_each_other(
    asked: Subject, home: Home
):
    other = changed(asked, name="rewritten", operations={"range": {"query": {"match_all": {}}}})
    plan, track = planned()
    (usual,), (own,) = (operations_used(plan, track, subject.spec) for subject in (asked, other))
    assert usual != own
    book = _book(other)
    assert book.missing([own]) == [own]
    book.add(own, Answer(total=8))
    book.save()
    check = check_answers([asked, other], plan, track, home, Told())
    assert exact_hits(check) == {"range": {"es": 7, "rewritten": 8}}
    ((variant, kind, detail),) = [(one.variant, one.kind, one.detail) for one in check.findings]
    assert (variant, kind, detail) == ("rewritten", "different", "total hits 7 against 8")


def test_what_matches_nothing_on_any_variant_is_told_before_forks(asked: Subject, home: Home):
    plan, track = planned()
    other = changed(asked, name="os", settings={"a": 1})
    for subject, hits in ((asked, 0), (other, 0)):
        book = _book(subject)
        for operation in operations_used(plan, track):
            book.add(operation, Answer(total=hits))
        book.save()
    observer = Told()
    assert check_answers([asked, other], plan, track, home, observer).without_hits == ("range",)
    assert observer.notes == ["results: no document matches range"]
    book = _book(other)
    for operation in operations_used(plan, track):
        book.add(operation, Answer(total=1))
    book.save()
    assert check_answers([asked, other], plan, track, home, Told()).without_hits == ()


def test_pollution_that_a_node_refuses_is_named_once_and_left_out_for_all(asked: Subject, home: Home):
    plan, track = planned(POLLUTED)
    lacking, failing, *others = sorted(plan.polluting)
    other = changed(asked, name="os", settings={"a": 1})
    answers = {lacking: Answer(unsupported="unknown query [x]"), failing: Answer(failed="fielddata")}
    for subject in (asked, other):
        book = _book(subject)
        for operation in operations_used(plan, track):
            answer = answers.get(operation.name) if subject is other else None
            book.add(operation, answer or Answer(total=7))
        book.save()
    observer = Told()
    check = check_answers([asked, other], plan, track, home, observer)
    assert plan.polluting & check.refused == {lacking, failing}
    (note,) = observer.notes
    assert lacking in note
    assert failing in note
    assert not any(name in note for name in others)


def test_the_largest_heap_of_all_variants_has_to_fit():
    check_memory(make_plan(heap_mb=512), 1024 * 2**20)
    large = msgspec.structs.replace(ES, heap_mb=1000)
    with pytest.raises(UsageError, match="a heap of 1000 MB leaves too little"):
        check_memory(make_plan(heap_mb=512, variants=(ES, large)), 1024 * 2**20)


def test_a_heap_that_no_node_has_need_not_fit_and_fills_no_index():
    small = msgspec.structs.replace(ES, heap_mb=300)
    plan = make_plan(heap_mb=4096, variants=(small, msgspec.structs.replace(OS, heap_mb=400)))
    check_memory(plan, 1024 * 2**20)
    assert building_heap_mb(plan) == 400
    mixed = msgspec.structs.replace(plan, variants=(small, OS))
    with pytest.raises(UsageError, match="a heap of 4096 MB leaves too little"):
        check_memory(mixed, 1024 * 2**20)
    assert building_heap_mb(mixed) == 4096
    large = msgspec.structs.replace(plan, heap_mb=350)
    assert building_heap_mb(large) == 350


@pytest.mark.parametrize("reason", ["", "its node wrote none of its classes"])
def test_all_variants_start_with_an_archive_of_classes_or_none(subject: Subject, reason: str):
    starts = Starts(Path("/starts"), Path("/scratch"))
    first = dataclasses.replace(subject, starts=starts)
    second = dataclasses.replace(first, spec=OS, unarchived=reason)
    script = dataclasses.replace(subject, starts=None)
    notes: list[str] = []
    observer = Observer()
    observer.note = notes.append  # type: ignore[method-assign]
    found = started_alike([first, second, script], observer)
    assert [one.starts and one.starts.archived for one in found] == [not reason, not reason, None]
    assert [note.partition(":")[0] for note in notes] == (["os", "es"] if reason else [])


@pytest.mark.parametrize(
    ("manners", "archived"),
    [(["direct"], False), (["direct", "script"], False), (["direct", ARCHIVED], True), ([], True)],
)
def test_a_run_that_goes_on_starts_its_nodes_as_its_first_forks(
    subject: Subject, manners: list[str], *, archived: bool
):
    engines = [EngineFacts("es", "8.11.0", "b", "9.8.0", "s", "j", (), (), start=one) for one in manners]
    one = dataclasses.replace(subject, starts=Starts(Path("/starts"), Path("/scratch")))
    (found,) = started_as_before(engines, [one], Observer())
    assert isinstance(found, Subject)
    assert found.starts is not None
    assert found.starts.archived == archived


class World:
    """Preparation without downloads and nodes: keeps what was built, and how."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.built: list[tuple[IndexKey, Workshop]] = []
        self.notes = Told()
        self.lock = threading.Lock()
        for name in ("_prepared", "archive_classes"):
            monkeypatch.setattr(prepare, name, lambda *_: None)
        monkeypatch.setattr(prepare, "_equip", self.equip)
        monkeypatch.setattr(prepare, "build_index", self.build)

    def equip(self, spec: VariantSpec, *_: object) -> tuple[Subject, Installation]:
        version = "9.8.0" if spec.engine == "elasticsearch" else "9.7.0"
        found = Installation(spec.engine, spec.version, self.home.root, "a" * 64, (), version)
        jdk = Jdk(Path("/jdk"), spec.jdk or "21.0.8", "Temurin", 21, frozenset())
        return Subject(spec, found, jdk, None, starts=Starts(self.home.root, self.home.root)), found

    def build(self, shop: Workshop, key: IndexKey) -> PreparedIndex:
        with self.lock:
            self.built.append((key, shop))
        return PreparedIndex(self.home.indices / key.folder_name, INDEX)

    def prepare(self, *variants: VariantSpec, **changes: Any) -> list[Subject]:
        plan = msgspec.structs.replace(planned()[0], variants=variants, **changes)
        observer = SharedObserver(self.notes)
        return prepare_started(variants, plan, planned()[1], lambda _: (CORPUS, ()), self.home, observer)


@pytest.fixture
def world(home: Home, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(home, monkeypatch)


def test_one_node_fills_an_index_answers_and_archives_its_classes(world: World):
    flagged = msgspec.structs.replace(ES, name="flagged", jvm_flags=("-ea",), jdk="17")
    found = world.prepare(flagged, ES, OS)
    assert [one.spec.name for one in found] == ["flagged", "es", "os"]
    assert found[0].index == found[1].index != found[2].index
    assert sorted(key.installation.engine for key, _ in world.built) == ["elasticsearch", "opensearch"]
    for _, shop in world.built:
        assert shop.ask is not None
        assert shop.archive is not None
        assert shop.jdk.version == "21.0.8"


@pytest.mark.parametrize(
    "changes",
    [
        {"jvm_flags": ("-ea",)},
        {"settings": {"search.max_buckets": 10}},
        {"environment": {"A": "b"}},
    ],
)
def test_a_node_unlike_the_measured_ones_only_fills(world: World, changes: dict[str, Any]):
    world.prepare(msgspec.structs.replace(ES, **changes))
    ((_, shop),) = world.built
    assert (shop.ask, shop.archive) == (None, None)


def test_what_exists_is_not_made_again(world: World, monkeypatch: pytest.MonkeyPatch):
    (es,) = world.prepare(ES)
    assert es.starts is not None
    es.starts.archive(es.installation, es.jdk).path.touch()
    world.prepare(ES)
    assert [shop.archive is None for _, shop in world.built] == [False, True]
    monkeypatch.setattr(prepare, "_prepared", lambda *_: es.index)
    assert world.prepare(ES)[0].index == es.index
    assert len(world.built) == 2


def test_builds_that_are_compared_are_made_in_turns_and_alike(world: World):
    world.prepare(ES, OS, index_builds=2)
    order = [(key.installation.engine, key.build) for key, _ in world.built]
    assert order == [("elasticsearch", 0), ("opensearch", 0), ("elasticsearch", 1), ("opensearch", 1)]
    assert [shop.more for _, shop in world.built] == [1, 1, 0, 0]
    assert not any(shop.ask or shop.archive for _, shop in world.built)
