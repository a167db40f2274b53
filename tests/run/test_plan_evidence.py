"""Which evidence a run may collect, in which of its forks, and what it is compared with."""

import pytest

from benchctl.results.likeness import unlike_variants
from benchctl.results.plan import EvidenceSpec
from benchctl.run.forecast import _same
from builders import make_fork, make_plan, make_record

EXTRA = EvidenceSpec(("inlining", "profile"), 2)
EVERYWHERE = EvidenceSpec(("inlining", "profile"), 0)


@pytest.mark.parametrize(
    ("evidence", "carrying", "extra"),
    [(None, set(), set()), (EXTRA, {2, 3}, {2, 3}), (EVERYWHERE, {0, 1, 2, 3}, set())],
)
def test_extra_forks_come_behind_the_plans_own(
    evidence: EvidenceSpec | None, carrying: set[int], extra: set[int]
):
    plan = make_plan(evidence=evidence)
    assert {block for block in range(4) if plan.evidence_in(block)} == carrying
    assert {block for block in range(4) if plan.is_extra(block)} == extra


def test_a_record_knows_its_blocks_and_who_is_compared():
    forks = tuple(make_fork("es", block) for block in (0, 1, 3))
    record = make_record(plan=make_plan(evidence=EXTRA), forks=forks)
    assert (record.block_numbers, record.blocks, record.total) == ((0, 1, 2, 3), 4, 8)
    assert [fork.block for fork in record.done("es")] == [0, 1, 3]
    assert [fork.block for fork in record.compared("es")] == [0, 1]
    assert (2, "es") in record.missing()


def test_blocks_for_evidence_stay_where_they_are_when_a_run_ends_early():
    plan = make_plan(forks=50, evidence=EXTRA)
    forks = tuple(make_fork(name, block) for block in (0, 1, 50) for name in ("es", "os"))
    record = make_record(plan=plan, forks=forks, stopped="ended after 2 of at most 50 forks per variant")
    assert record.block_numbers == (0, 1, 50, 51)
    assert record.missing() == ((51, "es"), (51, "os"))


def test_forks_that_carry_evidence_are_unlike_plain_ones_and_extra_forks_change_nothing():
    plain, extra, everywhere = (
        make_record(name, plan=make_plan(evidence=evidence))
        for name, evidence in (("1", None), ("2", EXTRA), ("3", EVERYWHERE))
    )
    assert unlike_variants(("es", plain), ("es", extra)) == ()
    (said,) = unlike_variants(("es", plain), ("es", everywhere))
    assert said == "different evidence: none vs inlining+profile"
    assert not _same(plain.plan, everywhere.plan)
    assert _same(plain.plan, extra.plan)
