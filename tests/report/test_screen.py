"""What a run prints at its end: nothing is left out in silence. Whole screens are among the goldens."""

import csv
import io
import json
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.report.charts.plots import forest_charts
from benchctl.report.facts import fact_sections
from benchctl.report.formats import LINES, all_notes, render, render_screen
from benchctl.report.html.page import render_page, run_subject
from benchctl.report.layout import baseline_of
from benchctl.report.numbers import rough
from benchctl.report.planning import next_command
from benchctl.report.sentences import headline, verdict
from benchctl.results.figures import TaskSummary
from benchctl.results.model import InForce
from benchctl.results.plan import VariantSpec
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat
from benchctl.stats.decisions import gate
from benchctl.stats.metrics import metric
from builders import ES, make_fork, make_plan, make_summary
from made_builds import builds, built, built_record
from report.conftest import changed, complete_record

MORE = "benchctl show 20260101-000000-big5rangedebug-abcd -v"


def of_tasks(count: int) -> Analysis:
    """More rows than a screen has lines, the later ones of larger differences; only the last is sure."""
    analysis = analyse_run(complete_record(answers=None))
    row = analysis.rows[0]
    rows = []
    for task in range(count):
        verdict = "slower" if task == count - 1 else "inconclusive"
        found = msgspec.structs.replace(row.comparisons[0], effect_percent=-float(task), verdict=verdict)
        rows.append(msgspec.structs.replace(row, task=task, label=f"task-{task}", comparisons=(found,)))
    return msgspec.structs.replace(analysis, rows=tuple(rows))


def test_a_run_without_any_row_has_a_screen():
    record = complete_record(forks=0, status="failed")
    assert "Nothing was measured" in render_screen(analyse_run(record), plan=record.plan).plain
    nothing = msgspec.structs.replace(analyse_run(record), rows=())
    assert "Nothing was measured" in render_screen(nothing, plan=record.plan).plain


def test_the_row_over_all_requests_is_shown_however_small_its_difference_is():
    analysis = of_tasks(60)
    (sure,) = analysis.rows[-1].comparisons
    rows = [
        msgspec.structs.replace(
            row, comparisons=(msgspec.structs.replace(row.comparisons[0], verdict=sure.verdict),)
        )
        for row in analysis.rows
    ]
    analysis = msgspec.structs.replace(analysis, rows=tuple(rows))
    assert "task-0 " not in render_screen(analysis, width=100, more=MORE).plain
    rows[0] = msgspec.structs.replace(rows[0], whole=True)
    assert "task-0 " in render_screen(msgspec.structs.replace(analysis, rows=tuple(rows)), width=100).plain
    # But not for a rate that was given.
    rows[0] = msgspec.structs.replace(rows[0], caveats=(Caveat("offered-rate", "as asked for"),))
    shown = render_screen(msgspec.structs.replace(analysis, rows=tuple(rows)), width=100).plain
    assert "task-0 " not in shown


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 99), st.integers(LINES, 80), st.integers(80, 200))
def test_rows_that_do_not_fit_are_counted(count: int, lines: int, width: int):
    text = render_screen(of_tasks(count), width=width, lines=lines, more=MORE).plain
    shown = [line for line in text.splitlines() if line.startswith("task-")]
    assert len(text.splitlines()) <= lines
    assert max(map(len, text.splitlines())) <= width
    assert any(line.startswith(f"task-{count - 1} ") and line.endswith("slower") for line in shown)
    hidden = count - len(shown)
    assert ("more row" in text) == bool(hidden)
    if hidden:
        assert f"{hidden} more row" in text
        names = {int(line.split()[0].removeprefix("task-")) for line in shown}
        assert names == set(range(hidden, count))  # the largest differences


def test_the_gravest_notes_stay_and_others_are_counted():
    def failing(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, failures={"http_error": 1 + summary.task})

    record = complete_record(edit=failing)
    text = render_screen(analyse_run(record), plan=record.plan, more=MORE, lines=22).plain
    notes = [line for line in text.splitlines() if line.startswith("  1  ")]
    assert "failed" in notes[0]
    assert "different results" not in text
    assert "more note" in text


def test_names_are_neither_cut_nor_obeyed():
    analysis = analyse_run(complete_record())
    name = "es@8.19.0-with-a-rather-long-name"
    found = changed(analysis, lambda _, one: msgspec.structs.replace(one, contender=name))
    rows = tuple(
        msgspec.structs.replace(
            row,
            label=f"{row.label}\x1b[31m",
            figures=(row.figures[0], msgspec.structs.replace(row.figures[1], variant=name)),
        )
        for row in found.rows
    )
    found = msgspec.structs.replace(found, rows=rows, variants=("es", name), forks={"es": 5, name: 5})
    text = render_screen(found).plain
    assert f"big5rangedebug: {name} vs es 8.11.0" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "…" not in text


