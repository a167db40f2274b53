"""Pages as text: complete, well-formed, without network, and safe with hostile names."""

import base64
import hashlib
import json
import re
from typing import Any

import msgspec
import numpy as np
import plotly.graph_objects as go
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from benchctl.report.charts import Chart
from benchctl.report.charts.plots import plot_layout
from benchctl.report.html import Figures, anchor, breakable, embedded, groups
from benchctl.report.html.page import comparison_subject, render_page, run_subject
from benchctl.report.numbers import visible
from benchctl.report.table import Command, Table, named
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from figures import drawn
from report.conftest import complete_record
from report.html.outline import check_structure, outline
from sweeps import tasks_record

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\u202e\x9b"
SECTIONS = ["Verdict", "Effects", "Results", "Operation by operation", "What was compared, and how"]


def page_of(record: RunRecord, **more: Any) -> str:
    return render_page(msgspec.structs.replace(run_subject(record, analyse_run(record)), **more))


def test_a_page_holds_everything_in_its_order(record: RunRecord):
    found = outline(page_of(record))
    check_structure(found)
    headings = [text for level, text in found.headings() if level == 2]
    assert headings == [*SECTIONS, "Precision and details"]
    assert found.headings()[0] == (1, "big5rangedebug: es and os")
    text = found.all("main")[0].text
    assert "os is 21% slower than es on range" in text
    assert text.index("os is 21% slower") < text.index("Effects") < text.index("Results")
    assert "hits.total 276000 and 276001" in text  # what the answers differed in
    assert "JVM flags -Des / -Dos" in text
    assert "blocks 0 1 2 3 4: es, os" in text
    # As on the screen, what to run next comes with the verdict.
    assert f"benchctl extend {record.id}" in text[: text.index("Effects")]


def test_a_page_is_read_without_seeing_it(record: RunRecord):
    found = outline(page_of(record))
    summaries = [summary.text for summary in found.all("summary")]
    tasks = [row.label for row in analyse_run(record).rows[:3]]
    assert [one for one in summaries if one in tasks] == tasks
    assert len(found.all("table")) == len(found.all("caption")) > 0
    assert {heading.attributes["scope"] for heading in found.all("th")} == {"col", "row"}
    plots = found.all("div", role="img")
    assert len(plots) == len(found.all("figure")) == 2 + 3 * 2
    data = [one.attributes["data-figure"] for one in plots]
    assert data == [
        one.attributes["id"] for one in found.all("script", type="application/json")[: len(plots)]
    ]
    explained = [one for one in summaries if one.startswith("How to read it")]
    assert len(explained) == len(plots)
    # Those of effects are in the tables of the results.
    assert sum("and its values" in one for one in explained) == 3 * 2
    assert "note-1" in found.ids()
    assert found.all("a", href="#note-1", **{"aria-label": "note 1"})
    classes = [(set(cell.attributes["class"].split()), cell.text) for cell in found.all("td")]
    verdicts = {"faster": "faster", "slower": "slower", "equivalent": "equal"}
    marked = [(verdicts[word], text) for words, text in classes for word in words & {*verdicts}]
    assert marked
    assert all(word in text for word, text in marked)


def test_a_page_is_one_file_that_allows_no_network_and_no_script_but_its_own(record: RunRecord):
    page = page_of(record)
    found = outline(page)
    policy = found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0].attributes["content"]
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert not re.search(r"https?:|\*|unsafe-eval", policy)
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert [address for address in found.addresses() if not address.startswith("#")] == ["data:,"]
    programs = [one.text for one in found.all("script") if "type" not in one.attributes]
    assert len(programs) == 2
    for program in programs:
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "plotly.js v" in page


