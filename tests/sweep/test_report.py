"""Sweeps for readers: the answer first, then typed tables that fit a narrow screen."""

import msgspec
import pytest

from benchctl.report.blocks import Notes, markdown, page_of, plain
from benchctl.report.screen import render_screen
from benchctl.report.sentences import verdict
from benchctl.stats.analyse import analyse_run
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import adjust
from benchctl.stats.parts import Bounded, SweepAxis, SweepCurve
from benchctl.sweep.report import sweep_answer, sweep_tables
from builders import ES
from sweeps import AXIS, compared, forks, make_curve, swept_record, two_laws

NAMES = SweepAxis("index.refresh_interval", ("1s", "30s", "off"), fixed="docs 1m")


def three() -> SweepCurve:
    return make_curve(
        {
            "es": forks(lambda x: 4 * x**0.9),
            "os": forks(lambda x: 4 * 3**0.3 * x**0.6, seed=2),
            "es@9.2.0": forks(lambda x: 3 * x**0.9, seed=3),
        }
    )


def shown(curve: SweepCurve, width: int) -> list[str]:
    return plain(page_of(sweep_tables(curve), sweep_answer(curve)), width).splitlines()


def test_what_is_held_is_less_and_not_faster():
    values = {"es": forks(lambda x: 100 * x), "os": forks(lambda x: 200 * x, seed=2)}
    curve = make_curve(values, metric="heap")
    (answer, *_) = sweep_answer(curve)
    assert "more from 1 to 8" in answer
    assert not [word for line in shown(curve, 120) for word in ("faster", "slower") if word in line.lower()]


def test_each_further_variant_has_its_answer_and_lines():
    curve = three()
    answer = sweep_answer(curve)
    assert answer[0].startswith("os against es by clients: slower from 1 to 2 (")
    assert answer[1].startswith("es@9.2.0 against es by clients: faster from 1 to 8 (")
    points, growth = sweep_tables(curve)
    assert points.spans[:3] == (3, 0, 0)
    assert points.titles == ("clients", "Variant", "Value", "Diff %", "95% interval", "p", "Verdict")
    assert [*points.cells][2][6].verdict == "faster"
    assert [line[0] for line in growth.texts if line[0]] == [
        "es", "os", "es@9.2.0", "os - es", "es@9.2.0 - es",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 200])
def test_it_keeps_to_the_width(width: int):
    lines = [line for curve in (two_laws(), three(), by_name()) for line in shown(curve, width)]
    assert max(map(len, lines)) <= width


def by_name() -> SweepCurve:
    return make_curve({"es": forks(lambda x: x, NAMES), "os": forks(lambda x: x + 1, NAMES, seed=2)}, NAMES)


def test_points_that_are_no_numbers_have_a_table_and_verdicts_alone():
    curve = by_name()
    (points,) = sweep_tables(curve)
    assert points.title == (
        "big5: range, p90 service time by index.refresh_interval, docs 1m, ms "
        "(lower is better; mean, its 95% interval)"
    )
    assert [line[0] for line in points.texts] == ["1s", "30s", "off"]
    (answer,) = sweep_answer(curve)
    assert answer.startswith("os against es by index.refresh_interval: slower from 1s to off (+")
    assert answer.endswith("%).")


def test_one_variant_has_values_and_growth():
    curve = make_curve({"es": forks(lambda x: 100 * x / (x + 3))}, comparisons=())
    points, growth = sweep_tables(curve)
    assert points.titles == ("clients", "es")
    assert growth.texts[0][4].startswith("no, it falls (p ")
    first, second = sweep_answer(curve)
    assert first.startswith("Growth exponent in clients: es 0.")
    assert second.startswith("es is not a power law (p <0.001): its exponent falls, 0.")


def test_forks_that_failed_are_counted_in_the_tables():
    os = forks(lambda x: 2 * x, seed=2)
    os[2] = {block: value for block, value in os[2].items() if block != 3}
    curve = make_curve({"es": forks(lambda x: x), "os": os}, comparisons=())
    points, growth = sweep_tables(curve)
    assert [line[3] for line in points.texts] == ["6, 6", "6, 6", "6, 5", "6, 6"]
    lines = {line[0]: line for line in growth.texts}
    assert lines["os"][4].endswith("1 block without all points excluded")


def test_why_there_is_no_exponent_is_said():
    values = {"es": forks(lambda x: x - 1), "os": forks(lambda x: x, seed=2)}
    curve = make_curve(values, metric="gc")
    assert sweep_answer(curve)[1:] == [
        "No growth exponent of es, os: values may be 0, and nothing is a multiple of 0."
    ]
    (points,) = sweep_tables(curve)
    assert points.texts[0][1] == "0"


def test_a_point_that_most_blocks_lack_is_named_where_it_matters():
    os = [*forks(lambda x: 2 * x, seed=2)[:3], {0: 16.0}]
    curve = make_curve({"es": forks(lambda x: x), "os": os}, comparisons=())
    growth = {line[0]: line for line in sweep_tables(curve)[1].texts}
    assert growth["os - es"][4].endswith("without 8, which most blocks lack")


