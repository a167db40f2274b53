"""Forks by what the JVM did at a call site, and what is expected of that, counted."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.experiment.judge import ExperimentAnalysis, analyse_experiment, judge_expectations, site_fates
from benchctl.experiment.record import Expectation, ExperimentRecord, FateSpec, Found, SeenCall
from benchctl.results.plan import EvidenceSpec
from made_experiment import call_site, made_record, made_runs

FATES = ("inlined", "partly", "virtual", "refused", "absent")
TIMES = {"jit": {"es": (4.0, 5.0, 4.0, 8.0), "os": (6.0, 6.0)}}


def seen(variant: str, *fates: Found | None, **changes: Any) -> list[SeenCall]:
    """A fork a fate."""
    return [
        SeenCall(site="visit", variant=variant, block=block, found=found, **changes)
        for block, found in enumerate(fates)
    ]


def expectation(is_: Any = "inlined", variant: str = "es") -> Expectation:
    return Expectation(statement="s", fate=FateSpec("visit", variant, is_))


def record(*fates: Expectation) -> ExperimentRecord:
    made = made_record([], measurements=("jit",))
    spec = msgspec.structs.replace(made.spec, call_sites=(call_site("visit", "jit"),), expectations=fates)
    return msgspec.structs.replace(made, spec=spec)


def analysed(calls: list[SeenCall], *fates: Expectation) -> ExperimentAnalysis:
    return analyse_experiment(record(*fates), made_runs(TIMES), calls)


def test_forks_that_fared_alike_stand_together_with_their_throughput_and_the_largest_group_first():
    found = analysed(seen("es", "inlined", "virtual", "inlined", "virtual", "virtual"))
    es, os = found.call_sites
    assert [one.found for one in es.groups] == ["virtual", "inlined"]
    assert [[one.block for one in group.forks] for group in es.groups] == [[1, 3, 4], [0, 2]]
    # Fork 4 has a log, and no figures: 200 and 125 queries a second are the others'.
    assert es.groups[0].throughput_per_s == pytest.approx((200 * 125) ** 0.5)
    assert es.groups[1].throughput_per_s == pytest.approx(250)
    assert os.groups == ()


def test_receivers_are_added_up():
    receivers = {"a.B": 90, "a.C": 5}
    found = analysed(seen("es", "partly", "partly", receivers=receivers, calls=100))
    (group,) = found.call_sites[0].groups
    assert group.receivers == {"a.B": 180, "a.C": 10}
    assert group.calls == 200


def test_forks_for_evidence_alone_have_their_figures_here_and_enter_no_comparison():
    runs = made_runs(TIMES)
    evidence = EvidenceSpec(("inlining",), extra_forks=1)
    plan = msgspec.structs.replace(runs["jit"].plan, forks=3, evidence=evidence)
    runs["jit"] = msgspec.structs.replace(runs["jit"], plan=plan)
    call = SeenCall(site="visit", variant="es", block=3, found="virtual")
    found = analyse_experiment(record(), runs, [call])
    assert found.call_sites[0].groups[0].throughput_per_s == pytest.approx(125)
    assert found.forks["jit"]["es"] == 3
    assert not any(one.code == "evidence" for one in found.caveats)


def test_evidence_in_all_forks_is_a_doubt_of_its_measurement():
    runs = made_runs({"plain": {"es": (4.0, 4.0), "os": (5.0,)}, "jit": {"es": (5.0, 5.2), "os": (6.0,)}})
    plan = msgspec.structs.replace(runs["jit"].plan, evidence=EvidenceSpec(("inlining",)))
    runs["jit"] = msgspec.structs.replace(runs["jit"], plan=plan)
    made = record()
    measurements = made.spec.measurements | {"plain": made.spec.measurements["jit"]}
    made = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, measurements=measurements))
    (text,) = [one.text for one in analyse_experiment(made, runs).caveats if "evidence" in one.text]
    assert text.startswith("jit: all forks collected evidence (inlining)")


@pytest.mark.parametrize(
    ("fates", "expected", "outcome"),
    [
        (("inlined",) * 3, "inlined", "confirmed"),
        (("inlined",) * 3, "virtual", "refuted"),
        (("inlined",) * 2, "inlined", "inconclusive"),
        (("inlined",) * 2, "virtual", "inconclusive"),
        (("virtual",), "virtual", "inconclusive"),
        (("virtual", None, "virtual", "virtual"), "virtual", "inconclusive"),
        (("virtual", None, "virtual", "virtual"), "inlined", "refuted"),
        (("inlined", "inlined", "virtual"), "inlined", "inconclusive"),
        (("virtual", "virtual", "partly"), "virtual", "inconclusive"),
        (("virtual", "virtual", "absent"), "virtual", "inconclusive"),
        (("partly",) * 3, "inlined", "inconclusive"),
        (("refused",) * 3, "virtual", "inconclusive"),
        ((None,) * 3, "inlined", "inconclusive"),
        ((), "inlined", "inconclusive"),
    ],
)
def test_three_forks_and_all_that_were_to_keep_a_log_have_to_show_it(
    fates: tuple[Found | None, ...], expected: str, outcome: str
):
    (result,) = analysed(seen("es", *fates), expectation(expected)).expectations
    assert result.outcome == outcome
    assert (result.showing, result.forks) == (fates.count(expected), len(fates) - fates.count(None))


def test_why_it_is_open_or_weak_is_said():
    def doubts(*fates: Found | None, **changes: Any) -> tuple[str, ...]:
        return analysed(seen("es", *fates, **changes), expectation()).expectations[0].doubts

    assert doubts("inlined", "inlined", "inlined") == ()
    assert doubts("inlined") == ("forks with an inlining log: 1; 3 are needed",)
    assert doubts("inlined", "virtual") == ("forks with an inlining log: 2; 3 are needed",)
    assert doubts(None, None) == ("forks with an inlining log: 0; 3 are needed",)
    assert doubts() == ("forks with an inlining log: 0; 3 are needed",)
    assert doubts("inlined", None, *("inlined",) * 2) == ("1 of 4 forks have no inlining log",)
    assert doubts(*("inlined",) * 3, given_up=True) == (
        "in some forks the JVM stopped using that compilation later on",
    )


def test_what_was_not_measured_is_open():
    found = analyse_experiment(record(expectation()), {})
    assert found.expectations[0].outcome == "inconclusive"
    assert [one.groups for one in found.call_sites] == [(), ()]


@given(st.lists(st.sampled_from((*FATES, None)), max_size=8))
def test_every_fork_is_in_one_group_or_has_no_log_and_opposites_never_agree(fates: list[Found | None]):
    calls = seen("es", *fates)
    results = site_fates([call_site("visit", "jit")], {}, calls)
    variant = results[0]
    listed = [one for group in variant.groups for one in group.forks] + list(variant.unread)
    assert sorted(one.block for one in listed) == [one.block for one in calls]
    assert all(one.found == group.found for group in variant.groups for one in group.forks)
    inlined, virtual = judge_expectations([expectation("inlined"), expectation("virtual")], {}, results)
    for one, other in ((inlined, virtual), (virtual, inlined)):
        assert one.outcome != "confirmed" or other.outcome == "refuted"
        assert other.outcome != "refuted" or variant.unread or one.outcome == "confirmed"
