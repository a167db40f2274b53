"""What changed between two nights, and what makes nights comparable."""

from typing import Any

import msgspec
import pytest

from benchctl.nightly.changes import changes, era_of, own_warmups
from benchctl.nightly.model import NIGHT_VERSION, Change, NightRecord, NightVariant
from benchctl.results.model import EngineFacts
from benchctl.results.plan import CorpusFile, PinSpec, Plan
from benchctl.track.library import TrackSource
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task, Track
from builders import CORPUS, ES, OS, make_environment, make_plan

FACTS = EngineFacts(
    variant="es",
    version="8.11.0",
    build="b" * 40,
    lucene="9.8.0",
    archive_sha256="a" * 64,
    jdk="Eclipse Adoptium 21.0.8",
    jvm_flags=("-Xms1g", "-Xmx1g", "-XX:+UseG1GC"),
    modules=("x-pack", "transport"),
)
VARIANT = NightVariant("es", "watched", "es", ES, facts=FACTS, index_key="k" * 40)


def night(*variants: NightVariant, **host: Any) -> NightRecord:
    return NightRecord(
        NIGHT_VERSION,
        id="00001-x",
        number=1,
        suite="s",
        started="2026-11-21T03:00:00+00:00",
        status="done",
        environment=make_environment(**host),
        variants=variants or (VARIANT,),
    )


def variant(**changed: Any) -> NightVariant:
    return msgspec.structs.replace(VARIANT, **changed)


def facts(**changed: Any) -> NightVariant:
    return variant(facts=msgspec.structs.replace(FACTS, **changed))


def spec(**changed: Any) -> NightVariant:
    return variant(spec=msgspec.structs.replace(ES, **changed))


def test_nights_that_are_alike_have_no_changes():
    assert changes(night(), night()) == ()
    moved = facts(modules=("transport", "x-pack"))
    assert changes(night(load_before=(0.0, 0.0, 0.0)), night(moved, other_java=("pid 1",))) == ()


def of_commit(changed: str, repository: str = "https://example.org/tracks", **host: Any) -> NightRecord:
    source = TrackSource(repository, "books", "main", "c" * 40, changed)
    return msgspec.structs.replace(night(facts(version="8.12.0"), **host), track=source)


def test_a_change_of_the_track_comes_before_those_of_engines():
    before, after = of_commit("a"), of_commit("b", kernel="7")
    before = msgspec.structs.replace(before, variants=(VARIANT,))
    assert [one.what for one in changes(before, after)][1:3] == ["commit of the track", "es: version"]
    assert changes(of_commit("a"), of_commit("a")) == ()
    assert changes(of_commit("a"), of_commit("a", "/srv/tracks")) == (
        Change("track", "books of https://example.org/tracks", "books of /srv/tracks"),
    )
    own = msgspec.structs.replace(of_commit("a"), track=None)
    assert changes(own, of_commit("a")) == (Change("track", "", "books of https://example.org/tracks"),)


@pytest.mark.parametrize(
    ("field", "value", "change"),
    [
        ("kernel", "6.2.0", Change("kernel", "6.1.0", "6.2.0")),
        ("distribution", "Debian 13", Change("operating system", "Debian 12", "Debian 13")),
        ("cpu_model", "Other CPU", Change("CPU", "Example CPU 3000", "Other CPU")),
        ("cpus", 4, Change("number of CPUs", "2", "4")),
        ("governor", "performance", Change("CPU governor", "", "performance")),
        ("memory_bytes", 32 * 2**30, Change("memory", "24 GiB", "32 GiB")),
        ("python", "3.12.1", Change("Python", "3.11.7", "3.12.1")),
        ("benchctl", "0.2.0", Change("benchctl", "0.1.0", "0.2.0")),
        ("benchctl_commit", "abc", Change("benchctl commit", "", "abc")),
        ("libcurl", "libcurl/9", Change("libcurl", "libcurl/8.5.0", "libcurl/9")),
        ("hostname", "lab2", Change("host name", "lab1", "lab2")),
        ("virtualization", None, Change("virtualisation", "kvm", "")),
    ],
)
def test_changes_of_the_host_are_told(field: str, value: object, change: Change):
    assert changes(night(), night(**{field: value})) == (change,)