def paused(later: float) -> Analysis:
    def edit(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        pause = later + 0.1 * block if variant == "os" and later else 0.004 * (block % 2) * bool(later)
        return msgspec.structs.replace(summary, meters={"gc": pause})

    return analyse_run(complete_record(forks=6, edit=edit), metrics=[metric("gc")])


def test_what_may_be_0_is_shown_with_an_interval_that_may_have_no_upper_end():
    found = paused(0.9)
    (one,) = found.rows[0].comparisons
    assert (one.verdict, one.high_percent) == ("slower", None)
    for kind in ("text", "markdown", "csv", "json"):
        assert "Infinity" not in render(found, kind)
    assert f" over {one.low_percent:+,.0f}" in render_screen(found).plain
    assert f"over {one.low_percent:+,.0f}" in render(found, "markdown")
    assert forest_charts(found)


def test_what_never_happened_has_a_verdict_without_a_ratio():
    found = paused(0.0)
    lines = render_screen(found).plain.splitlines()
    assert sum(line.removesuffix(" [1]").endswith(" equal") for line in lines) == len(found.rows)
    for kind in ("text", "markdown", "json"):
        assert "0 in every fork of es" in " ".join(render(found, kind).split())
    assert not forest_charts(found)


# Index builds.


def side(seconds: float, size: int):
    wobble = (1.0, 1.01, 0.99, 1.005)
    return tuple(built(seconds * by, int(size * by**0.1), took_s=9.0 + seconds * by / 3) for by in wobble)


RECORD = built_record(es=side(10.0, 2_000_000), os=side(20.0, 2_002_000)[::-1])
FOUND = analyse_run(RECORD)


def test_a_run_that_only_built_has_a_headline_verdicts_and_a_table():
    """`: os vs es (baseline), 0 forks each` and `os vs es, 0 tasks: .` is what it was."""
    assert (
        headline(FOUND)
        == "index builds: os 2.11.0 vs es 8.11.0 (baseline), 4 index builds each, 1m documents"
    )
    assert verdict(FOUND) == (
        "Index builds of os against es: slower? in docs/s (-50.0%) and force-merge (+100.0%); equal? in "
        "size. Provisional: fewer than 5 index builds per variant."
    )
    shown = render_screen(FOUND, plan=RECORD.plan).plain
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("docs/s "))
    assert row == ["docs/s", "99.88", "49.94", "-50.0", "-51..-49", "<0.001", "slower?"]
    assert "up to 53% of index builds" in shown
    assert "Next" not in shown
    assert next_command(FOUND, RECORD.plan) is None
    (facts,) = (one.lines for one in fact_sections(RECORD) if one.heading == "Run")
    assert facts[1] == "4 index builds of every variant, and no forks"


def test_points_of_a_sweep_have_the_baseline_of_their_own():
    swept = msgspec.structs.replace(FOUND, variants=("es.a", "es", "os"))
    assert "Index builds of os against es: " in verdict(swept)
    assert baseline_of(swept.rows) == "es"
    apart = [msgspec.structs.replace(one, baseline="es.a") for one in FOUND.rows[0].comparisons]
    other = msgspec.structs.replace(FOUND.rows[0], comparisons=apart)
    assert baseline_of([*FOUND.rows, other]) == "the first"


def test_builds_from_the_cache_are_marked_on_the_first_screen():
    record = built_record(es=builds(10.0, 10.1), os=builds(9.0, 9.1, cached=True))
    assert "from the cache" in render_screen(analyse_run(record)).plain
    assert "from the cache" not in render_screen(FOUND).plain


def test_one_variant_has_its_builds_alone():
    found = analyse_run(built_record({"variants": (ES,)}, es=builds(10.0, 10.1, 9.9)))
    shown = render_screen(found).plain
    assert "index builds: es 8.11.0, 3 index builds" in shown
    assert "CV of builds" in shown
    assert "| size, MB | 2.000 | 0.0% |" in render(found, "markdown")


def test_every_format_has_the_builds():
    row = json.loads(render(FOUND, "json", records=[RECORD]))["rows"][0]
    assert (row["metric"], row["level"], row["comparisons"][0]["replicate"]) == (
        "build_rate",
        "build",
        "build",
    )
    lines = list(csv.DictReader(io.StringIO(render(FOUND, "csv"))))
    assert [line["metric"] for line in lines] == ["build_rate", "force_merge", "index_size"]
    assert lines[0]["units_baseline"] == "4"
    page = render_page(run_subject(RECORD, FOUND))
    assert "<title>index builds: es and os" in page
    assert "4 index builds of es, 4 index builds of os on host" in page
    for text in (render(FOUND, "text", width=400), render(FOUND, "markdown"), page):
        assert "docs/s" in text
        assert "paired t over builds, which were made in turns" in text