def test_names_from_outside_are_text_wherever_they_stand():
    def hostile(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        unsupported = HOSTILE if (summary.task, variant) == (1, "os") else None
        throughput = None if unsupported else summary.throughput_per_s
        return msgspec.structs.replace(
            summary, unsupported=unsupported, throughput_per_s=throughput, failures={HOSTILE: 1}
        )

    record = complete_record(edit=hostile)
    variants = tuple(
        msgspec.structs.replace(spec, name=spec.name + HOSTILE, settings={HOSTILE: HOSTILE})
        for spec in record.plan.variants
    )
    tasks = tuple(
        msgspec.structs.replace(task, name=f"{task.operation}{HOSTILE}")
        for task in record.plan.schedules[0].schedule
    )
    schedules = (msgspec.structs.replace(record.plan.schedules[0], name=HOSTILE, schedule=tasks),)
    forks = tuple(
        msgspec.structs.replace(
            fork,
            variant=fork.variant + HOSTILE,
            summaries=tuple(
                msgspec.structs.replace(one, label=tasks[one.task].label) for one in fork.summaries
            ),
        )
        for fork in record.forks
    )
    record = msgspec.structs.replace(
        record,
        id=HOSTILE,
        plan=msgspec.structs.replace(record.plan, variants=variants, schedules=schedules),
        environment=msgspec.structs.replace(record.environment, hostname=HOSTILE, cpu_model=HOSTILE),
        forks=forks,
        caveats=(HOSTILE,),
    )
    chart = Chart(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, (go.Scatter(name=HOSTILE),), plot_layout(HOSTILE, HOSTILE),
        Table.of(HOSTILE, (named(HOSTILE), HOSTILE), ((HOSTILE, HOSTILE),)),
    )  # fmt: skip
    subject = msgspec.structs.replace(
        run_subject(record, analyse_run(record)),
        charts=(chart,),
        commands=(Command(HOSTILE, HOSTILE),),
        origins=(HOSTILE,),
        without_samples=(HOSTILE,),
    )
    page = render_page(subject)
    found = outline(page)
    check_structure(found)
    assert not found.all("img")
    kinds = [one.attributes.get("type", "program") for one in found.all("script")]
    assert kinds.count("program") == 2
    assert set(kinds) == {"program", "application/json"}
    assert not set(re.sub(r"(?s)<script>.*?</script>", "", page)) & {"\u202e", "\x9b"}
    assert f"on host {visible(HOSTILE)}" in found.all("header")[0].text


def test_runs_of_any_size_have_a_page():
    for forks in (0, 1, 2, 5):
        found = outline(page_of(complete_record(forks=forks)))
        check_structure(found)
        assert len(found.all("div", role="img")) == (8 if forks == 5 else 2 * bool(forks))
    alone = outline(page_of(complete_record(variants=("es",))))
    check_structure(alone)
    assert "Effects" not in [text for _, text in alone.headings()]
    several = outline(page_of(complete_record(variants=("es", "os", "noinline"))))
    check_structure(several)
    assert [one for one in several.all("th", rowspan="2") if one.text == "range"]


def test_a_comparison_says_where_its_sides_come_from(record: RunRecord):
    other = msgspec.structs.replace(record, id="20260202-000000-other")
    sides = [("es", 5, record), ("os", 1, other)]
    found = outline(render_page(comparison_subject(sides, analyse_run(record))))
    check_structure(found)
    text = found.all("main")[0].text
    assert "os: 1 fork of run 20260202-000000-other, 2026-01-01 00:00:00 UTC, on host lab1" in text
    assert "Run 20260202-000000-other" in [text for _, text in found.headings()]


def test_histories_are_results_each_table_once():
    record = tasks_record("range-only-short", "fresh,polluted")
    found = outline(render_page(run_subject(record, analyse_run(record))))
    check_structure(found)
    captions = [one.text for one in found.all("caption")]
    for table in ("(higher is better; mean", "does the difference depend"):
        assert sum("throughput by history" in text and table in text for text in captions) == 1


def test_missing_samples_are_said(record: RunRecord):
    lost = tuple(f"es, fork {block}: no samples were kept" for block in range(8))
    text = page_of(record, without_samples=lost)
    assert "es, fork 5: no samples were kept; and 2 more." in text
    assert "Plots of fewer than 5 points are omitted." in text


# Parts.

TEXTS = st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_embedded_json_means_the_same_and_ends_no_script(value: object):
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_numbers_of_arrays_are_seven_digits_and_what_is_none_stays_none():
    layout = plot_layout("", "")
    chart = Chart("k", "g", "t", "a", (go.Scatter(x=np.array([1234567.0, np.nan, -1e-9])),), layout)
    assert drawn(chart)["data"][0]["x"] == [1234570.0, None, -1e-9]


@given(TEXTS)
def test_breaks_add_nothing_but_breaks(text: str):
    broken = breakable(text)
    assert Markup("").join(broken.split("<wbr>")).unescape() == text or "<wbr>" in text
    assert "<" not in broken.replace("<wbr>", "").replace("&lt;", "")


@given(TEXTS)
def test_an_anchor_needs_no_escaping(key: str):
    assert set(anchor(key)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")


def test_charts_are_grouped_in_the_order_of_the_tables_and_unknown_tasks_come_last():
    charts = [
        Chart("k", name, "Course", "How to read it.", (), plot_layout("", ""))
        for name in ("other", "sort", "range", "sort")
    ]
    found = groups(charts, ["range", "empty", "sort"])
    assert [group.title for group in found] == ["range", "sort", "other"]
    assert found[1].blocks == (Figures((charts[1], charts[3])),)
    assert len({group.key for group in found}) == 3
