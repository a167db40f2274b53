"""How variants differ, in words."""

from typing import Any

import msgspec
import pytest

from benchctl.results.differences import beyond, resolved, variant_differences
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.plan import NodeSpec, TargetSpec, VariantSpec
from builders import ES, OS, make_plan, make_record

SHA = "0123456789abcdef" * 4


def facts(spec: VariantSpec, **changes: Any) -> EngineFacts:
    base = EngineFacts(spec.name, spec.version, "b", "9.8.0", "a", "Eclipse Adoptium 21.0.8", (), ())
    return msgspec.structs.replace(base, **changes)


def record(*engines: EngineFacts, variants: tuple[VariantSpec, ...]) -> RunRecord:
    return make_record(plan=make_plan(variants=variants), engines=engines)


def own(name: str, base: VariantSpec = ES, **changes: Any) -> VariantSpec:
    return msgspec.structs.replace(base, name=name, **changes)


def lines(*variants: VariantSpec) -> tuple[str, ...]:
    """Before any node was up."""
    return variant_differences(resolved(record(variants=variants)))


def test_plain_variants_need_no_words():
    assert lines(ES, OS, own("es@8.19.0", version="8.19.0")) == ()


def test_a_runtime_is_said_as_it_says_itself():
    old = own("os-17", OS, jdk="17")
    run = record(facts(ES), facts(OS), facts(old, jdk="Eclipse Adoptium 17.0.15"), variants=(ES, OS, old))
    assert variant_differences(resolved(run)) == ("os-17 differs from os in: JDK 17.0.15 instead of 21.0.8",)


def test_what_one_node_says_is_not_held_against_what_another_was_asked_for():
    slow = own("slow", jvm_flags=("-Xint",))
    run = record(facts(ES), variants=(ES, slow))
    assert variant_differences(resolved(run)) == ("slow differs from es in: JVM flags -Xint",)


def test_a_runtime_given_by_an_option_is_no_secret():
    old = msgspec.structs.replace(OS, jdk="17")
    assert lines(ES, old) == ()
    new = own("os-21", OS)
    assert lines(old, new) == ("os-21 differs from os in: JDK bundled instead of 17",)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jvm_flags": ("-Xint", "-Xbatch")}, "JVM flags -Xint -Xbatch"),
        ({"heap_mb": 1024}, "heap 1024 MiB instead of the run's"),
        ({"settings": {"b": "1", "a": ["x", "y"]}}, "settings a=x,y b=1"),
        ({"index_settings": {"index.codec": "default"}}, "index settings index.codec=default"),
        ({"environment": {"A": "b"}}, "environment A=b"),
        ({"jars": ("/x/lucene-core.jar", "patched:bulk-visit")}, "jars lucene-core.jar patched:bulk-visit"),
        ({"plugins": ("g:a:1",)}, "plug-ins g:a:1"),
        ({"warmups": ("warmup",)}, "warm-up warmup"),
        ({"nodes": (NodeSpec("a"), NodeSpec("b"))}, "2 nodes instead of 1 node"),
        (
            {"nodes": (NodeSpec("a", {"node.roles": ["master"]}), NodeSpec("b"), NodeSpec("c"))},
            "3 nodes (1 x node.roles=master, 2 x no own settings) instead of 1 node",
        ),
        ({"distribution": "/d/es.zip"}, "distribution /d/es.zip instead of Maven Central"),
        (
            {"distribution": "https://me:secret@host/d/es.zip?key=1"},
            "distribution es.zip instead of Maven Central",
        ),
        ({"plugins": ("https://me:secret@host/icu.zip?key=1",)}, "plug-ins icu.zip"),
        ({"jvm_flags": ("-Xint",), "environment": {"A": "b"}}, "JVM flags -Xint; environment A=b"),
    ],
)
def test_each_part_is_said(changes: dict[str, Any], said: str):
    other = own("other", **changes)
    assert lines(ES, OS, other) == (f"other differs from es in: {said}",)
    assert lines(OS, other) == (f"other is es 8.11.0 with: {said}",)
    assert "; ".join(beyond(other)) == said


def test_it_is_the_plain_one_of_the_same_version_that_others_differ_from():
    new, newer = own("es@8.19.0", version="8.19.0"), own("x", version="8.19.0", jvm_flags=("-Xint",))
    assert lines(ES, new, newer) == ("x differs from es@8.19.0 in: JVM flags -Xint",)
    assert lines(ES, newer) == ("x differs from es in: version 8.19.0 instead of 8.11.0; JVM flags -Xint",)


def test_without_a_plain_one_it_is_the_first():
    first, second = own("a", jvm_flags=("-Xint", "-Xbatch")), own("b", jvm_flags=("-Xbatch",))
    third = own("c", jvm_flags=("-Xbatch", "-Xint"))
    assert lines(first, second, third) == (
        "a is es 8.11.0 with: JVM flags -Xint -Xbatch",
        "b differs from a in: without JVM flags -Xint",
        "c differs from a in: JVM flags in the order -Xbatch -Xint",
    )


def test_a_jar_is_said_with_its_digest_and_where_it_came_from():
    patched = own("patched", jars=("patched:bulk-visit",), plugins=("g:icu:1",))
    resolution = facts(patched, jars={"lucene-core-9.8.0.jar": SHA}, plugins={"icu": "1.0"})
    run = record(facts(ES), resolution, variants=(ES, patched))
    (line,) = variant_differences(resolved(run))
    assert line == (
        "patched differs from es in: jar lucene-core-9.8.0.jar 0123456789ab (patched:bulk-visit); "
        "plug-ins icu 1.0"
    )


def test_clusters_that_run_already_are_what_they_are():
    live = own("live", target=TargetSpec(("http://search-1:9200",)))
    assert lines(live, own("x", jvm_flags=("-Xint",))) == ("x is es 8.11.0 with: JVM flags -Xint",)
