"""What makes results of two runs unlike, and how that is said."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from benchctl.results.likeness import (
    Difference,
    alike_variants,
    beyond,
    configured_alike,
    resolved,
    side_differences,
    unlike_variants,
)
from benchctl.results.model import AnswerCheck, AnswerFinding, EngineFacts, InForce, RunRecord
from benchctl.results.plan import (
    CorpusFile,
    CorpusSpec,
    EvidenceSpec,
    PinSpec,
    PluginSpec,
    TargetSpec,
    VariantSpec,
)
from benchctl.spec import EvidenceKind
from benchctl.track.library import TrackSource
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan, make_record
from redlines import SEARCH

RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def planned(record: RecordMaker) -> RecordMaker:
    def make(run_id: str, **changes: Any) -> RunRecord:
        made = record(run_id, "es")
        return msgspec.structs.replace(made, plan=msgspec.structs.replace(made.plan, **changes))

    return make


def searching(gte: str) -> Challenge:
    body = {"query": {"range": {"@timestamp": {"gte": gte, "lt": "2023-01-03"}}}}
    operation = {"name": "mine", "operation-type": "search", "body": body}
    schedule = [{"operation": "mine", "iterations": 3}]
    whole = {"name": "c", "schedule": schedule, "operations": {"mine": operation}}
    return msgspec.convert(whole, Challenge)


def test_runtimes_that_were_chosen_within_a_run_are_no_difference(record: RecordMaker):
    runtimes = {"es": "21", "es17": "17"}
    facts = tuple(EngineFacts(name, "1", "b", "9", "s", jdk, (), ()) for name, jdk in runtimes.items())
    here = msgspec.structs.replace(record("1", *runtimes), engines=facts)
    assert alike_variants(("es", here), ("es17", here))
    there = msgspec.structs.replace(here, id="2")
    assert unlike_variants(("es", here), ("es17", there)) == ("different Java runtime: 21 vs 17",)


def test_jars_are_what_is_in_them_and_warm_ups_what_they_do(planned: RecordMaker):
    spec = VariantSpec("x", "elasticsearch", "8.11.0", jars=("/a.jar",), warmups=("w",))
    facts = EngineFacts("x", "8.11.0", "b", "9", "s", "21", (), (), jars={"a.jar": "1"})
    warm = planned("1", variants=(spec,), variant_warmups={"x": (searching("2023-01-01"),)})
    here = msgspec.structs.replace(warm, engines=(facts,))
    moved = msgspec.structs.replace(spec, jars=("/b/a.jar",), warmups=("/w.json",))
    plan = msgspec.structs.replace(here.plan, variants=(moved,))
    there = msgspec.structs.replace(here, id="2", plan=plan)
    assert unlike_variants(("x", here), ("x", there)) == ()
    rebuilt = msgspec.structs.replace(there, engines=(msgspec.structs.replace(facts, jars={"a.jar": "2"}),))
    assert unlike_variants(("x", here), ("x", rebuilt)) == ("x: different jar a.jar: 1 vs 2",)
    plan = msgspec.structs.replace(plan, variant_warmups={"x": (searching("2023-01-02"),)})
    (reason,) = unlike_variants(("x", here), ("x", msgspec.structs.replace(there, plan=plan)))
    assert reason.startswith("x: different warm-up.c/mine.body.body.query.")


def test_what_the_pollution_left_out_is_a_difference(planned: RecordMaker):
    polluted = Challenge("polluted", (Task("polluted:a"), Task("polluted:b")))
    plain = planned("1", pollution=polluted)
    refused = AnswerFinding("polluted:b", "es", "es", "unsupported", "no such aggregation")
    lacking = msgspec.structs.replace(
        planned("2", pollution=polluted), answers=AnswerCheck(("polluted:a", "polluted:b"), {}, (refused,))
    )
    (reason,) = unlike_variants(("es", plain), ("es", lacking))
    assert reason.endswith(": none vs polluted:b")
    assert alike_variants(("es", lacking), ("es", msgspec.structs.replace(lacking, id="3")))


def test_another_host_is_another_world(record: RecordMaker):
    here = record("1", "es")
    there = msgspec.structs.replace(
        here, environment=msgspec.structs.replace(here.environment, fingerprint="g", hostname="lab2")
    )
    there = msgspec.structs.replace(there, id="2")
    assert unlike_variants(("", here), ("", there)) == ("different host: lab1, f vs lab2, g",)
    assert unlike_variants(("", here), ("", here)) == ()


def plugin(folder: str, digest: str) -> dict[str, Any]:
    return {"plugin": PluginSpec(f"/{folder}/track.py", digest * 64)}


def checkout(home: str, changed: str, commit: str = "c") -> dict[str, Any]:
    source = TrackSource("https://example.org/tracks", "books", "main", commit * 40, changed * 40)
    return {"track": f"/{home}/books", "track_source": source}


def evidence(*kinds: EvidenceKind, extra_forks: int = 0) -> dict[str, Any]:
    return {"evidence": EvidenceSpec(kinds, extra_forks=extra_forks)}


def corpus(path: str, digest: str) -> dict[str, Any]:
    file = CorpusFile(path=path, documents=3, held=3, raw_bytes=9, sha256="s", index="a")
    return {"corpus": CorpusSpec(0, 3, 0, digest, (file,))}


def schedule(*tasks: Task, name: str = "c", **words: Any) -> dict[str, Any]:
    return {"schedules": (Challenge(name, tasks, **words),)}


RANGE, SORT = Task("range", iterations=3), Task("sort")
BESIDE = schedule(msgspec.structs.replace(RANGE, group=0), msgspec.structs.replace(SORT, group=0))
WAY = "schedules.c/mine.body.body.query.range.@timestamp.gte"
LOOSER = {"redline": msgspec.structs.replace(SEARCH, limit_ns=100_000_000)}
WARM = {"warmup_challenges": schedule(RANGE, name="d")["schedules"]}


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (plugin("a", "1"), plugin("b", "1"), []),
        (plugin("a", "1"), plugin("a", "2"), [("plugin", "1" * 40 + "...", "2" * 40 + "...")]),
        (plugin("a", "1"), {}, [("plugin", "1" * 40 + "...", "none")]),
        (checkout("a", "1"), checkout("b", "1", "d"), []),
        (checkout("a", "1"), checkout("a", "2"),
         [("track", f"books of commit {'1' * 12}", f"books of commit {'2' * 12}")]),
        ({}, evidence("inlining"), [("evidence", "none", "inlining")]),
        (evidence("inlining"), evidence("inlining"), []),
        (evidence("inlining"), evidence("profile"), [("evidence", "inlining", "profile")]),
        # Forks of its own are not compared.
        ({}, evidence("inlining", extra_forks=1), []),
        (corpus("/here/f", "d"), corpus("/there/f", "d"), []),
        (corpus("/here/f", "d"), corpus("/here/f", "e"), [("corpus.digest", "d", "e")]),
        ({}, schedule(Task("range", iterations=300)), [("schedules.c/range.iterations", "3", "300")]),
        ({"schedules": (searching("2023-01-01"),)}, {"schedules": (searching("2023-01-02"),)},
         [(WAY, "2023-01-01", "2023-01-02")]),
        # Long texts are shown from where they differ.
        ({"schedules": (searching("y" * 90 + "3"),)}, {"schedules": (searching("y" * 90 + "4"),)},
         [(WAY, "...yyyyyyyyyyyy3", "...yyyyyyyyyyyy4")]),
        # A task more is no reason, but the others must be the same, also in what runs beside them.
        ({}, schedule(RANGE, SORT), []),
        ({}, schedule(SORT, Task("range", iterations=4)), [("schedules.c/range.iterations", "3", "4")]),
        (BESIDE, schedule(RANGE, SORT), [("schedules.c/range.same-time", "sort", "none")]),
        ({}, schedule(RANGE, name="d"), [("tasks", "c/range", "d/range")]),
        ({}, WARM, [("warmup challenges", "none", '{"d/range":{"operation":"range","iterati...')]),
        # Words about a challenge are none.
        ({}, schedule(Task("range", iterations=3, tags=("x",)), description="d", default=True, meta={"a": 1}),
         []),
        ({"redline": SEARCH}, LOOSER, [("redline.limit-ns", "50000000", "100000000")]),
        ({"redline": SEARCH}, {"redline": SEARCH}, []),
        ({"redline": SEARCH}, {"redline": SEARCH, **schedule(RANGE, SORT)}, [("tasks", "none", "c/sort")]),
        ({}, {"pin": PinSpec((0, 1), (2,)), "index_builds": 3},
         [("pin", "none", '{"node":[0,1],"driver":[2]}'), ("index builds", "1", "3")]),
    ],
)  # fmt: skip
def test_what_decides_figures_is_a_difference_and_nothing_else(
    planned: RecordMaker, here: dict[str, Any], there: dict[str, Any], found: list[tuple[str, str, str]]
):
    expected = tuple(str(Difference(*parts)) for parts in found)
    assert unlike_variants(("", planned("1", **here)), ("", planned("2", **there))) == expected


def test_variants_are_alike_only_with_the_same_tasks(planned: RecordMaker):
    assert not alike_variants(("es", planned("1")), ("es", planned("2", **schedule(RANGE, SORT))))
    assert alike_variants(("es", planned("1")), ("es", planned("2", **schedule(RANGE, description="d"))))


def own(name: str, base: VariantSpec = ES, **changes: Any) -> VariantSpec:
    return msgspec.structs.replace(base, name=name, **changes)


def made(*variants: VariantSpec, **facts: dict[str, Any]) -> RunRecord:
    """A run of variants; of nodes that were up, if facts of some are given."""
    engines = tuple(
        msgspec.structs.replace(
            EngineFacts(spec.name, spec.version, "b", "9.8.0", "a", "Temurin 21.0.8", (), ()),
            **facts[spec.name],
        )
        for spec in variants
        if spec.name in facts
    )
    return make_record(plan=make_plan(variants=variants), engines=engines)


def kinds(run: RunRecord) -> dict[str, tuple[str, ...]]:
    """What variants of a run differ in, as it is said, by its kind."""
    found: dict[str, tuple[str, ...]] = {}
    for one in side_differences(resolved(run)):
        found[one.kind] = (*found.get(one.kind, ()), one.text())
    return found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jvm_flags": ("-Xint", "-Xbatch")}, "JVM flags -Xint -Xbatch"),
        ({"settings": {"b": "1", "a": ["x", "y"]}}, 'setting:b 1; setting:a ["x","y"]'),
        ({"index_settings": {"index.codec": "default"}}, "index:codec default"),
        ({"environment": {"A_B": "b"}}, "environment A_B b"),
        ({"jars": ("/x/lucene-core.jar", "patched:bulk-visit")}, "jars lucene-core.jar patched:bulk-visit"),
        ({"warmups": ("warmup",)}, "warm-up warmup"),
        # Credentials are never repeated.
        ({"plugins": ("https://me:secret@host/icu.zip?key=1",)}, "plug-ins icu.zip"),
        ({"jvm_flags": ("-Xint",), "environment": {"A": "b"}}, "JVM flags -Xint; environment A b"),
        ({"heap_mb": 1024}, "heap 1024 MiB instead of the run's"),
        ({"distribution": "/d/es.zip"}, "distribution /d/es.zip instead of Maven Central"),
        (
            {"distribution": "https://me:secret@host/d/es.zip?key=1"},
            "distribution es.zip instead of Maven Central",
        ),
    ],
)
def test_each_trait_is_said_and_makes_another_variant_of_a_name(
    planned: RecordMaker, changes: dict[str, Any], said: str
):
    other = own("other", **changes)
    assert set(kinds(made(ES, other))) == {"asked"}
    assert "; ".join(beyond(other)) == said
    here, there = planned("1", variants=(own("other"),)), planned("2", variants=(other,))
    # Distributions of one name are what runs are compared for; warm-ups are held against each other in full.
    counted = not {"distribution", "warmups"} & changes.keys()
    assert bool(unlike_variants(("other", here), ("other", there))) == counted
    assert alike_variants(("other", here), ("another", there))


FIELDS = {"mapping:message.type": "text", "mapping:message.norms": "true", "mapping:tag.type": "keyword"}
USUAL = {"merge policy": "tiered", "index:refresh_interval": "1s", "segments": "1"}


def in_force(usual: dict[str, str] | None = None, **given: str) -> dict[str, Any]:
    named = {name.replace("__", ":").replace("_of_", "."): value for name, value in given.items()}
    return {"in_force": InForce(FIELDS | named, USUAL | (usual or {}))}


def test_what_nodes_have_differs_by_whether_a_variant_says_so():
    other = in_force(mapping__message_of_type="match_only_text")
    assert kinds(made(ES, own("x"), es=in_force(), x=other)) == {
        "unasked": ("message is text / match_only_text",)
    }
    asked = own("x", mappings={"message.type": "match_only_text"})
    assert kinds(made(ES, asked, es=in_force(), x=other)) == {"asked": ("message is text / match_only_text",)}
    lacking = {"in_force": InForce({name: FIELDS[name] for name in ["mapping:tag.type"]}, USUAL)}
    removed = own("x", mappings={"message": None})
    assert set(kinds(made(ES, removed, es=in_force(), x=lacking))) == {"asked"}
    three = side_differences(resolved(made(ES, own("x"), own("y"), es=in_force(), x=other, y=in_force())))
    assert [one.text() for one in three] == ["message is text (es, y) / match_only_text (x)"]
    # One that asks for it is no excuse for another that does not.
    both = side_differences(resolved(made(ES, own("y"), asked, es=in_force(), x=other, y=other)))
    assert [(one.kind, one.kinds) for one in both] == [("unasked", {"x": "asked", "y": "unasked"})]


def test_what_engines_have_by_default_is_told_apart_unless_it_decides():
    flags = {"jvm_flags": ("-Xmx1g", "-XX:+UseG1GC", "-Dos=1"), "lucene": "9.7.0"}
    quiet = in_force({"index:refresh_interval": "5s"}) | flags
    assert kinds(made(ES, OS, es=in_force() | {"jvm_flags": ("-Xmx1g", "-XX:+UseG1GC")}, os=quiet)) == {
        "asked": ("engine elasticsearch / opensearch", "version 8.11.0 / 2.11.0"),
        "default": (
            "Lucene 9.8.0 / 9.7.0", "engine's JVM flags none / -Dos=1", "index:refresh_interval 1s / 5s",
        ),
    }  # fmt: skip
    decides = in_force({"merge policy": "log_byte_size", "segments": "9"})
    assert kinds(made(ES, OS, es=in_force(), os=decides))["unasked"] == (
        "merge policy tiered / log_byte_size", "segments 1 / 9",
    )  # fmt: skip
    asked = own("x", index_settings={"index.merge.policy": "log_byte_size"})
    assert "unasked" not in kinds(
        made(own("y", OS), asked, y=in_force(), x=in_force({"merge policy": "log_byte_size"}))
    )
    # One that somebody set is no default.
    set_there = {
        "in_force": InForce(
            FIELDS | {"index:refresh_interval": "30s"}, {"merge policy": "tiered", "segments": "1"}
        )
    }
    assert kinds(made(ES, own("x"), es=in_force(), x=set_there))["unasked"] == (
        "index:refresh_interval 1s / 30s",
    )


@pytest.mark.parametrize(
    ("changes", "facts", "kind", "what"),
    [
        ({}, {"jdk": "Temurin 17.0.15"}, "unasked", "JDK"),
        ({"jdk": "17"}, {"jdk": "Temurin 17.0.15"}, "asked", "JDK"),
        ({"distribution": "official"}, {"jdk": "Temurin 17.0.15"}, "asked", "JDK"),
        ({}, {"jvm_flags": ("-XX:+UseZGC",)}, "unasked", "garbage collector"),
        ({"jvm_flags": ("-XX:+UseZGC",)}, {"jvm_flags": ("-XX:+UseZGC",)}, "asked", "garbage collector"),
        ({}, {"jvm_flags": ("-Xmx2g",)}, "unasked", "heap"),
        ({"heap_mb": 2048}, {"jvm_flags": ("-Xmx2g",)}, "asked", "heap"),
        ({}, {"build": "c"}, "unasked", "build"),
        ({"jars": ("a.jar",)}, {"jars": {"a.jar": "1"}}, "asked", "jar a.jar"),
    ],
)  # fmt: skip
def test_nodes_themselves_differ_too(changes: dict[str, Any], facts: dict[str, Any], kind: str, what: str):
    usual = {"jvm_flags": ("-Xmx1g", "-XX:+UseG1GC")}
    run = made(ES, own("x", **changes), es=usual | in_force(), x=usual | in_force() | facts)
    assert (what, kind) in {(one.what, one.kind) for one in side_differences(resolved(run))}


def test_a_cluster_that_shows_nothing_is_not_held_against_others():
    target = own("live", target=TargetSpec(("http://search-1:9200",)))
    assert not any(
        ":" in one.what for one in side_differences(resolved(made(ES, target, es=in_force(), live={})))
    )


def test_a_variant_that_is_the_first_again_is_alike():
    found = resolved(made(ES, own("es-2"), own("x", jvm_flags=("-Xint",)), es={}, x={}, **{"es-2": {}}))
    assert configured_alike(found) == ("es-2",)
    # Clusters may be on any hosts.
    first, second = (own(name, target=TargetSpec((f"http://{name}:9200",))) for name in "ab")
    assert configured_alike(resolved(made(first, second, a={}, b={}))) == ()
    assert configured_alike(resolved(made(ES, own("es-2")))) == ()
