"""The tables of what the host probe and the index builds explain."""

from collections.abc import Callable

import msgspec
import pytest

from benchctl.report.details import adjusted_grids, builds_grid
from benchctl.report.tables import render_text
from benchctl.results.model import HostProbe, RunRecord
from benchctl.stats.analyse import analyse_run


def probed(record: RunRecord, *, builds: int = 1) -> RunRecord:
    """Every fork on a host of its own speed, and on the builds in turn."""
    forks = tuple(
        msgspec.structs.replace(
            fork,
            index_build=fork.block % builds,
            probes=(HostProbe(100 + fork.block**2 + fork.position, 100, 0.0, 0.1, None),) * 2,
        )
        for fork in record.forks
    )
    return msgspec.structs.replace(record, forks=forks)


def test_a_grid_a_metric_with_plain_and_adjusted_side_by_side(build: Callable[..., RunRecord]):
    throughput, service_time = adjusted_grids(analyse_run(probed(build())))
    assert throughput.title == (
        "With the host's probes (cpu) held equal, beside the plain effect (the plain one decides): "
        "throughput; CV of es and of the variant"
    )
    assert "(the plain one decides): p90 service time;" in service_time.title
    name, effect, interval, adjusted, its_interval, plain_cv, adjusted_cv = throughput.texts[2]
    assert (name, effect, plain_cv) == ("range", "-21.4", "1.9, 1.9")
    assert adjusted.startswith("-21.")
    assert interval != its_interval
    assert adjusted_cv.count(",") == 1


def test_where_there_is_no_adjusting_the_reason_stands_in_its_place(build: Callable[..., RunRecord]):
    """One variant of three has two forks only."""
    record = probed(build(("es", "os", "noinline")))
    forks = tuple(fork for fork in record.forks if fork.variant == "os" or fork.block < 2)
    lines = adjusted_grids(analyse_run(msgspec.structs.replace(record, forks=forks)))[0].texts
    assert lines[0][4] != "n/a"
    assert lines[1][4:6] == ("n/a", "too few values (4) to adjust")


@pytest.mark.parametrize("forks", [1, 2])
def test_nothing_to_adjust_is_no_table(build: Callable[..., RunRecord], forks: int):
    assert adjusted_grids(analyse_run(build())) == []
    assert adjusted_grids(analyse_run(probed(build(forks=forks)))) == []


def test_several_contenders_are_named(build: Callable[..., RunRecord]):
    grid = adjusted_grids(analyse_run(probed(build(("es", "os", "noinline")))))[0]
    assert grid.titles[:2] == ("Operation", "Variant")
    assert [line[1] for line in grid.texts[:2]] == ["os", "noinline"]


def test_one_variant_alone_has_spreads_only(build: Callable[..., RunRecord]):
    grid = adjusted_grids(analyse_run(probed(build(("es",), 10))))[0]
    assert grid.titles == ("Operation", "CV %", "Adjusted CV")
    assert grid.title.endswith("held equal, beside the plain spread: throughput")
    assert adjusted_grids(analyse_run(build(("es",), 1))) == []


def test_builds_have_their_part_of_the_spread(build: Callable[..., RunRecord]):
    grid = builds_grid(analyse_run(probed(build(), builds=2)))
    assert grid is not None
    assert grid.texts[0][:4] == ("desc_sort_timestamp", "throughput", "es", "3 2")
    assert builds_grid(analyse_run(build())) is None


def test_texts_name_builds_where_they_are_the_unit(build: Callable[..., RunRecord]):
    record = probed(build(), builds=3)
    words = " ".join(render_text(analyse_run(record), plan=record.plan).split())
    assert "Interval and p: Welch's t over index builds, on logarithms" in words
    assert "Precision of the noisiest row: minimum detectable effect" in words
    assert "with 3 index builds, " in words
    assert " with 6; " in words
    assert "index builds a side (80 % power)" in words
    assert "every build counts alike all the same" in words
