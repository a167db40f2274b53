"""Forks with evidence: which of them are compared."""

from typing import Any

from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EvidenceSpec
from benchctl.stats.analyse import analyse_run
from builders import make_fork, make_plan, make_record, make_summary

ONE = EvidenceSpec(("profile",), 1)


def fork(variant: str, block: int, mean_ms: float, **changes: Any) -> ForkRecord:
    return make_fork(variant, block, make_summary("range", mean_ms), **changes)


def run(evidence: EvidenceSpec | None, *forks: ForkRecord) -> RunRecord:
    return make_record(plan=make_plan(evidence=evidence), forks=forks, status="complete")


def test_forks_for_evidence_enter_no_figure_no_count_and_no_doubt():
    plain = [fork(name, block, 10.0) for block in (0, 1) for name in ("es", "os")]
    extra = [fork("es", 2, 99.0), fork("os", 2, 99.0, status="failed", reason="it broke")]
    with_it = analyse_run(run(ONE, *plain, *extra))
    without = analyse_run(run(None, *plain))
    assert with_it.rows == without.rows
    assert (with_it.forks, with_it.caveats) == (without.forks, without.caveats)


def test_evidence_in_all_forks_is_compared_and_said():
    record = run(EvidenceSpec(("inlining", "profile"), 0), *[fork(name, 0, 10.0) for name in ("es", "os")])
    found = analyse_run(record)
    assert found.forks == {"es": 1, "os": 1}
    (caveat,) = [doubt for doubt in found.caveats if "evidence" in doubt.text]
    assert caveat.text.startswith(
        "every fork collected evidence (inlining, profile), whose cost is in the values"
    )
