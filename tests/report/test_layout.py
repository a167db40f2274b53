"""What people quote, and the tables: `golden/sentences.txt` has verdict and headline scene by scene."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import golden
from benchctl.report.formats import analysis_sections, render, render_screen
from benchctl.report.layout import (
    collect_notes,
    further_tables,
    precision_table,
    result_tables,
    value_text,
)
from benchctl.report.planning import next_command
from benchctl.report.sentences import headline, listed, verdict
from benchctl.report.table import Notes, Table, text_of
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import OtherLoad, RunRecord
from benchctl.results.plan import StopSpec
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis, provisional
from benchctl.stats.compare import DECIDED, Verdict
from benchctl.stats.inference import Method
from benchctl.stats.metrics import THROUGHPUT, metric
from builders import make_driver
from report.conftest import changed, complete_record, driven, on_builds
from report.published import BLOG_MS, BLOG_QPS, blog_record

GOLDEN = Path(__file__).parent / "golden" / "sentences.txt"
MS = 1e6
TOOK = Quantiles(2 * MS, 3 * MS, 4 * MS)
THREE = ("es", "os", "noinline")


def judged(analysis: Analysis, *verdicts: Verdict, **changes: object) -> Analysis:
    """The same rows with these verdicts, task by task; the last one holds for all further tasks."""
    return changed(
        analysis,
        lambda row, one: msgspec.structs.replace(
            one, verdict=verdicts[min(row.task, len(verdicts) - 1)], **changes
        ),
    )


def sound(**options: Any) -> Analysis:
    """Without findings about answers."""
    return analyse_run(complete_record(answers=None, **options))


def moving(task: int) -> Analysis:
    """One in which a task of one variant had not warmed up."""

    def edit(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        moves = (summary.task, variant) == (task, "os")
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block) if moves else summary

    return sound(edit=edit)


def marked(*verdicts: Verdict) -> Analysis:
    found = judged(moving(0), *verdicts)
    return changed(found, lambda row, one: provisional(one, row.figures))


def holding(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    size = {"es": 100.0, "os": 60.0}[variant] + block
    return msgspec.structs.replace(summary, meters={"index_size": size, "cpu": size / 10})


def stalling(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    if (summary.task, variant) != (2, "os"):
        return summary
    stalls = {"stalled": 1 + block // 4, "stalled_s": 32.0, "stalled_share": 0.54}
    driver = make_driver(window_s=59.0)
    return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block, driver=driver, **stalls)


def held(metrics: str) -> Analysis:
    record = complete_record(answers=None, edit=holding)
    plan = msgspec.structs.replace(record.plan, metrics=metrics)
    return analyse_run(msgspec.structs.replace(record, plan=plan))


def failed() -> Analysis:
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 90} if (summary.task, variant) == (2, "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    record = complete_record(edit=failing)
    first = msgspec.structs.replace(record.forks[0], status="failed")
    return analyse_run(msgspec.structs.replace(record, forks=(first, *record.forks[1:])))


def second_has_few() -> Analysis:
    """The first contender has forks enough, the second one has not."""
    few = {"verdict": "faster", "provisional": True, "n_contender": 3, "n_baseline": 3}
    return changed(
        sound(variants=THREE),
        lambda row, one: msgspec.structs.replace(
            one, **({"verdict": "slower"} if one is row.comparisons[0] else few)
        ),
    )


SCENES: dict[str, Callable[[], Analysis]] = {
    "forks are uneven, documents and versions unknown": lambda: msgspec.structs.replace(
        sound(), forks={"es": 5, "os": 4}, documents=0, versions={}
    ),
    "one slower": lambda: judged(sound(), "slower", "equivalent", "inconclusive"),
    "one faster, two different": lambda: judged(sound(), "faster", "different", "different"),
    "all slower": lambda: judged(sound(), "slower"),
    "all equal": lambda: judged(sound(), "equivalent"),
    "nothing decided": lambda: judged(sound(), "insufficient", "inconclusive"),
    "what a node holds is neither fast nor slow": lambda: held("index_size"),
    "times and what a node holds": lambda: held("index_size,cpu"),
    "metrics that disagree": lambda: changed(
        judged(sound(), "faster"),
        lambda row, one: (
            msgspec.structs.replace(one, verdict="slower")
            if (row.task, row.metric) == (0, "throughput")
            else one
        ),
    ),
    "not warmed up": lambda: moving(2),
    "a mark beside verdicts": lambda: marked("slower"),
    "a mark on what is equal": lambda: marked("equivalent", "inconclusive"),
    "stalls come before warm-up": lambda: sound(edit=stalling),
    "three forks": lambda: sound(forks=3),
    "failures and answers": failed,
    "one variant": lambda: sound(variants=("es",)),
    "only what is provisional says why": second_has_few,
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    told = ((name, scene()) for name, scene in SCENES.items())
    texts = (f"# {name}\n{headline(found)}\n{verdict(found)}\n" for name, found in told)
    golden.agree(request.config, GOLDEN, "\n".join(texts))


@pytest.mark.parametrize(("busy", "told"), [(0, False), (3, True)])
def test_a_busy_host_is_the_first_doubt_and_what_to_run_next(busy: int, *, told: bool):
    def edit(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.5 - 0.001 * block)

    record = complete_record(answers=None, edit=edit)
    apart = msgspec.structs.replace(record.plan, apart="asked for")
    record = msgspec.structs.replace(record, plan=apart)
    loads = (OtherLoad(2, 0.02, {"cron": 0.01}, 1.0), OtherLoad(2, 0.96, {"python3": 0.9, "cron": 0.05}, 1.0))
    forks = tuple(msgspec.structs.replace(fork, others=loads[fork.block < busy]) for fork in record.forks)
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    text = verdict(analysis)
    assert {
        one.provisional for row in analysis.rows for one in row.comparisons if one.verdict in DECIDED
    } == {True}
    assert ("used 0.58 of 2 CPUs, 58% of what the nodes used (python3: 0.54)" in text) == told
    assert text.startswith("PROVISIONAL: The host was busy.") == told
    # What follows from it is not said.
    assert ("warming up on" in text) != told
    words = ("run", "--forks", "3", "--test-mode")
    plan = msgspec.structs.replace(record.plan, words=words)
    following = next_command(analysis, plan)
    assert following is not None
    assert following.line.endswith("--on-busy wait") == told
    assert "--test-mode" not in following.line


@given(st.lists(st.text("abc", min_size=1), max_size=12))
def test_lists_name_or_count_everything(names: list[str]):
    text = listed(names)
    if len(names) <= 3:
        assert text.replace(" and ", ", ").split(", ") == (names or [""])
    else:
        assert text == f"{names[0]}, {names[1]} and {len(names) - 2} others"


def test_notes_are_numbered_by_gravity_and_what_every_row_shares_has_no_number():
    def failing(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        failures = {"rejected": 1} if summary.label == "desc_sort_timestamp" else {}
        return msgspec.structs.replace(summary, failures=failures)

    analysis = analyse_run(complete_record(edit=failing, caveats=("the governor is powersave",)))
    notes = collect_notes(analysis)
    assert [doubt.code for doubt in notes.numbered] == ["failures", "failures", "answers-differ"]
    assert [notes.cell(row.caveats).text for row in analysis.rows[:3]] == ["[1] [2]", "", "[3]"]
    assert notes.general[0].text == "the governor is powersave"
    few = collect_notes(analyse_run(complete_record(forks=1)))
    assert [doubt.code for doubt in few.general] == ["few-units", "builds"]


# Tables.


def tables_of(record: RunRecord) -> Iterator[Table]:
    """Tables that only details show, after that of the precision."""
    yield from further_tables(analyse_run(record), details=True)[1:]


def columns_of(table: Table, *titles: str) -> set[tuple[str, ...]]:
    places = [table.titles.index(title) for title in titles]
    return {tuple(line[place] for place in places) for line in table.texts}


def differences(analysis: Analysis) -> dict[str, str]:
    (table,) = result_tables(analysis, Notes((), ()))
    place = table.titles.index("Diff %")
    return {line[0]: line[place] for line in table.texts}


BLOG = {**BLOG_MS, **BLOG_QPS}


@pytest.mark.parametrize("name", BLOG)
def test_every_value_of_the_blog_gives_its_difference(name: str):
    of = metric("service_time") if name in BLOG_MS else THROUGHPUT
    found = differences(analyse_run(blog_record(name), metrics=(of,)))
    for line in BLOG[name]:
        assert float(found[line.operation]) == pytest.approx(float(line.diff.rstrip("%")), abs=0.056)


def test_a_verdict_says_that_requests_failed():
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 1} if (summary.label, variant) == ("range", "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    lines = render(analyse_run(complete_record(edit=failing)), width=140).splitlines()
    assert sum("slower, requests failed" in line for line in lines if line.startswith("range ")) == 2
    assert sum("requests failed" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("verdict", "text", "style"),
    [
        ("equivalent", "equal", "32"),
        ("faster", "faster", "1;32"),
        ("slower", "slower", "1;31"),
        ("different", "different (slower)", "33"),
        ("inconclusive", "inconclusive", ""),
    ],
)
def test_a_verdict_has_one_colour_everywhere_whatever_weakens_it(
    verdict: Verdict, text: str, style: str, monkeypatch: pytest.MonkeyPatch
):
    def unsettled(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.3 - 0.001 * block)

    analysis = changed(
        analyse_run(complete_record(edit=unsettled)),
        lambda _, one: msgspec.structs.replace(one, verdict=verdict, provisional=False),
    )
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system="standard")
    console.print(text_of(analysis_sections(analysis), 200))
    shown = f"{text}, not warmed up"
    assert (f"\x1b[{style}m{shown}\x1b[0m" if style else f" {shown}") in stream.getvalue()
    cell = next(result_tables(analysis, Notes((), ()))[0].cells)[-1]
    assert (cell.text, cell.verdict) == (shown, verdict)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(analysis)


def test_precision_says_what_a_difference_takes():
    analysis = analyse_run(complete_record())
    table = precision_table(analysis)
    assert table is not None
    assert (table.titles[-1], analysis.block_s) == ("To go", 40.0)
    further = analysis.rows[0].comparisons[0].further
    assert table.texts[0][-1] == ("" if further is None else f"{further * 40 / 60:.1f}")
    ended = precision_table(
        changed(analysis, lambda _, one: msgspec.structs.replace(one, looks=None, verdict="slower"))
    )
    assert ended is not None
    assert (ended.titles[-1], "shrunk" in ended.title) == ("Shrunk %", True)
    assert "shrunk" not in table.title
    several = precision_table(analyse_run(complete_record(variants=THREE)))
    assert several is not None
    assert (several.titles[2], len(several.texts)) == ("Variant", 12)
    assert precision_table(analyse_run(complete_record(forks=1))) is None


def test_long_names_of_variants_lose_nothing(record: RunRecord):
    name = "es@8.19.0-with-a-rather-long-name.and-more"
    forks = {name: record.done("es"), "os": record.done("os")}
    narrow = render(analyse(forks, record.plan), width=80)
    assert [part in narrow for part in ("es@8.19.0-with-a-", "rather-long-name.", "and-more")] == [True] * 3
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert "…" not in narrow


def test_rows_of_several_challenges_are_told_apart_everywhere(record: RunRecord):
    schedules = record.plan.schedules * 2
    again = [msgspec.structs.replace(one, schedule=1) for one in record.forks[0].summaries]
    forks = tuple(msgspec.structs.replace(fork, summaries=(*fork.summaries, *again)) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, schedules=schedules)
    text = render(analyse_run(msgspec.structs.replace(record, plan=plan, forks=forks)), width=160)
    for number in (1, 2):
        assert f"big5rangedebug ({number} of 2): throughput" in text
        assert f"big5rangedebug ({number} of 2): range " in text


@pytest.mark.parametrize(("looks", "stop"), [(1, None), (3, None), (1, StopSpec(decided=True))])
def test_the_legend_names_the_test_that_holds_at_all_looks(
    record: RunRecord, looks: int, stop: StopSpec | None
):
    plan = msgspec.structs.replace(record.plan, stop=stop)
    seen = msgspec.structs.replace(record, looks=looks, plan=plan)
    text = render(analyse_run(seen), width=400)
    assert ("mixture t-test" in text, "p is multiplied by 4, intervals are at 98.75%" in text) == (
        stop is not None,
        looks == 3,
    )


@pytest.mark.parametrize(("method", "title"), [("benjamini-hochberg", "p (BH)"), ("holm", "p (Holm)")])
def test_tables_name_how_p_is_adjusted_and_over_how_many(method: Method, title: str):
    record = complete_record()
    forks = {name: record.compared(name) for name in ("es", "os")}
    found = analyse(forks, record.plan, method=method)
    assert all(title in table.titles for table in result_tables(found, Notes((), ())))
    own = [one for row in found.rows for one in row.comparisons]
    assert {(one.adjustment, one.family) for one in own} == {(method, 6 if method == "holm" else 3)}
    challenge = record.plan.schedules[0]
    single = msgspec.structs.replace(challenge, schedule=challenge.schedule[:1])
    alone = analyse(forks, msgspec.structs.replace(record.plan, schedules=(single,)))
    assert all("p" in table.titles for table in result_tables(alone, Notes((), ())))


def test_a_screen_names_the_adjustment_where_an_interval_excludes_0_and_p_does_not():
    shown = "is adjusted for the 3 rows"
    near = {"low_percent": 0.1, "high_percent": 9.0, "p_adjusted": 0.064}
    assert shown in render_screen(judged(sound(), "inconclusive", **near)).plain
    assert shown not in render_screen(judged(sound(), "inconclusive", **near | {"p_adjusted": 0.01})).plain
    assert shown not in render_screen(judged(sound(), "inconclusive", **near | {"low_percent": -0.1})).plain


def test_texts_name_builds_where_they_are_the_unit():
    record = on_builds(complete_record(), 3)
    words = " ".join(render(analyse_run(record), plan=record.plan).split())
    assert "Interval and p: paired t over pairs of index builds, on logarithms" in words
    assert "the index build is the unit" in words


def test_values_beside_a_change_are_those_of_its_pairs():
    """A slow fork whose partner is missing is in no pair, and in no value beside a change of pairs."""
    record = complete_record()
    forks = tuple(fork for fork in record.forks if (fork.block, fork.variant) != (1, "os"))
    slow = next(fork for fork in forks if fork.block == 1)
    summaries = tuple(
        msgspec.structs.replace(one, throughput_per_s=(one.throughput_per_s or 0.0) / 9)
        for one in slow.summaries
    )
    forks = tuple(
        msgspec.structs.replace(fork, summaries=summaries) if fork is slow else fork for fork in forks
    )
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    for row in (one for one in analysis.rows if one.metric == "throughput"):
        (one,) = row.comparisons
        shown = [float(value_text(side, one).replace(",", "")) for side in row.figures]
        assert 100 * (shown[1] / shown[0] - 1) == pytest.approx(one.effect_percent, abs=0.2)


# Details: every kind of time, and what the driver did.


def edited(**changes: Any) -> RunRecord:
    return complete_record(edit=lambda summary, *_: msgspec.structs.replace(summary, **changes))


def test_there_is_a_column_for_every_time_that_is_known():
    first = {"first_ns": 9 * MS, "second_ns": 5 * MS}
    (table,) = tables_of(edited(took=TOOK, pages=TOOK, **first))
    assert table.titles == ("Operation", "Variant", "first", "second", "took", "service", "page")
    assert columns_of(table, "first", "second", "took") == {("9.000", "5.000", "2.000 / 3.000 / 4.000")}
    assert "Times: p50" not in render(analyse_run(edited(took=TOOK)))


@pytest.mark.parametrize(
    ("samples", "cell"),
    [(9, "2.000"), (10, "2.000 / 3.000"), (99, "2.000 / 3.000"), (100, "2.000 / 3.000 / 4.000")],
)
def test_few_requests_have_no_high_quantiles(samples: int, cell: str):
    (table,) = tables_of(edited(took=TOOK, samples=samples))
    assert columns_of(table, "took") == {(cell,)}


def test_a_batch_has_a_line_for_every_search():
    half = Quantiles(MS, 1.5 * MS, 2 * MS)
    (table,) = tables_of(edited(took=TOOK, took_sum=TOOK, took_parts=(half, TOOK)))
    assert table.titles == ("Operation", "Variant", "took", "took sum", "service")
    searches = [line[2:] for line in table.texts if line[0].endswith("range, search 1")]
    assert searches == [("1.000 / 1.500 / 2.000", "", "")] * 2


def test_a_driver_is_shown_with_what_is_known_of_it():
    (table,) = (one for one in tables_of(complete_record(edit=driven)) if one.title.startswith("Driver"))
    assert columns_of(table, "Lag p50", "Lag max") == {("0.040", "0.400"), ("0.260", "14")}
    unknown = make_driver(gap_s=None, cpu_share=None, offered_per_s=None, lag_p99_ns=1_234_000_000)
    *_, table = tables_of(edited(driver=unknown))
    assert table.texts[0][2:] == ("n/a", "0.040", "1,234", "0.400", "n/a", "n/a", "")
    assert not [one for one in tables_of(edited()) if one.title.startswith("Driver")]


def test_the_rate_stands_before_its_target_and_processes_before_their_share():
    record = edited(driver=make_driver(offered_per_s=99.8, possible_per_s=100.0, cpu_share=0.25, workers=2))
    (challenge,) = record.plan.schedules
    tasks = tuple(msgspec.structs.replace(task, target_throughput=100.0) for task in challenge.schedule)
    plan = msgspec.structs.replace(
        record.plan, schedules=(msgspec.structs.replace(challenge, schedule=tasks),)
    )
    *_, table = tables_of(msgspec.structs.replace(record, plan=plan))
    assert columns_of(table, "Sent/s", "CPU") == {("99.80/100", "2 x 25.0%")}