@pytest.mark.parametrize(
    ("now", "what", "before", "after"),
    [
        (variant(asked="es@8.11.0"), "asked for", "es", "es@8.11.0"),
        (variant(role="canary"), "role", "watched", "canary"),
        (facts(version="8.12.0"), "version", "8.11.0", "8.12.0"),
        (facts(build="c" * 40), "build", "b" * 12, "c" * 12),
        (facts(archive_sha256="d" * 64), "archive", "a" * 12, "d" * 12),
        (facts(lucene="9.9.0"), "Lucene", "9.8.0", "9.9.0"),
        (facts(jdk="Oracle 22"), "JDK", "Eclipse Adoptium 21.0.8", "Oracle 22"),
        (
            facts(jvm_flags=("-Xms1g", "-XX:-Inline", "-Xmx2g", "-XX:+UseG1GC")),
            "JVM flags",
            "-Xmx1g",
            "-XX:-Inline -Xmx2g",
        ),
        (
            facts(jvm_flags=("-Xmx1g", "-Xms1g", "-XX:+UseG1GC")),
            "JVM flags in another order",
            "-Xms1g -Xmx1g",
            "-Xmx1g -Xms1g",
        ),
        (facts(jvm_flags=(*FACTS.jvm_flags, "-Xms1g")), "JVM flags", "without it", "-Xms1g"),
        (facts(jvm_flags=("-Xms1g",)), "JVM flags", "-Xmx1g -XX:+UseG1GC", "without them"),
        (facts(modules=("transport",)), "modules", "x-pack", "without it"),
        (spec(distribution="/x"), "distribution", "", "/x"),
        (spec(jdk="17"), "JDK asked for", "", "17"),
        (spec(settings={"b": 1, "a": "x"}), "settings", "", "a=x b=1"),
        (spec(heap_mb=1024), "heap", "that of all", "1024 MiB"),
        (spec(index_settings={"index.codec": "default"}), "index settings", "", "index.codec=default"),
        (spec(environment={"MALLOC_ARENA_MAX": "2"}), "environment", "", "MALLOC_ARENA_MAX=2"),
        (spec(warmups=("warmup",)), "warm-up challenges", "", "warmup"),
        (facts(jars={"lucene-core-9.8.0.jar": "e" * 64}), "jars", "", f"lucene-core-9.8.0.jar={'e' * 12}"),
        (facts(plugins={"analysis-icu": "8.11.0"}), "plug-ins", "", "analysis-icu=8.11.0"),
        (variant(index_key="n" * 40), "prepared index", "k" * 12, "n" * 12),
    ],
)
def test_changes_of_a_variant_are_told_with_its_label(now: NightVariant, what: str, before: str, after: str):
    assert changes(night(), night(now)) == (Change(f"es: {what}", before, after, "es"),)


def test_variants_that_came_and_went_are_told():
    other = NightVariant("os", "canary", "os@2.11.0", OS)
    assert changes(night(VARIANT), night(other)) == (
        Change("es: variant", "es", "", "es"),
        Change("os: variant", "", "os@2.11.0", "os"),
    )


def test_without_facts_what_was_asked_for_is_compared():
    before = variant(facts=None, index_key="")
    flagged = msgspec.structs.replace(ES, version="8.12.0", jvm_flags=("-Xint",), jars=("/a.jar",))
    now = variant(facts=None, index_key="", spec=flagged)
    assert changes(night(before), night(now)) == (
        Change("es: version", "8.11.0", "8.12.0", "es"),
        Change("es: JVM flags", "", "-Xint", "es"),
        Change("es: jars", "", "/a.jar", "es"),
    )


