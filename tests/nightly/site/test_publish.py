"""The site as files: complete, linked, without network, safe with hostile names, cheap to refresh."""

import dataclasses
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.nightly.model import SeriesKey
from benchctl.nightly.site.history import SuitePages
from benchctl.nightly.site.pages import assets, page_name
from benchctl.nightly.site.publish import located, write_site, write_top
from benchctl.report.charts import variant_style
from benchctl.report.charts.panels import LOG_FROM, TICKS
from benchctl.report.html.parts import SCRIPT, STYLE, content_policy
from nightly_suites import (
    KEY,
    TASKS,
    eventful_suite,
    make_finding,
    make_night,
    make_raised,
    make_series,
    make_variant,
    night_id,
)
from report.html.outline import Outline, check_elements, outline

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}\u202e\x9b"
RANGE = page_name("big5", "range")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a suite in which everything happened; its runs have pages up to night 50."""
    folder = tmp_path_factory.mktemp("site")
    suite = eventful_suite()
    pages = {night.run for night in suite.nights[:50] if night.run}
    (folder / "big5" / "runs").mkdir(parents=True)
    for run in pages:
        (folder / "big5" / "runs" / f"{run}.html").write_text("a run", encoding="utf-8")
    assert write_site(folder, suite, pages=pages) == folder / "big5" / "index.html"
    return folder


def pages_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*.html")) if path.parent.name != "runs"]


def read(path: Path) -> Outline:
    return outline(path.read_text(encoding="utf-8"))


def text_of(path: Path) -> str:
    return read(path).all("main")[0].text


def data_of(page: Outline, name: str) -> Any:
    return json.loads(page.all("script", id=name)[0].text)


def check_page(path: Path) -> None:
    """What keyboards, screen readers and validators need of any page, and that every link leads somewhere."""
    found = read(path)
    check_elements(found)
    ids = found.ids()
    for address in found.addresses():
        check_address(path, address, ids)
    policy = found.all("meta", **{"http-equiv": "Content-Security-Policy"})[0].attributes["content"]
    assert policy == content_policy(inline=False)


def check_address(path: Path, address: str, ids: Sequence[str]) -> None:
    if address == "data:,":
        return
    assert not re.match(r"[a-z]+:|//|/", address), address
    name, _, fragment = address.partition("#")
    target = (path.parent / name).resolve() if name else path
    assert target.is_file(), (path, address)
    if fragment:
        assert fragment in (read(target).ids() if name else ids), (path, address)


def suite_of(name: str, **parts: Any) -> SuitePages:
    return SuitePages(**({"name": name, "title": "", "nights": (), "series": (), "events": ()} | parts))


def test_every_page_is_sound_and_every_link_leads_to_a_file(site: Path):
    pages = pages_of(site)
    assert len(pages) == 1 + 3 + 3 + 70
    for path in pages:
        if path.parent.name != "nights" or path.name.startswith(
            ("00020", "00042", "00050", "00069", "00070")
        ):
            check_page(path)


def test_the_page_of_a_suite_begins_with_the_answer(site: Path):
    text = " ".join(text_of(site / "big5" / "index.html").split())
    assert text.startswith("Night 70: quiet")
    assert "#1 range p90 service time on es@latest is 11.8% slower since night 40" in text
    assert "#4" not in text.partition("Tasks")[0]  # acknowledged
    assert "range 2 openthroughput" in text


def test_a_task_has_a_line_a_variant_without_any_script(site: Path):
    page = read(site / "big5" / "index.html")
    lines = [one.attributes["aria-label"] for one in page.all("svg")]
    assert len(lines) == len(TASKS) * 3
    assert "pinned (canary), throughput, last 90 nights" in lines
    # one of sort on os, one of range on es, one of the answers of range on os; that of p90 is on no line here
    assert len(page.all("circle", **{"class": "alarm"})) == 3


def test_a_task_has_a_chart_a_metric_with_every_night_in_arrays(site: Path):
    page = read(site / "big5" / "tasks" / RANGE)
    assert [one.attributes["data-figure"] for one in page.all("div", role="img")] == [
        "history-1-data", "history-2-data",
    ]  # fmt: skip
    data = data_of(page, "history-1-data")
    assert [one["name"] for one in data["variants"]] == ["es@latest", "os@latest", "pinned (canary)"]
    variant = data["variants"][0]
    assert len(variant["numbers"]) == len(variant["means"]) == 67
    assert not {20, 21, 55} & set(variant["numbers"])
    assert variant["forks"] == 5
    assert all(len(f"{value:g}".replace(".", "").strip("0")) <= 5 for value in variant["means"])
    nights = data_of(page, "nights")
    assert nights["numbers"] == list(range(1, 71))
    assert nights["facts"]["es@latest"][:2] == [
        [0, "8.11.0 d9ec3fa628c7, Temurin 21.0.8"], [19, "8.12.0 d9ec3fa628c7, Temurin 21.0.8"],
    ]  # fmt: skip
    assert nights["host"] == [[0, "benchctl 0.1.0 0123456789ab, kernel 6.1.0"]]
    assert nights["runs"][49] == "20260720-0300-big5-a"
    assert nights["runs"][50] == 0
    assert nights["marks"]["51"] == "noisy host, 3 of 5 forks"


def test_a_chart_marks_alarms_change_points_annotations_changes_and_eras(site: Path):
    data = data_of(read(site / "big5" / "tasks" / RANGE), "history-2-data")
    marks = {(number, kind): text for number, kind, text in data["marks"]}
    assert set(marks) == {
        (15, "annotation"), (40, "change"), (40, "alarm"), (40, "change-point"), (60, "era"), (60, "change"),
        (69, "alarm"),
    }  # fmt: skip
    assert marks[15, "annotation"] == "new memory in the host (ann)"
    assert marks[40, "alarm"] == "#1 es@latest: +11.8% (95% interval +8.1 to +15.6), open"
    assert re.fullmatch(r"es@latest: level \+1[0-3]\.\d% from here on", marks[40, "change-point"])
    assert marks[60, "change"] == "memory 16 GiB \N{RIGHTWARDS ARROW} 24 GiB"


def test_what_happened_is_a_table_too(site: Path):
    text = text_of(site / "big5" / "tasks" / RANGE)
    assert "throughput, #4 es@latest: +11.8%" in text
    assert "acknowledged by bea: the new default; see the release notes" in text


def test_alarms_come_open_first_with_all_that_they_carry(site: Path):
    page = read(site / "big5" / "alarms.html")
    assert [one.attributes["id"] for one in page.all("article")] == [
        "alarm-2",
        "alarm-1",
        "alarm-4",
        "alarm-3",
    ]
    first = " ".join(page.all("article", id="alarm-1")[0].text.split())
    for part in (
        "+11.8% (95% interval +8.1 to +15.6)", "Since: night 40", "Last good: night 39", "p <0.001",
        "8 forks of last good against 8 of tonight", "kernel 6.1.0", "benchctl compare 20260709", "night 42",
    ):  # fmt: skip
        assert part in first, part
    assert (
        "recovered in night 38: two nights within 1% of before" in page.all("article", id="alarm-3")[0].text
    )


def test_the_page_of_a_night_has_its_findings_and_what_was_not_watched(site: Path):
    nights = site / "big5" / "nights"
    text = " ".join(text_of(nights / f"{night_id(45)}.html").split())
    assert "unconfirmed" in text
    assert "The budget left time for 3 forks per variant." in text
    assert "2 alarms raised" in text_of(nights / f"{night_id(42)}.html")
    assert "The host moved: pinned was 7% slower" in text_of(nights / f"{night_id(50)}.html")
    assert "1,001 hits" in text_of(nights / f"{night_id(69)}.html")
    assert "broken: refused, the load was 3.1 on 2 CPUs" in text_of(
        nights / f"{night_id(20)}.html"
    ).lower().replace("cpus", "CPUs")


def test_a_quiet_night_in_which_the_host_moved_does_not_look_quiet(site: Path):
    strip = read(site / "big5" / "index.html").all("a", href=f"nights/{night_id(50)}.html")
    assert strip[0].attributes["class"] == "unwatched"


def test_a_quiet_night_on_a_noisy_host_looks_quiet_nowhere(tmp_path: Path):
    nights = (make_night(1), make_night(2, noise=("the load was 3.1 on 2 CPUs",)))
    suite = read(write_site(tmp_path, suite_of("big5", nights=nights)))
    top = read(tmp_path / "index.html")
    night = read(tmp_path / "big5" / "nights" / f"{night_id(2)}.html")
    for page in (suite, night):
        (verdict,) = page.all("p", class_="verdict unwatched")
        assert "quiet, on a noisy host" in verdict.text.lower()
    for page in (night, top):
        assert [one for one in page.all("span") if "dot" in one.attributes.get("class", "").split()] == (
            page.all("span", class_="dot unwatched")
        )
    for number, look in ((1, "quiet"), (2, "unwatched")):
        assert suite.all("a", href=f"nights/{night_id(number)}.html", class_=look)
    rules = re.findall(r"(?m)^(?:\.dot|\.strip a)\.unwatched \{(.*)\}", assets()[STYLE])
    assert len(rules) == 2
    assert not any("--faster" in rule for rule in rules)


def test_runs_are_linked_only_where_they_have_a_page(site: Path):
    nights = site / "big5" / "nights"
    assert "../runs/20260720-0300-big5-a.html" in read(nights / f"{night_id(50)}.html").addresses()
    assert not [one for one in read(nights / f"{night_id(51)}.html").addresses() if "runs/" in one]


def test_no_name_of_a_host_is_needed(site: Path):
    assert not [path for path in (*pages_of(site), site / "big5" / "feed.xml") if "lab1" in path.read_text()]


def test_a_rebuild_writes_what_changed_and_nothing_else(tmp_path: Path):
    suite = eventful_suite(TASKS[2:])
    write_site(tmp_path, suite, locate=lambda _series: ())
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    for path in files:
        os.utime(path, (1, 1))
    write_site(tmp_path, suite, locate=lambda _series: ())
    assert {path for path in files if path.stat().st_mtime != 1} == set()
    more = dataclasses.replace(suite, nights=(*suite.nights, make_night(71)))
    write_site(tmp_path, more, locate=lambda _series: ())
    own = tmp_path / "big5"
    changed = {path for path in files if path.stat().st_mtime != 1 and own in path.parents}
    assert {path.relative_to(own).as_posix() for path in changed} == {
        "index.html", "nights.html", "suite.json", f"tasks/{RANGE}", f"nights/{night_id(70)}.html",
    }  # fmt: skip


def test_pages_of_tasks_and_nights_that_are_gone_go_and_runs_stay(tmp_path: Path):
    suite = eventful_suite(TASKS[1:])
    run = tmp_path / "big5" / "runs" / "r.html"
    write_site(tmp_path, suite, locate=lambda _series: ())
    run.parent.mkdir()
    run.write_text("a run", encoding="utf-8")
    fewer = [series for series in suite.series if series.key.task == "range"]
    write_site(
        tmp_path, dataclasses.replace(suite, series=fewer, nights=suite.nights[:9]), locate=lambda _one: ()
    )
    assert [path.name for path in (tmp_path / "big5" / "tasks").iterdir()] == [RANGE]
    assert len(list((tmp_path / "big5" / "nights").iterdir())) == 9
    assert run.is_file()


@pytest.mark.parametrize("name", ["index.html", "big5/index.html"])
def test_a_page_of_somebody_else_is_left_alone_and_nothing_is_written_beside_it(tmp_path: Path, name: str):
    (tmp_path / "big5").mkdir()
    (tmp_path / name).write_text("my home page", encoding="utf-8")
    with pytest.raises(BenchctlError, match="not written by benchctl"):
        write_site(tmp_path, eventful_suite())
    assert (tmp_path / name).read_text(encoding="utf-8") == "my home page"
    assert not (tmp_path / "assets").exists()


def test_the_top_page_lists_every_suite_that_is_there(tmp_path: Path):
    write_site(tmp_path, suite_of("one", title="The first", nights=[make_night(3)]))
    write_site(tmp_path, suite_of("two", nights=[make_night(4, status="failed", reason="no space")]))
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "suite.json").write_text("{", encoding="utf-8")
    (tmp_path / "not-ours").mkdir()
    text = text_of(write_top(tmp_path))
    for part in ("The first", "Night 3: quiet", "Night 4: broken: failed, no space", "three cannot be read"):
        assert part in text
    assert "not-ours" not in text
    check_page(tmp_path / "index.html")


@pytest.mark.parametrize(
    "suite",
    [
        suite_of("s"),
        suite_of("s", nights=[make_night(1)]),
        suite_of("s", nights=[make_night(1)], series=[make_series(KEY, [1])]),
        suite_of("s", nights=[make_night(1, status="failed", variants=(), environment=None, run="")]),
        suite_of("s", nights=[make_night(1, ["es@latest"])], series=[make_series(KEY, [])]),
        suite_of("s", nights=[make_night(2)], series=[make_series(KEY, [1, 2, 5], forks=1)]),
        suite_of("s", nights=[make_night(1)], events=[make_raised(night="gone", since="", last_good="")]),
    ],
    ids=["no night", "no series", "first night", "broken only", "no value", "nights unknown", "old alarm"],
)
def test_little_or_odd_history_still_makes_sound_pages(tmp_path: Path, suite: SuitePages):
    write_site(tmp_path, suite)
    for path in pages_of(tmp_path):
        try:
            check_page(path)
        except AssertionError:
            if "nights/gone.html" not in path.read_text(encoding="utf-8"):
                raise


def test_names_from_outside_are_text_wherever_they_stand(tmp_path: Path):
    key = SeriesKey(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    variant = msgspec.structs.replace(make_variant("x", 1), label=HOSTILE, asked=HOSTILE)
    finding = make_finding(key=key, reason=HOSTILE)
    night = make_night(
        1, reason=HOSTILE, variants=(variant,), findings=(finding,), noise=(HOSTILE,), canary_moved=HOSTILE
    )
    alarm = make_raised(
        title=HOSTILE, detail=HOSTILE, command=HOSTILE, key=key, night=night.id, since=night.id
    )
    write_site(
        tmp_path, suite_of("s", title=HOSTILE, nights=[night], series=[make_series(key, [1])], events=[alarm])
    )
    pages = pages_of(tmp_path)
    assert len(pages) == 1 + 3 + 1 + 1
    for path in pages:
        check_page(path)
        found = read(path)
        assert not found.all("img")
        assert all(one.attributes.get("type") or "src" in one.attributes for one in found.all("script"))
        assert "{{ 7 * 7 }}" in found.all("body")[0].text
        assert not set(path.read_text(encoding="utf-8")) & {"\u202e", "\x9b"}


def test_tasks_never_share_a_page():
    names = [
        page_name(challenge, task)
        for challenge, task in [
            ("a", "b"),
            ("a", "B"),
            ("ab", ""),
            ("", "ab"),
            ("a", "b "),
            ("a", "é"),
            ("a", "è"),
        ]
    ]
    assert len({name.lower() for name in names}) == len(names)
    assert len(page_name("c", "t" * 400)) < 100
    assert re.fullmatch(r"[A-Za-z0-9-]+\.html", page_name("..", "../../etc/passwd"))


def test_lines_have_the_colours_of_charts():
    style = assets()[STYLE]
    for position in range(6):
        look = variant_style(position)
        assert f".v{position} {{ --line: light-dark({look.colour}, {look.on_dark}); }}" in style


def test_logarithmic_axes_are_those_of_charts_of_runs_which_have_two_marks_at_least():
    declared = dict(re.findall(r"(?m)^  const (LOG_FROM|TICKS) = (.*);$", assets()[SCRIPT]))
    assert json.loads(declared["LOG_FROM"]) == LOG_FROM
    assert json.loads(declared["TICKS"]) == [[most, list(steps)] for most, steps in TICKS]


def test_a_canary_is_grey_wherever_it_stands_among_the_variants():
    suite = suite_of("s", nights=[make_night(1, ["pinned", "es@latest", "os@latest"])])
    assert list(suite.styles.items()) == [("es@latest", 0), ("os@latest", 1), ("pinned", 4)]


def test_the_change_points_are_those_of_the_divisive_test():
    series = make_series(KEY, range(1, 61), step=(31, 1.3))
    assert [point.night for point in located(series)] == [31]


@pytest.mark.parametrize("name", [STYLE, SCRIPT])
def test_assets_name_nothing_on_a_network(name: str):
    assert not re.search(r"https?:|//\w+\.|@import|eval\(", assets()[name])
