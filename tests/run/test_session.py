"""Facts of an engine: from the node where it can say, from its archive elsewhere; a cluster tells all."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from benchctl.endpoint import Endpoint
from benchctl.engine.distribution import Installation, ModuleFacts, PluginFacts
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import Starts
from benchctl.engine.prepared_index import PreparedIndex
from benchctl.engine.target import Address, ClusterFacts
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import EngineFacts, IndexFacts, IngestReport
from benchctl.results.plan import TargetSpec
from benchctl.run.session import Serving, Subject, TargetSubject
from builders import ES

INDEX = IndexFacts("k", 1, 1, (), IngestReport(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
DISTRIBUTION = Path("/home/engines/es")
FORK = Path("/home/scratch/fork-000-es")


@dataclass(frozen=True)
class StandIn:
    """What engine_facts reads of a node."""

    version: str = "8.11.0"
    build: str = "d9ec"
    lucene: str = "9.8.0"
    command: tuple[str, ...] = (
        "/jdk/bin/java",
        "-Xmx1g",
        f"-Xlog:gc:{FORK}/boot-0/gc.log",
        f"-Des.path.home={DISTRIBUTION}",
        "org.elasticsearch.Main",
    )


@pytest.fixture
def subject() -> Subject:
    return Subject(
        ES,
        Installation("elasticsearch", "8.11.0", DISTRIBUTION, "a" * 64, ("apm",), "9.8.0", "sha512"),
        Jdk(Path("/jdk"), "21.0.8", "Temurin", 21, frozenset()),
        PreparedIndex(Path("/home/indices/i"), INDEX),
    )


def facts(subject: Subject, **changes: Any) -> EngineFacts:
    return subject.engine_facts(cast("Serving", StandIn(**changes)), FORK)


def test_facts_say_what_ran_and_how_its_archive_was_checked(subject: Subject):
    assert facts(subject) == EngineFacts(
        variant="es",
        version="8.11.0",
        build="d9ec",
        lucene="9.8.0",
        archive_sha256="a" * 64,
        jdk="Temurin 21.0.8",
        jvm_flags=("-Xmx1g", "-Xlog:gc:{fork}/boot-0/gc.log", "-Des.path.home={distribution}"),
        modules=("apm",),
        verified_by="sha512",
    )


def test_of_archives_of_classes_only_a_variants_own_is_a_flag(subject: Subject):
    direct = dataclasses.replace(subject, starts=Starts(Path("/starts"), Path("/scratch")))
    flags = ("-XX:SharedArchiveFile=/starts/classes-1.jsa", "-XX:SharedArchiveFile=/mine.jsa", "-Xmx1g")
    assert facts(direct, command=("java", *flags)).jvm_flags == flags[1:]


def test_a_node_of_another_version_than_its_archive_is_told(subject: Subject):
    with pytest.raises(BenchctlError, match=r"the archive is 8\.11\.0, its node reports 8\.12\.0"):
        facts(subject, version="8.12.0")


def test_a_workspace_holds_the_build_that_is_asked_for(subject: Subject, tmp_path: Path):
    home = Home(tmp_path)
    builds = []
    for number in range(3):
        (tmp_path / f"build-{number}" / "data").mkdir(parents=True)
        (tmp_path / f"build-{number}" / "data" / "which").write_text(str(number))
        facts = msgspec.structs.replace(INDEX, key=str(number))
        builds.append(PreparedIndex(tmp_path / f"build-{number}", facts))
    several = dataclasses.replace(subject, index=builds[0], more_builds=tuple(builds[1:]))
    assert [build.key for build in several.builds] == ["0", "1", "2"]
    assert several.index_facts.key == "0"
    for number in range(3):
        with several.workspace(home, "fork-000", number) as work:
            assert (work / "data" / "which").read_text() == str(number)
    with several.workspace(home, "answers") as work:
        assert (work / "data" / "which").read_text() == "0"


def test_a_node_that_cannot_read_its_copy_leads_to_the_damaged_build(subject: Subject, tmp_path: Path):
    builds = []
    for number in range(2):
        (tmp_path / f"build-{number}" / "data").mkdir(parents=True)
        (tmp_path / f"build-{number}" / "files.json").write_text("{}")
        builds.append(
            PreparedIndex(tmp_path / f"build-{number}", msgspec.structs.replace(INDEX, store_bytes=0))
        )
    several = dataclasses.replace(subject, index=builds[0], more_builds=(builds[1],))
    unread = several._damaged("es died")
    assert unread.message == "es died; the prepared index is intact, but this copy of it was damaged"
    (builds[1].data / "_state").mkdir()
    (builds[1].data / "_state" / "segments_1").write_bytes(b"unknown")
    told = several._damaged("es died")
    assert told.message.startswith(
        f"es died; the prepared index {builds[1].root} is damaged: _state/segments_1"
    )
    assert told.hint == "the next run builds it again"


def test_what_begins_on_nothing_gets_an_empty_workspace(subject: Subject, tmp_path: Path):
    empty = dataclasses.replace(subject, index=None)
    assert (empty.index_facts, empty.builds) == (None, ())
    with empty.workspace(Home(tmp_path), "fork-000") as work:
        assert list(work.iterdir()) == []
    assert not work.exists()


FOUND = ClusterFacts(
    "elasticsearch", "8.11.0", "d9ec", "9.8.0", "Temurin 21", ("-Xmx1g",), ("apm", "x-pack-security")
)


def target_subject(**changes: Any) -> TargetSubject:
    spec = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",)))
    found = dataclasses.replace(FOUND, **changes)
    return TargetSubject(spec, Address("es", Endpoint.of("http://search-1:9200")), found, 1, INDEX)


def test_a_cluster_is_what_it_says():
    found = target_subject().engine_facts(cast("Serving", StandIn()), FORK)
    assert found == EngineFacts(
        variant="es",
        version="8.11.0",
        build="d9ec",
        lucene="9.8.0",
        archive_sha256="",
        jdk="Temurin 21",
        jvm_flags=("-Xmx1g",),
        modules=("apm", "x-pack-security"),
    )


def test_what_changed_between_two_parts_of_a_run_is_told(subject: Subject):
    assert subject.changes(facts(subject)) == []
    known = msgspec.structs.replace(facts(subject), archive_sha256="b" * 64, jdk="Zulu 21")
    assert subject.changes(known) == [
        "archive of es: was bbbbbbbbbbbb, is aaaaaaaaaaaa",
        "JDK of es: was Zulu 21, is Temurin 21.0.8",
    ]
    before = target_subject().engine_facts(cast("Serving", StandIn()), FORK)
    assert target_subject().changes(before) == []
    assert target_subject(jdk="Zulu 21").changes(before) == ["JDK of es: was Temurin 21, is Zulu 21"]


@pytest.mark.parametrize(
    ("start", "changes"),
    [("script", []), ("direct", []), ("", ["nodes of es were started by the engine's script"])],
)
def test_a_run_goes_on_whose_nodes_only_the_engines_script_can_start(
    subject: Subject, start: str, changes: list[str]
):
    direct = dataclasses.replace(subject, starts=Starts(Path("/starts"), Path("/scratch")))
    assert direct.changes(msgspec.structs.replace(facts(direct), start=start)) == changes


def test_a_cluster_gets_an_empty_workspace_that_ends_with_its_fork(tmp_path: Path):
    home = Home(tmp_path)
    with target_subject().workspace(home, "fork-000") as work:
        assert work.is_dir()
        assert list(work.iterdir()) == []
    assert not work.exists()


def test_facts_say_which_jars_and_plug_ins_there_are(subject: Subject):
    assert facts(equipped(subject, "1", "2")).jars == {"lucene-core-9.8.0.jar": "1" * 64}
    assert facts(equipped(subject, "1", "2")).plugins == {"icu": "2"}


def test_a_changed_jar_or_plug_in_is_a_change(subject: Subject):
    known = facts(equipped(subject, "1", "2"))
    assert equipped(subject, "1", "2").changes(known) == []
    assert equipped(subject, "3", "2").changes(known) == [
        "replaced jars of es: was lucene-core-9.8.0.jar 111111111111, is lucene-core-9.8.0.jar 333333333333"
    ]
    assert equipped(subject, "1", "4").changes(known) == ["plug-ins of es: was icu 2, is icu 4"]
    assert subject.changes(known) == [
        "replaced jars of es: was lucene-core-9.8.0.jar 111111111111, is none",
        "plug-ins of es: was icu 2, is none",
    ]


def test_modules_are_facts_and_others_are_a_change(subject: Subject):
    added = ModuleFacts("reindex", (("g:reindex:1", "r" * 64),))
    with_reindex = dataclasses.replace(subject.installation, modules=("apm", "reindex"), added=(added,))
    more = dataclasses.replace(subject, installation=with_reindex)
    known = facts(more)
    assert known.modules == ("apm", "reindex")
    assert known.added_modules == {"reindex": {"g:reindex:1": "r" * 64}}
    assert more.changes(known) == []
    assert subject.changes(known) == ["modules of es: was reindex, is none"]
    assert more.changes(facts(subject)) == ["modules of es: was none, is reindex"]


def equipped(subject: Subject, jar: str, plugin: str) -> Subject:
    """The subject with a replaced jar and a plug-in."""
    installation = dataclasses.replace(
        subject.installation,
        jars=(("lucene-core-9.8.0.jar", jar * 64),),
        plugins=(PluginFacts("icu", plugin, "p" * 64),),
    )
    return dataclasses.replace(subject, installation=installation)
