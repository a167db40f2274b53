"""The site of nights in a real browser: drawn, without network and complaints, on a phone and in the dark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchctl.nightly.site.history import SuitePages
from benchctl.nightly.site.pages import page_name
from benchctl.nightly.site.publish import write_site
from integration.chromium import Browser, View, chromium
from nightly_suites import KEY, eventful_suite, make_night, make_series, night_id

DESKTOP, PHONE = 1280, 360
HOSTILE = "<b>x</b><img src=x onerror=document.title='hacked'>"
TASK = f"big5/tasks/{page_name('big5', 'range')}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary = shutil.which("chromium")
    if binary is None:
        missing = "there is no `chromium` to open pages in: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with chromium(binary, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    suite = eventful_suite(("range", HOSTILE))
    run = suite.nights[0].run
    write_site(folder, suite, pages={run})
    (folder / "big5" / "runs").mkdir()
    (folder / "big5" / "runs" / f"{run}.html").write_text("<!DOCTYPE html><p>a run", encoding="utf-8")
    return folder


def opened(browser: Browser, path: Path, width: int = DESKTOP, *, dark: bool = False) -> View:
    view = browser.open(path.as_uri(), width=width, dark=dark)
    view.draw_all()
    return view


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("index.html", PHONE),
        ("big5/index.html", DESKTOP),
        ("big5/index.html", PHONE),
        ("big5/nights.html", PHONE),
        ("big5/alarms.html", PHONE),
        (f"big5/nights/{night_id(42)}.html", PHONE),
    ],
)
def test_pages_fit_their_window_and_nothing_complains(browser: Browser, site: Path, name: str, width: int):
    view = opened(browser, site / name, width)
    assert view.complaints() == []
    assert view.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert view.value("document.title") != "hacked"
    assert all(one.startswith(("data:", site.as_uri())) for one in view.requests())
    view.close()


@pytest.mark.parametrize(("width", "dark"), [(DESKTOP, False), (PHONE, True)])
def test_every_metric_is_drawn_with_its_marks(
    browser: Browser, site: Path, tmp_path: Path, width: int, *, dark: bool
):
    view = opened(browser, site / TASK, width, dark=dark)
    assert view.complaints() == []
    assert view.value("document.querySelectorAll('.plot .main-svg path.js-line').length") >= 2 * 3
    legend = view.value("document.querySelector('.plot .legend').textContent")
    assert "pinned (canary)" in legend
    assert ("change point" in legend) == (width == DESKTOP)
    assert view.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    view.picture(tmp_path / "page.png", whole=True)
    view.close()


def test_hovering_says_value_range_versions_and_commits(browser: Browser, site: Path):
    view = opened(browser, site / TASK)
    view.value("Plotly.Fx.hover(document.querySelector('.plot'), [{curveNumber: 1, pointNumber: 0}])")
    view.wait_for("document.querySelector('.plot .hovertext')")
    text = view.value("document.querySelector('.plot .hovertext').textContent")
    for part in (
        "es@latest, night 1, 2026-06-01 03:00",
        "queries/s, 5 forks: ",
        "8.11.0 d9ec3fa628c7",
        "0123456789ab",
    ):
        assert part in text, text
    view.close()


def test_a_line_ends_where_a_night_is_missing_or_an_era_begins(browser: Browser, site: Path):
    view = opened(browser, site / TASK)
    gaps = view.value(
        "document.querySelector('.plot').data[1].y.flatMap((y, at) => "
        "y === null ? [document.querySelector('.plot').data[1].x[at]] : [])"
    )
    assert gaps == [22, 56, 60]
    view.close()


def test_fewer_nights_can_be_shown(browser: Browser, site: Path):
    view = opened(browser, site / TASK)
    assert view.value("[...document.querySelectorAll('.spans button')].map(one => one.textContent)") == [
        "last 60 nights", "all nights",
    ]  # fmt: skip
    view.value("document.querySelector('.spans button').click()")
    view.wait_for("document.querySelector('.plot')._fullLayout.xaxis.range[0] > 9")
    assert view.value("document.querySelector('.spans button').getAttribute('aria-pressed')") == "true"
    view.value("document.getElementById('theme').click()")
    view.wait_for("document.querySelector('.plot').dataset.drawn === 'dark'")
    assert view.value("document.querySelector('.plot')._fullLayout.xaxis.range[0]") > 9
    assert view.complaints() == []
    view.close()


def test_a_point_leads_to_the_run_where_it_has_a_page_else_to_the_night(browser: Browser, site: Path):
    for night, address in ((1, "/runs/20260601-0300-big5-a.html"), (2, f"/nights/{night_id(2)}.html")):
        view = opened(browser, site / TASK)
        view.value(
            f"document.querySelector('.plot').emit('plotly_click', {{points: [{{customdata: {night}}}]}})"
        )
        view.wait_for(f"location.href.endsWith({address!r})")
        view.close()


def test_names_from_outside_stay_text_in_charts(browser: Browser, site: Path):
    view = opened(browser, site / "big5/tasks" / page_name("big5", HOSTILE))
    assert view.value("document.title").startswith("<b>x</b>")
    assert view.value("document.querySelectorAll('img').length") == 0
    assert view.complaints() == []
    view.close()


@pytest.mark.parametrize(
    ("typical", "apart", "marked"),
    [(10.0, 20, ["10", "20", "50", "100", "200"]), (2.2, 3, ["2", "3", "4", "5", "6"])],
)
def test_variants_far_apart_share_a_logarithmic_axis_with_plain_numbers(
    browser: Browser, tmp_path: Path, typical: float, apart: float, marked: list[str]
):
    keys = [msgspec.structs.replace(KEY, variant=variant) for variant in ("es@latest", "pinned")]
    series = [make_series(key, range(1, 9), typical=typical * apart**place) for place, key in enumerate(keys)]
    suite = SuitePages("s", "", [make_night(number) for number in range(1, 9)], series, ())
    write_site(tmp_path, suite)
    view = opened(browser, tmp_path / "s" / "tasks" / page_name("big5", "range"))
    axis = "document.querySelector('.plot')._fullLayout.yaxis"
    assert view.value(f"{axis}.type") == "log"
    labels = view.value(
        "[...document.querySelectorAll('.ytick')].map(one => one.textContent).filter(Boolean)"
    )
    assert labels == marked
    assert view.complaints() == []
    view.close()