def test_what_is_one_fork_has_no_interval_and_what_is_missing_no_value():
    points = [{0: 1.0}, {0: 2.0}, {0: None}, {}]
    (values, growth) = sweep_tables(make_curve({"es": points}, comparisons=()))
    assert [line[1] for line in values.texts] == ["1.000 (one fork)", "2.000 (one fork)", "n/a", "n/a"]
    assert growth.texts[0][3] == "n/a"
    assert "only one block has all points" in growth.texts[0][4]
    assert "without 4, 8, which most blocks lack" in growth.texts[0][4]
    assert sweep_answer(make_curve({"es": points}, comparisons=())) == [
        "Growth exponent? in clients: es 1.00 (no interval)."
    ]


def test_doubts_are_numbered_where_there_are_notes():
    doubt = Caveat("no-spread", "the values of all forks are identical: nothing to test with")
    comparisons = compared({"es": forks(lambda x: x), "os": forks(lambda x: x, seed=2)}, "service_time_p90")
    comparisons[1] = [msgspec.structs.replace(comparisons[1][0], caveats=(doubt,))]
    curve = two_laws(comparisons=comparisons)
    assert "Notes" not in sweep_tables(curve)[0].titles
    grid = sweep_tables(curve, Notes((doubt,), ()))[0]
    assert [line[-1] for line in grid.texts] == ["", "1", "", ""]


def test_markdown_has_the_same_tables():
    text = markdown([sweep_tables(two_laws())])
    assert "| clients | es | os | Diff % | 95% interval | p | Verdict |" in text
    assert "| os - es |" in text


def test_undecided_points_are_told_as_such():
    values = {"es": forks(lambda x: x, sd=0.3), "os": forks(lambda x: x, seed=2, sd=0.3)}
    comparisons = [adjust(point) for point in compared(values, "service_time_p90")]
    (answer, _) = sweep_answer(make_curve(values, comparisons=comparisons))
    assert answer == "os against es by clients: inconclusive from 1 to 8."
    assert len(AXIS.labels) == 4


def test_no_interval_of_a_mean_reaches_below_zero_or_is_told_as_a_percentage():
    curve = make_curve({"es": forks(lambda x: 100 * x, sd=1.5, blocks=3)}, comparisons=())
    for line in sweep_tables(curve)[0].cells:
        low, high = line[1].aside.split("..")
        assert 0 < float(low.replace(",", "")) < float(high.replace(",", ""))


@pytest.mark.parametrize(("blocks", "doubt"), [(3, "?"), (5, "")])
def test_what_few_blocks_say_of_growth_is_not_to_be_quoted(blocks: int, doubt: str):
    curve = make_curve(
        {
            "es": forks(lambda x: 100 * x / (x + 3), sd=0.001, blocks=blocks),
            "os": forks(lambda x: 20 * x**0.9, sd=0.001, blocks=blocks, seed=2),
        }
    )
    answer = " ".join(sweep_answer(curve))
    assert f"Growth exponent{doubt} in clients: " in answer
    assert f"es is not a power law{doubt} (p " in answer
    _, growth = sweep_tables(curve)
    assert growth.texts[0][4].startswith(f"no{doubt}, it falls")


def test_what_weakens_a_point_weakens_what_is_said_of_the_curve():
    curve = make_curve({"es": forks(lambda x: x), "os": forks(lambda x: 2 * x, seed=2)})
    weak = msgspec.structs.replace(
        curve,
        lines=(
            curve.lines[0],
            msgspec.structs.replace(curve.lines[1], remarks=((), ("not warmed up",), (), ())),
        ),
    )
    assert sweep_answer(weak)[-1].startswith("Growth exponent? in clients: ")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Bounded(0.0004, -0.0013, 0.0022), "0.000 (-0.001 to 0.002)"),
        (Bounded(-0.00004, -0.3, 0.3), "0.00 (-0.30 to 0.30)"),
        (Bounded(0.9, 0.89, 0.91), "0.90 (0.89 to 0.91)"),
        (Bounded(-0.004), "0.00 (no interval)"),
    ],
)
def test_an_exponent_near_zero_has_digits_that_say_something(found: Bounded, said: str):
    curve = make_curve({"es": forks(lambda x: x)}, comparisons=())
    line = msgspec.structs.replace(
        curve.lines[0], growth=msgspec.structs.replace(curve.lines[0].growth, exponent=found, misfit="")
    )
    assert said in sweep_answer(msgspec.structs.replace(curve, lines=(line,)))[0]


def test_a_screen_of_curves_has_no_two_blank_lines_in_a_row():
    record = swept_record()
    screen = render_screen(analyse_run(record), plan=record.plan, lines=24).plain
    assert "more curve" in screen
    assert "\n\n\n" not in screen


@pytest.mark.parametrize(("blocks", "provisional"), [(3, True), (5, False)])
def test_one_variants_curve_by_few_forks_is_provisional(blocks: int, provisional: bool):  # noqa: FBT001 - drawn
    record = swept_record(sweep=("clients=1,2,4",), blocks=blocks, variants=(ES,))
    found = verdict(analyse_run(record))
    assert found.startswith("One variant: how its figures change")
    assert ("Provisional: fewer than 5 forks at a point." in found) is provisional
