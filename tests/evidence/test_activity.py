"""What evidence cost: forks with it against plain ones, and who is compared at all."""

from typing import Any

import pytest

from benchctl.evidence.activity import evidence_cost
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EvidenceSpec
from benchctl.stats.analyse import analyse_run
from builders import make_fork, make_plan, make_record, make_summary

ONE = EvidenceSpec(("jit",), 1)


def fork(variant: str, block: int, mean_ms: float, **changes: Any) -> ForkRecord:
    return make_fork(variant, block, make_summary("range", mean_ms), **changes)


def run(evidence: EvidenceSpec | None, *forks: ForkRecord) -> RunRecord:
    return make_record(plan=make_plan(evidence=evidence), forks=forks, status="complete")


def test_the_cost_is_a_ratio_of_geometric_means():
    record = run(ONE, fork("es", 0, 10.0), fork("es", 1, 40.0), fork("es", 2, 25.0), fork("os", 0, 10.0))
    cost = evidence_cost(record)
    assert cost is not None
    (only,) = cost.tasks
    assert (only.variant, only.plain, only.evidence) == ("es", 2, 1)
    assert only.percent == pytest.approx(25.0)
    assert (only.low_percent, only.high_percent) == (None, None)


def test_several_forks_with_it_give_an_interval():
    forks = [fork("es", block, 10.0 + 0.1 * block) for block in range(5)]
    record = make_record(plan=make_plan(forks=3, evidence=EvidenceSpec(("jit",), 2)), forks=tuple(forks))
    cost = evidence_cost(record)
    assert cost is not None
    (only,) = cost.tasks
    assert only.low_percent is not None
    assert only.high_percent is not None
    assert only.low_percent < only.percent < only.high_percent


@pytest.mark.parametrize("evidence", [None, EvidenceSpec(("jit",), 0)])
def test_without_extra_forks_nobody_knows_the_cost(evidence: EvidenceSpec | None):
    assert evidence_cost(run(evidence, fork("es", 0, 10.0), fork("es", 1, 10.0))) is None


def test_forks_for_evidence_enter_no_figure_no_count_and_no_doubt():
    plain = [fork(name, block, 10.0) for block in (0, 1) for name in ("es", "os")]
    extra = [fork("es", 2, 99.0), fork("os", 2, 99.0, status="failed", reason="it broke")]
    with_it = analyse_run(run(ONE, *plain, *extra))
    without = analyse_run(run(None, *plain))
    assert with_it.rows == without.rows
    assert (with_it.forks, with_it.caveats) == (without.forks, without.caveats)
    assert (without.evidence, with_it.evidence is None) == (None, False)


def test_evidence_in_all_forks_is_compared_and_said():
    record = run(EvidenceSpec(("gc", "jit"), 0), *[fork(name, 0, 10.0) for name in ("es", "os")])
    found = analyse_run(record)
    assert found.forks == {"es": 1, "os": 1}
    (caveat,) = [doubt for doubt in found.caveats if doubt.code == "evidence"]
    assert caveat.text.startswith("every fork carried evidence (gc, jit): what it cost is not known")
