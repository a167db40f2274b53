from collections.abc import Callable

import msgspec
import pytest

from benchctl.report.planning import planning_lines, proposed_forks
from benchctl.results.model import RunRecord
from benchctl.results.plan import PluginSpec, StopSpec
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat, not_steady, small_scale


@pytest.mark.parametrize(("forks", "proposed"), [(1, 5), (4, 5), (5, 10), (10, 20)])
def test_more_forks_are_proposed(build: Callable[..., RunRecord], forks: int, proposed: int):
    assert proposed_forks(analyse_run(build(forks=forks))) == proposed


def test_more_iterations_only_where_they_would_help(build: Callable[..., RunRecord]):
    settled = build()
    assert "iterations=300 " in planning_lines(analyse_run(settled), settled.plan)[-1]
    few = build(edit=lambda summary, *_: msgspec.structs.replace(summary, samples=50))
    assert "iterations=900 " in planning_lines(analyse_run(few), few.plan)[-1]


def test_scale_is_said_once_a_task(record: RunRecord):
    lines = planning_lines(analyse_run(record), record.plan)
    assert len([line for line in lines if line.startswith("Scale: ")]) == 3


def test_without_a_plan_there_is_no_command(record: RunRecord):
    assert not any("benchctl run" in line for line in planning_lines(analyse_run(record), None))


def test_precision_counts_pairs_where_blocks_are_pairs(record: RunRecord):
    paired = msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, paired=True))
    shaken = []
    for fork in record.forks:
        factor = 1 + 0.03 * (fork.block % 3) * (fork.variant == "os")
        summaries = [
            msgspec.structs.replace(one, throughput_per_s=one.throughput_per_s * factor)
            for one in fork.summaries
        ]
        shaken.append(msgspec.structs.replace(fork, summaries=tuple(summaries)))
    analysis = analyse_run(msgspec.structs.replace(paired, forks=tuple(shaken)))
    line = next(one for one in planning_lines(analysis, None) if one.startswith("Precision"))
    assert line == (
        "Precision of the noisiest row: 5 forks see differences from 4.2 %, 10 would see 2.5 %; "
        "5 % takes 5 forks a side (80 % power)"
    )


def test_to_see_more_a_run_must_not_end_as_early_again(build: Callable[..., RunRecord]):
    record = build(forks=10)
    plan = msgspec.structs.replace(record.plan, forks=50, stop=StopSpec(precision=0.05))
    line = planning_lines(analyse_run(msgspec.structs.replace(record, plan=plan)), plan)[-1]
    assert "--precision" not in line
    assert line.endswith("--forks 20")


def test_to_see_more_a_plug_in_is_trusted_again_and_the_run_is_no_trial(build: Callable[..., RunRecord]):
    record = build()
    changes = {"track": "/my books", "plugin": PluginSpec("/my books/track.py", "d"), "test_mode": True}
    plan = msgspec.structs.replace(record.plan, **changes)
    line = planning_lines(analyse_run(record), plan)[-1]
    assert "--track-path '/my books'" in line
    assert "--trust" in line
    assert "--test-mode" not in line


def doubting(record: RunRecord, *doubts: Caveat) -> Analysis:
    found = analyse_run(record)
    return msgspec.structs.replace(found, caveats=(*found.caveats, *doubts))


def test_what_had_not_settled_asks_for_pilot_forks_and_keeps_its_iterations(build: Callable[..., RunRecord]):
    record = build()
    found = doubting(record, not_steady("es", "was 9 % faster at the end"))
    line = planning_lines(found, record.plan)[-1]
    assert "--until-steady" in line
    assert "iterations=300 " in line
    tasks = tuple(
        msgspec.structs.replace(task, iterations=None, time_period=60.0)
        for task in record.plan.schedules[0].schedule
    )
    timed = msgspec.structs.replace(record.plan.schedules[0], schedule=tasks)
    plan = msgspec.structs.replace(record.plan, schedules=(timed,))
    assert "--until-steady" not in planning_lines(found, plan)[-1]


def test_warm_ups_are_looked_for_anew_on_a_larger_corpus(build: Callable[..., RunRecord]):
    record = build()
    params = {**record.plan.params, "c.warmup_iterations": 470}
    plan = msgspec.structs.replace(record.plan, params=params)
    larger = planning_lines(doubting(record, small_scale("20")), plan)[-1]
    assert "warmup_iterations" not in larger
    assert "--until-steady" in larger


def test_more_index_builds_where_they_are_the_unit(build: Callable[..., RunRecord]):
    record = build(forks=6)
    forks = tuple(msgspec.structs.replace(fork, index_build=fork.block % 2) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, index_builds=2)
    record = msgspec.structs.replace(record, forks=forks, plan=plan)
    line = planning_lines(analyse_run(record), plan)[-1]
    assert "--index-builds 4 " in line
    assert line.endswith("--forks 8")