def test_what_a_variant_warms_up_with_is_its_own_change_and_no_new_era():
    track, _ = load_track("big5", {})
    warm = msgspec.structs.replace(ES, name="es-warm", warmups=("w",))

    def plan_with(iterations: int, operation: str = "term") -> Plan:
        own = Challenge("w", (Task(operation, iterations=iterations),), description=f"{iterations}")
        return make_plan(variants=(ES, warm), variant_warmups={"es-warm": (own,)})

    def after(plan: Plan, of: Track = track) -> NightRecord:
        warmups = own_warmups(plan, of, "es-warm")
        return night(VARIANT, NightVariant("es-warm", "watched", "w", warm, warmups=warmups))

    usual = plan_with(3)
    assert own_warmups(usual, track, "es") == ""
    assert changes(after(usual), after(plan_with(3))) == ()
    operations = {**track.operations, "term": track.operations["range"]}
    changed = msgspec.structs.replace(track, operations=operations)
    for other in (after(plan_with(4)), after(plan_with(3, "range")), after(usual, changed)):
        assert [one.what for one in changes(after(usual), other)] == [
            "es-warm: contents of warm-up challenges"
        ]
    unknown = night(VARIANT, NightVariant("es-warm", "watched", "w", warm))
    assert changes(unknown, after(usual)) == ()
    for plan, of in ((plan_with(4), track), (plan_with(3, "range"), track), (PLAN, changed)):
        assert era_of(plan, HOST, of) == era_of(PLAN, HOST, track)


def test_a_night_without_an_environment_says_nothing_of_its_host():
    blind = msgspec.structs.replace(night(), environment=None)
    assert changes(blind, night(kernel="7")) == ()
    assert changes(night(), msgspec.structs.replace(night(kernel="7"), environment=None)) == ()


PLAN = make_plan()
HOST = make_environment()
FILE = CorpusFile(path="/a/docs.json", documents=1, held=1, raw_bytes=1, sha256="s")


def era(host: dict[str, Any] | None = None, **plan: Any) -> str:
    return era_of(make_plan(**plan), make_environment(**(host or {})))


@pytest.mark.parametrize(
    "plan",
    [
        {"schedules": (Challenge("c", (Task("range", iterations=4),)),)},
        {"warmup_challenges": (Challenge("w", (Task("range", iterations=3),)),)},
        {"restart": "never"},
        {"heap_mb": 1024},
        {"corpus": msgspec.structs.replace(CORPUS, digest="other")},
        {"track_digest": "other"},
        {"segments": 2},
        {"ingest_clients": 1},
        {"index_builds": 2},
        {"workers": 2},
        {"pin": PinSpec((0,), (1,))},
    ],
)
def test_whatever_decides_figures_begins_a_new_era(plan: dict[str, Any]):
    assert era(**plan) != era()


def test_what_a_node_refuses_of_the_pollution_begins_a_new_era():
    eras = {era_of(PLAN, HOST, left_out=left_out) for left_out in ((), ("a",), ("a", "b"))}
    assert len(eras) == 3
    assert era_of(PLAN, HOST) in eras
    assert era_of(PLAN, HOST, left_out=("b", "a")) in eras


@pytest.mark.parametrize(
    "plan",
    [
        {"variants": (OS, ES)},
        {"forks": 9},
        {"seed": 9},
        {"track": "/somewhere/else"},
        {"sources": {"c": "/x.json"}},
        {"params": {"iterations": 3}},
        {"schedules": (Challenge("c", (Task("range", iterations=3, tags=("t",)),), description="words"),)},
        {"corpus": msgspec.structs.replace(CORPUS, files=(FILE,))},
    ],
)
def test_what_decides_nothing_does_not(plan: dict[str, Any]):
    assert era(**plan) == era()


def test_with_the_track_at_hand_only_what_is_used_of_it_counts():
    track, _ = load_track("big5", {})
    unused = {name: one for name, one in track.operations.items() if name in {"range", "term"}}

    def era_with(changed: Track, digest: str = "t") -> str:
        return era_of(msgspec.structs.replace(PLAN, track_digest=digest), HOST, changed)

    usual = era_with(track)
    assert era_with(msgspec.structs.replace(track, operations=unused), "other") == usual
    assert era_with(msgspec.structs.replace(track, description="words", digest="d"), "d") == usual
    other = {**track.operations, "range": track.operations["term"]}
    assert era_with(msgspec.structs.replace(track, operations=other)) != usual
    assert era_with(msgspec.structs.replace(track, indices=())) != usual
