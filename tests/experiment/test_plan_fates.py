"""Call sites and fates in experiment files: what they say, and every mistake with its line."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.experiment.estimate import content_listings
from benchctl.experiment.file import read_experiment
from benchctl.experiment.plan import Changes, change, left_out, load_experiment
from benchctl.experiment.record import CallSite, Expectation, FateSpec
from benchctl.home import Home
from benchctl.report.table import pieces
from benchctl.spec import EvidenceEntry
from experiment_files import EXPERIMENT, write
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
    spec = read_experiment(write(tmp_path, WITH_CALLS)).spec
    *_, jit, costly = spec.measurements
    assert (jit.forks, jit.evidence) == (2, EvidenceEntry(("inlining", "profile"), 1))
    assert (costly.forks, costly.evidence) == (None, EvidenceEntry(("profile",), "all"))
    assert spec.call_sites == (
        CallSite(
            name="visit",
            label="visit",
            measurement="jit",
            variants=("os", "es"),
            method="DocIdsWriter::readInts24",
            callee="visit",
            task="big5rangedebug/range",
            about="once for every document",
        ),
    )
    assert [one.statement for one in spec.expectations[:2]] == ["alike when fresh", "slower once used"]
    assert spec.expectations[2] == Expectation(
        statement="es inlines it", fate=FateSpec("visit", "es", "inlined"), needs="luck"
    )


def test_expectations_of_both_kinds_keep_the_order_of_the_file(tmp_path: Path):
    before, after = WITH_CALLS.split("expectations:\n")
    *others, fate = after.splitlines(keepends=True)
    path = write(tmp_path, "".join((before, "expectations:\n", fate, *others)))
    spec = read_experiment(path).spec
    listed = "".join(pieces(list(content_listings(spec))[-1], "text"))
    order = [listed.index(text) for text in ("es inlines it", "alike when fresh", "slower once used")]
    assert order == sorted(order)


def test_forks_are_those_of_the_measurement_and_those_for_evidence(tmp_path: Path):
    path = write(tmp_path, WITH_CALLS)
    found = load_experiment(path, Changes(), Home(tmp_path))
    plans = {name: planned.plan for name, planned in found.plans.items()}
    assert {name: plan.forks for name, plan in plans.items()} == {
        "fresh": 3, "used": 3, "jit": 2, "costly": 3,
    }  # fmt: skip
    assert [plans["jit"].evidence_in(block) for block in range(3)] == [(), (), ("inlining", "profile")]
    assert plans["costly"].evidence_in(0) == ("profile",)
    assert found.spec.total_forks == 2 * 3 + 2 * 3 + 2 * (2 + 1) + 3
    fewer = load_experiment(path, Changes(forks=1), Home(tmp_path))
    assert {planned.plan.forks for planned in fewer.plans.values()} == {1}


def test_call_sites_go_with_their_measurement(tmp_path: Path):
    spec = read_experiment(write(tmp_path, WITH_CALLS)).spec
    assert change(spec, Changes(only=("jit",))).expectations == spec.expectations[2:]
    some = change(spec, Changes(only=("fresh", "used")))
    assert (some.call_sites, some.expectations) == ((), spec.expectations[:2])
    assert left_out(spec, some) == "2 measurements, 1 expectation, 1 call site"


def test_they_are_listed(tmp_path: Path):
    spec = read_experiment(write(tmp_path, WITH_CALLS)).spec
    tables = {one.title: "".join(pieces(one, "text")) for one in content_listings(spec)}
    measured = tables["Measurements: runs, interleaved"]
    assert "2 forks; evidence inlining, profile in 1 further fork" in measured
    assert "evidence profile in all forks" in measured
    assert "visit in DocIdsWriter::readInts24" in tables["Call sites: looked up in inlining logs"]
    assert "visit: inlined in es" in tables["Expectations"]


def test_a_mistake_is_told_with_its_line(cases: Cases, tmp_path: Path):
    cases(
        "fates",
        lambda old, new: load_experiment(
            write(tmp_path, WITH_CALLS.replace(old, new)), Changes(), Home(tmp_path)
        ),
        tmp_path,
    )


def test_two_call_sites_have_two_names(tmp_path: Path):
    entry = WITH_CALLS[WITH_CALLS.index("  - name: visit") : WITH_CALLS.index("tables:")]
    path = write(tmp_path, WITH_CALLS.replace(entry, 2 * entry))
    with pytest.raises(UsageError, match="there are two call sites 'visit'"):
        read_experiment(path)


def test_forks_with_evidence_are_compared_with_their_likes_only(tmp_path: Path):
    row = "{name: cost, baseline: fresh/es/range, contender: costly/es/range}"
    text = WITH_CALLS.replace("expectations:", f"      - {row}\nexpectations:")
    with pytest.raises(UsageError, match=r"collect different evidence .*: nothing and profile"):
        load_experiment(write(tmp_path, text), Changes(), Home(tmp_path))
    # Forks for evidence alone are not compared at all.
    plain = text.replace("costly/es/range", "jit/es/range")
    assert load_experiment(write(tmp_path, plain), Changes(), Home(tmp_path))
