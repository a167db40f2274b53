"""Variants of microbenchmarks as they are written, and the command that repeats their run."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.micro.conduct import MICRO_METRICS, MicroEntry, micro_caveats, parse_variant
from benchctl.results.plan import EvidenceSpec, MicroSpec, Plan, StopSpec
from benchctl.stats.metrics import metrics_in
from benchctl.track.model import Challenge, Task
from builders import make_plan

MICRO = MicroSpec(
    "/b/Sum.java", "d" * 64, params={"size": ("1", "2")}, threads=(1, 64), arguments=("-wi", "5")
)


def plan(*variants: str) -> Plan:
    return make_plan(
        variants=tuple(map(parse_variant, variants)),
        schedules=(Challenge("Sum", (Task("sum", clients=64),)),),
        micro=MICRO,
        forks=7,
        origin="empty",
        metrics=MICRO_METRICS,
        evidence=EvidenceSpec(("inlining",), 1),
        stop=StopSpec(decided=True),
    )


def test_a_variant_has_jars_flags_and_a_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = parse_variant("new=jar:a.b:c:2,jar:own.jar,jar:patched:bulk-visit,jvm:-XX:A=1,2,jdk:17")
    assert found.jars == ("a.b:c:2", str(tmp_path / "own.jar"), "patched:bulk-visit")
    assert (found.name, found.engine, found.jvm_flags, found.jdk) == ("new", "jvm", ("-XX:A=1,2",), "17")
    assert parse_variant("plain").jars == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("X", "'X' cannot be a variant's label"),
        ("a=heap:1g", "'heap:1g' is neither jar:, jvm: nor jdk:"),
        ("a=", "'' is neither"),
        ("a=jvm:Inline", "'Inline' is not a JVM flag"),
    ],
)
def test_what_is_no_variant_is_refused(text: str, said: str):
    with pytest.raises(UsageError, match=said):
        parse_variant(text)


def test_microbenchmarks_are_compared_by_what_they_have():
    assert [one.key for one in metrics_in(plan("a"))][:2] == ["throughput", "op_time"]


def test_more_threads_than_cpus_are_told():
    (said,) = micro_caveats(plan("a"))
    assert "up to 64 threads on" in said
    assert micro_caveats(msgspec.structs.replace(plan("a"), micro=None)) == ()


def test_an_entry_of_a_file_is_a_specification(tmp_path: Path):
    (tmp_path / "Sum.java").write_text("class Sum {}\n")
    entry = MicroEntry("Sum.java", params={"size": (1, 0.5, "x")}, threads=(1, 2), jmh="-wi 1")
    spec = entry.spec(tmp_path)
    assert (spec.source, spec.params, spec.threads, spec.arguments) == (
        str(tmp_path / "Sum.java"),
        {"size": ("1", "0.5", "x")},
        (1, 2),
        ("-wi", "1"),
    )
    for changes in ({"jmh": "-wi '"}, {"threads": (0,)}, {"timeout": 0.0}, {"source": "Sub.java"}):
        with pytest.raises(UsageError):
            msgspec.structs.replace(entry, **changes).spec(tmp_path)
