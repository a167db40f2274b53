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

WITH_CALLS = (
    EXPERIMENT.replace(
        "tables:",
        """  jit:
    {variants: [es, os], challenges: [big5rangedebug], forks: 2, evidence: {kinds: [inlining, gc, gc]}}
  costly: {variants: [es], challenges: [range-only-short], evidence: {kinds: [gc], forks: all}}
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
    assert (jit.forks, jit.evidence) == (2, EvidenceEntry(("inlining", "gc", "gc"), 1))
    assert (costly.forks, costly.evidence) == (None, EvidenceEntry(("gc",), "all"))
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
    assert [plans["jit"].evidence_in(block) for block in range(3)] == [(), (), ("gc", "inlining")]
    assert plans["costly"].evidence_in(0) == ("gc",)
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
    assert "2 forks; evidence inlining, gc in 1 further fork" in measured
    assert "evidence gc in all forks" in measured
    assert "visit in DocIdsWriter::readInts24" in tables["Call sites: looked up in inlining logs"]
    assert "visit: inlined in es" in tables["Expectations"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("forks: 2, ", "forks: 4, ", "a measurement has at most the experiment's 3 forks"),
        ("forks: 2, ", "forks: 0, ", "expected a whole number >= 1"),
        ("[inlining, gc, gc]", "[inlning]", "'inlning' is none of"),
        ("[inlining, gc, gc]", "[]", "it is empty"),
        ("forks: all", "forks: many", "forks"),
        ("measurement: jit", "measurement: jt", "there is no measurement 'jt'\n  hint: did you mean 'jit'?"),
        ("measurement: jit", "measurement: costly", "measurement 'costly' keeps no inlining logs"),
        ("measurement: jit", "measurement: fresh", "measurement 'fresh' keeps no inlining logs"),
        ("variants: [os, es]", "variants: [os, ess]", "measurement 'jit' has no variant 'ess'"),
        ("variants: [os, es]", "variants: [os, os]", "variant 'os' is there twice"),
        ("DocIdsWriter::readInts24", "readInts24", "write it as Class::method"),
        ("callee: visit", "callee: Visitor::visit", "hint: write visit"),
        ("task: big5rangedebug/range", "task: big5rangedebug/", "'big5rangedebug/' is not a task"),
        ("task: big5rangedebug/range", "task: rnge", "did you mean 'range'?"),
        ("call-site: visit", "call-site: vist", "did you mean 'visit'?"),
        ("variant: es, is", "variant: os17, is", "call site 'visit' has no variant 'os17'"),
        ("is: inlined", "is: inline", "'inline' is none of"),
        ("needs: luck", "margin: 5%", "an expectation has a 'fate' or 'margin', not both"),
        ("needs: luck", "comparisons: [after]", "a 'fate' or 'comparisons', not both"),
        ("comparisons: [after], is: slower", "comparisons: [after]", "'is' is missing"),
        ("comparisons: [after], is: slower", "is: slower", "'comparisons' is missing"),
        (
            "comparisons: [engines], is: alike",
            "is: alike, comparisons: [engines], fate: {call-site: visit, variant: es, is: inlined}",
            "a 'fate' or 'comparisons', not both",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, message: str):
    assert WITH_CALLS.count(old) == 1, old
    path = write(tmp_path, WITH_CALLS.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_experiment(path, Changes(), Home(tmp_path))
    assert message in str(caught.value)
    line = int(str(caught.value).removeprefix(f"{path}:").split(":")[0])
    assert abs(line - 1 - WITH_CALLS[: WITH_CALLS.index(old)].count("\n")) <= 1


def test_call_sites_are_looked_up_in_the_log_of_one_jvm(tmp_path: Path):
    text = WITH_CALLS.replace("variants:\n", "variants:\n  es3: {extends: es, nodes: 3}\n", 1)
    text = text.replace("jit:\n    {variants: [es,", "jit:\n    {variants: [es, es3,", 1)
    text = text.replace("variants: [os, es]", "variants: [os, es, es3]", 1)
    with pytest.raises(UsageError, match="in the log of one JVM, and 'es3' has 3"):
        load_experiment(write(tmp_path, text), Changes(), Home(tmp_path))


def test_two_call_sites_have_two_names(tmp_path: Path):
    entry = WITH_CALLS[WITH_CALLS.index("  - name: visit") : WITH_CALLS.index("tables:")]
    path = write(tmp_path, WITH_CALLS.replace(entry, 2 * entry))
    with pytest.raises(UsageError, match="there are two call sites 'visit'"):
        read_experiment(path)


def test_forks_with_evidence_are_compared_with_their_likes_only(tmp_path: Path):
    row = "{name: cost, baseline: fresh/es/range, contender: costly/es/range}"
    text = WITH_CALLS.replace("expectations:", f"      - {row}\nexpectations:")
    with pytest.raises(UsageError, match=r"collect different evidence .*: nothing and gc"):
        load_experiment(write(tmp_path, text), Changes(), Home(tmp_path))
    # Forks for evidence alone are not compared at all.
    plain = text.replace("costly/es/range", "jit/es/range")
    assert load_experiment(write(tmp_path, plain), Changes(), Home(tmp_path))
