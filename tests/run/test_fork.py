"""Facts of an engine: from the node where it can say, from its archive where it cannot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from benchctl.engine.index import PreparedIndex
from benchctl.engine.install import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node
from benchctl.errors import BenchctlError
from benchctl.results.model import EngineFacts, IndexFacts, IngestReport
from benchctl.run.fork import engine_facts
from benchctl.run.prepare import Subject
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
    return engine_facts(subject, cast("Node", StandIn(**changes)), FORK)


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


def test_a_node_of_another_version_than_its_archive_is_told(subject: Subject):
    with pytest.raises(BenchctlError, match=r"the archive is 8\.11\.0, its node says 8\.12\.0"):
        facts(subject, version="8.12.0")


def test_records_from_before_checksums_were_kept_are_read(subject: Subject):
    old = msgspec.to_builtins(facts(subject))
    del old["verified-by"]
    assert msgspec.convert(old, EngineFacts).verified_by == ""
