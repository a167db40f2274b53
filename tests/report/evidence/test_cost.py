"""What evidence cost, in words."""

import pytest

from benchctl.report.command_line import command
from benchctl.report.details import cost_grid, further_grids
from benchctl.results.plan import EvidenceSpec
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from builders import make_fork, make_plan, make_record, make_summary


def analysis(extra: int, forks: int = 2) -> Analysis:
    plan = make_plan(forks=forks, evidence=EvidenceSpec(("gc", "jit"), extra))
    found = [
        make_fork(
            name, block, make_summary("range", mean * (1.2 if plan.is_extra(block) else 1) + block / 10)
        )
        for name, mean in (("es", 10.0), ("os", 20.0))
        for block in range(forks + extra)
    ]
    return analyse_run(make_record(plan=plan, forks=tuple(found)))


def test_one_fork_has_no_interval():
    grid = cost_grid(analysis(1))
    assert grid is not None
    assert grid.title == (
        "What evidence (gc, jit) cost: mean service time of 1 fork with it over plain ones - 1; one fork: no "
        "interval; such forks run behind all others and enter no comparison"
    )
    assert (grid.titles, grid.texts) == (("Operation", "es %", "os %"), (("range", "+21.4", "+20.7"),))


def test_several_have_one():
    found = analysis(3, forks=3)
    grid = cost_grid(found)
    assert grid is not None
    assert "of 3 forks with it over plain ones - 1, with 95 % intervals" in grid.title
    assert grid.texts[0][1].startswith("+22.8 (+20.")
    assert grid in further_grids(found, details=False)


def test_without_extra_forks_there_is_no_table():
    assert cost_grid(analysis(0)) is None


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (None, ""),
        (EvidenceSpec(("gc", "jit"), 1), "--evidence gc,jit --forks"),
        (EvidenceSpec(("os",), 3), "--evidence os --evidence-forks 3 --forks"),
        (EvidenceSpec(("os",), 0), "--evidence os --evidence-forks all --forks"),
    ],
)
def test_a_command_that_repeats_a_run_collects_the_same(evidence: EvidenceSpec | None, words: str):
    text = command(make_plan(evidence=evidence), forks=2, corpus_documents=1000, iterations=None)
    assert words in text
    assert ("--evidence" in text) == bool(words)
