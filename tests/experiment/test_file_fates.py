"""Call sites and fates in experiment files: what they say, and every mistake with its line."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.experiment.file import Changes
from benchctl.experiment.record import CallSite, Expectation, FateSpec, Measurement
from experiment_files import EXPERIMENT, load
from golden import Cases

WITH_CALLS = (
    EXPERIMENT.replace(
        "tables:",
        """  jit:
    {variants: [es, os], challenges: [big5rangedebug], forks: 2, evidence: {kinds: [inlining, profile]}}
  costly: {variants: [es], challenges: [range-only-short], evidence: {kinds: [profile], forks: all}}
call-sites:
  - name: visit
    measurement: jit
    variants: [os, es]
    method: DocIdsWriter::readInts24
    callee: visit
    task: big5rangedebug/range
    about: "once for every document "
tables:""",
    )
    + """
  - {statement: es inlines it, fate: {call-site: visit, variant: es, is: inlined}, needs: luck}
"""
)


def test_call_sites_and_fates_are_read(tmp_path: Path):
    spec = load(tmp_path, WITH_CALLS).spec
    assert spec.measurements["jit"] == Measurement(variants=("es", "os"), grows=False, explained=True)
    assert spec.measurements["costly"] == Measurement(variants=("es",), explained=True)
    assert spec.call_sites == (
        CallSite(
            name="visit",
            label="visit",
            measurement="jit",
            variants=("os", "es"),
            method="DocIdsWriter::readInts24",
            callee="visit",
            task="big5rangedebug/range",
            about="once for every document ",
        ),
    )
    assert [one.statement for one in spec.expectations[:2]] == ["alike when fresh", "slower once used"]
    assert spec.expectations[2] == Expectation(
        statement="es inlines it", fate=FateSpec("visit", "es", "inlined"), needs="luck"
    )


def test_forks_are_those_of_the_measurement_and_those_for_evidence(tmp_path: Path):
    found = load(tmp_path, WITH_CALLS)
    plans = {name: planned.plan for name, planned in found.plans.items()}
    assert {name: plan.forks for name, plan in plans.items()} == {
        "fresh": 3, "used": 3, "jit": 2, "costly": 3,
    }  # fmt: skip
    assert [plans["jit"].evidence_in(block) for block in range(3)] == [(), (), ("inlining", "profile")]
    assert plans["costly"].evidence_in(0) == ("profile",)
    fewer = load(tmp_path, WITH_CALLS, Changes(forks=1))
    assert {planned.plan.forks for planned in fewer.plans.values()} == {1}


def test_a_mistake_is_told_with_its_line(cases: Cases, tmp_path: Path):
    cases("fates", lambda old, new: load(tmp_path, WITH_CALLS.replace(old, new)), tmp_path)


def test_two_call_sites_have_two_names(tmp_path: Path):
    entry = WITH_CALLS[WITH_CALLS.index("  - name: visit") : WITH_CALLS.index("tables:")]
    with pytest.raises(UsageError, match="'visit' is the name of two"):
        load(tmp_path, WITH_CALLS.replace(entry, 2 * entry))


def test_forks_with_evidence_are_compared_with_their_likes_only(tmp_path: Path):
    row = "{name: cost, baseline: fresh/es/range, contender: costly/es/range}"
    text = WITH_CALLS.replace("expectations:", f"      - {row}\nexpectations:")
    with pytest.raises(UsageError, match="collect different evidence"):
        load(tmp_path, text)
    # Forks for evidence alone are not compared at all.
    plain = text.replace("costly/es/range", "jit/es/range")
    assert load(tmp_path, plain)