def test_beside_forks_they_are_on_the_first_screen():
    forks = tuple(
        make_fork(name, block, make_summary("range", 3.0 + 0.1 * block), index_build=block)
        for name in ("es", "os")
        for block in range(4)
    )
    plan = msgspec.structs.replace(RECORD.plan, schedules=make_plan().schedules, forks=4)
    record = msgspec.structs.replace(RECORD, plan=plan, forks=forks)
    found = analyse_run(record)
    assert headline(found) == "c: os vs es (baseline), 4 forks each, 4 index builds each, 1m documents"
    assert "Index builds" in render_screen(found, plan=plan).plain
    assert verdict(found).startswith("os vs es, 1 task: ")
    assert "Index builds of os against es: slower? in docs/s" in verdict(found)
    asked = msgspec.structs.replace(record, plan=msgspec.structs.replace(plan, metrics="build_rate"))
    further = next_command(analyse_run(asked), msgspec.structs.replace(plan, words=("run",)))
    assert further is not None
    assert "--index-builds 8" in further.line
    asked = msgspec.structs.replace(record, plan=msgspec.structs.replace(plan, metrics="throughput"))
    assert "4 forks each on 4 index builds," in headline(analyse_run(asked))


def test_a_gate_is_about_builds_where_it_is_asked():
    holm = msgspec.structs.replace(FOUND, method="holm")
    assert gate(holm).outcome == "inconclusive"
    assert gate(holm).reasons[0].startswith("os in index build, docs/s: ")


FIELD, POLICY = "mapping:message.type", "merge policy"


def in_force(**own: str) -> InForce:
    usual = {POLICY: own.pop("policy", "tiered"), "index:refresh_interval": own.pop("refresh", "1s")}
    return InForce({FIELD: own.pop("type", "text"), **own}, usual)


def having(*states: InForce, specs: Sequence[VariantSpec] = (), forks: int = 5) -> Analysis:
    """A run whose nodes report these states, of other variants if they are given."""
    record = complete_record(forks=forks)
    pairs = zip(record.engines, states, strict=True)
    engines = tuple(msgspec.structs.replace(facts, in_force=state) for facts, state in pairs)
    if specs:
        kept = engines[0]
        engines = (kept, msgspec.structs.replace(kept, variant="os", in_force=states[1]))
        record = msgspec.structs.replace(
            record, plan=msgspec.structs.replace(record.plan, variants=tuple(specs))
        )
    return analyse_run(msgspec.structs.replace(record, engines=engines))


def test_what_differs_unasked_is_above_the_tables_and_in_the_first_sentence():
    found = having(in_force(), in_force(type="match_only_text", policy="log_byte_size"))
    line = (
        "Differ besides the engine: message is text / match_only_text; merge policy tiered / log_byte_size."
    )
    for text in (render_screen(found, width=120).plain, render(found)):
        text = " ".join(text.split())  # noqa: PLW2901 - lines end anywhere
        assert line in text
        assert text.index(line) < text.index("throughput")
        assert "os as configured is" in text
    assert "Differ besides the engine: message is text" in render(found, "markdown")
    alike = having(in_force(), in_force(refresh="5s"))
    assert "Differ" not in render_screen(alike).plain
    assert "as configured" not in render_screen(alike).plain
    assert "by the engines' own defaults" in " ".join(map(str, all_notes(alike)))


def test_of_many_differences_the_first_are_shown_and_the_others_counted():
    many = {f"mapping:f{number}.norms": "true" for number in range(9)}
    found = having(in_force(), in_force(**many))
    assert "mapping:f4.norms none / true; 4 more: show --notes." in render_screen(found, width=200).plain


def test_what_a_variant_asks_for_is_no_surprise():
    asked = msgspec.structs.replace(ES, name="os", mappings={"message.type": "match_only_text"})
    found = having(in_force(), in_force(type="match_only_text"), specs=(ES, asked))
    text = render_screen(found).plain
    assert "Differ" not in text
    assert "as configured" not in text
    assert "A/A" not in text


def test_a_variant_that_is_the_baseline_again_is_called_so_with_what_chance_would_show():
    again = msgspec.structs.replace(ES, name="os")
    found = having(in_force(), in_force(), specs=(ES, again))
    assert found.alike == ("os",)
    assert "A/A: os is configured as es, so no difference can be real here" in verdict(found)
    sizes = [one.mde_percent for row in found.task_rows for one in row.comparisons if one.mde_percent]
    assert f"from {rough(min(sizes))}%" in verdict(found)
    of_runs = msgspec.structs.replace(found, runs=("1", "2"))
    assert "only host, day or index build" in verdict(of_runs)
    other = having(in_force(), in_force(type="keyword"), specs=(ES, again))
    assert other.alike == ()
