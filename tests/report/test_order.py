"""The order tables: where, against what, and in which words."""

import msgspec

from benchctl.report.details import order_grids
from benchctl.report.grid import judged
from benchctl.stats.analyse import analyse
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_summary

SORT, RANGE = Task("sort", iterations=9), Task("range", iterations=9)
PLAN = make_plan(schedules=(Challenge("fresh", (RANGE,)), Challenge("debug", (SORT, RANGE))))
TIMES = ((1.0, 2.0), (1.1, 2.3), (0.9, 1.9))


def test_a_line_for_the_fresh_node_and_one_for_each_other_place():
    forks = [
        make_fork(
            "es",
            block,
            make_summary("range", fresh),
            msgspec.structs.replace(make_summary("sort", 5.0), schedule=1, task=0),
            msgspec.structs.replace(make_summary("range", later), schedule=1, task=1),
        )
        for block, (fresh, later) in enumerate(TIMES)
    ]
    throughput, service_time = order_grids(analyse({"es": forks}, PLAN))
    assert throughput.title == (
        "Order: throughput, queries/s, by what the same node had run before (paired over forks)"
    )
    first, second = throughput.texts
    assert first == ("range", "es", "on a fresh node", "1,003.4", "", "", "", "baseline")
    assert second[2:5] == ("after sort", "485.5", "-51.6")
    assert second[-1] == "slower"
    assert service_time.lines[1][-1] == judged("slower", "slower")


def test_without_a_second_place_there_is_no_table():
    forks = [make_fork("es", block, make_summary("range", 1.0)) for block in range(3)]
    assert order_grids(analyse({"es": forks}, make_plan())) == []
