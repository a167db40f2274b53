"""Which change an alarm is due to: variants between those of two nights, and who is asked about."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.commands.bisect import steps_between
from benchctl.results.plan import VariantSpec
from builders import ES

FLAGS = st.lists(
    st.sampled_from(["-XX:+UseZGC", "-XX:-UseZGC", "-Xmn1g", "-Xmn2g", "-XX:Tier4=5", "-Da=1", "-ea"]),
    unique=True,
    max_size=4,
).map(tuple)
SETTINGS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, 2, None]), max_size=3)
SPECS = st.builds(
    VariantSpec,
    name=st.just("es"),
    engine=st.just("elasticsearch"),
    version=st.sampled_from(["8.11.0", "8.12.0"]),
    jdk=st.sampled_from([None, "17", "21"]),
    jvm_flags=FLAGS,
    settings=SETTINGS,
    environment=st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2),
    jars=st.lists(
        st.sampled_from(["/a/core-1.0.jar", "/b/core-1.1.jar", "/a/queries-1.0.jar"]), unique=True, max_size=2
    ).map(tuple),
    heap_mb=st.sampled_from([None, 512]),
)


def plain(spec: VariantSpec) -> VariantSpec:
    return msgspec.structs.replace(spec, name="")


@given(good=SPECS, tonight=SPECS)
def test_the_steps_lead_from_one_night_to_the_other_and_each_changes_something(
    good: VariantSpec, tonight: VariantSpec
):
    steps = steps_between(good, tonight)
    specs = [plain(spec) for _, spec in steps]
    assert specs[0] == plain(good)
    assert specs[-1] == plain(tonight)
    assert all(one != other for one, other in itertools.pairwise(specs))
    names = [spec.name for _, spec in steps]
    assert names == [point.name for point, _ in steps]
    assert len(set(names)) == len(names)


def changed(**changes: Any) -> list[str]:
    base = msgspec.structs.replace(ES, jvm_flags=("-Xmn1g", "-XX:+Inline"), jars=("/a/core-1.0.jar",))
    return [point.about for point, _ in steps_between(base, msgspec.structs.replace(base, **changes))][1:]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, []),
        ({"version": "8.12.0", "jdk": "17"}, ["version elasticsearch 8.12.0", "JDK 17"]),
        (
            {"jvm_flags": ("-XX:-Inline", "-Xint")},
            ["flag none of -Xmn1g", "flag -XX:-Inline", "flag -Xint"],
        ),
        ({"jvm_flags": ("-XX:+Inline", "-Xmn1g")}, ["flag order"]),
        (
            {"jvm_flags": ("-Xmn1g", "-XX:+Inline", "-Xlog:gc", "-Xlog:safepoint")},
            ["flag -Xlog:gc", "flag -Xlog:safepoint"],
        ),
        ({"jars": ("/b/core-1.1.jar", "/b/x.jar")}, ["jar /b/core-1.1.jar", "jar /b/x.jar"]),
        (
            {"jars": ("patched:bulk-visit",)},
            ["jar none of /a/core-1.0.jar", "jar patched:bulk-visit"],
        ),
        ({"settings": {"a.b": 3}}, ["setting a.b=3"]),
    ],
)
def test_a_change_is_what_somebody_would_undo(changes: dict[str, Any], told: list[str]):
    assert changed(**changes) == told
