"""Pages in a real browser: drawn, without network and complaints, on a phone, in the dark, by keyboard."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchctl.report.charts import variant_style
from benchctl.report.html.page import render_page, run_page, write_html
from benchctl.results.store import RunStore
from benchctl.stats.analyse import analyse_run
from drawn import draw_run
from integration.chromium import Browser, View, chromium

DESKTOP, PHONE = 1280, 360
DARK_PAPER = "#14181d"
NAMES = ("range", "composite-date_histogram-daily", "<b>x</b><img src=x onerror=document.title='hacked'>")


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
    """A folder with a page."""
    root = tmp_path_factory.mktemp("site")
    folder, record = draw_run(RunStore(root / "runs"), "20260101-000000-c-aaaa", tasks=NAMES)
    subject = run_page(folder, record, analyse_run(record), usual=root)
    write_html(root / "out", render_page(subject))
    return root / "out"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: look at them when a test fails, or with --basetemp."""
    return tmp_path


def colour(view: View, selector: str, name: str) -> str:
    found = view.value(f"getComputedStyle(document.querySelector({selector!r})).getPropertyValue({name!r})")
    return str(found)


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_every_plot_is_drawn_without_network_and_without_a_complaint(
    browser: Browser, site: Path, pictures: Path, width: int
):
    view = browser.open((site / "index.html").as_uri(), width=width)
    view.draw_all()
    plots = view.value("document.querySelectorAll('.plot').length")
    # Effects and forks by two metrics, and the requests of the task.
    assert plots == 2 + 2 + 1
    assert view.value(
        "[...document.querySelectorAll('.plot')].every(one => one.querySelector('svg.main-svg'))"
    )
    assert view.value(
        "[...document.querySelectorAll('.plot')].every(one => one.querySelector('path.js-line, .point'))"
    )
    assert view.complaints() == []
    own = (site / "index.html").as_uri()
    assert {one for one in view.requests() if not one.startswith("data:")} <= {own}
    view.picture(pictures / f"page-{width}.png", whole=True)
    assert (pictures / f"page-{width}.png").stat().st_size > 20_000
    view.close()


def test_plots_wait_until_they_come_into_view(browser: Browser, site: Path):
    view = browser.open((site / "index.html").as_uri(), width=PHONE, height=600)
    plots = "[...document.querySelectorAll('.plot')]"
    view.value(f"{plots}.at(-1).closest('details').open = true")
    assert view.value(f"{plots}.at(-1).dataset.drawn") is None
    view.value(f"{plots}.at(-1).scrollIntoView({{behavior: 'instant'}})")
    view.wait_for(f"{plots}.at(-1).dataset.drawn")
    view.close()


def test_nothing_is_wider_than_a_phone(browser: Browser, site: Path):
    view = browser.open((site / "index.html").as_uri(), width=PHONE)
    view.draw_all()
    view.value("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert view.value("document.documentElement.scrollWidth") == PHONE
    wide = view.value(
        "[...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll, svg, .hidden') && "
        f"one.getBoundingClientRect().right > {PHONE}).map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []
    view.close()


def test_a_dark_desktop_gets_a_dark_page_and_the_button_changes_page_and_plots(browser: Browser, site: Path):
    view = browser.open((site / "index.html").as_uri(), width=DESKTOP, dark=True)
    plot = "document.querySelector('.plot')"
    view.value(f"{plot}.scrollIntoView({{behavior: 'instant'}})")
    view.wait_for(f"{plot}.dataset.drawn === 'dark'")
    red, green, blue = (int(DARK_PAPER[place : place + 2], 16) for place in (1, 3, 5))
    assert colour(view, "body", "background-color") == f"rgb({red}, {green}, {blue})"
    assert view.value(f"{plot}.data[0].marker.color") == variant_style(1).on_dark
    assert view.value("document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    view.value("document.getElementById('theme').focus()")
    view.press("Enter", 13)
    view.wait_for(f"{plot}.dataset.drawn === 'light'")
    assert colour(view, "body", "background-color") == "rgb(255, 255, 255)"
    assert view.value(f"{plot}.data[0].marker.color") == variant_style(1).colour
    assert view.value("document.getElementById('theme').getAttribute('aria-pressed')") == "false"
    view.value("localStorage.clear()")
    assert view.complaints() == []
    view.close()


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser: Browser, site: Path):
    view = browser.open((site / "index.html").as_uri(), width=DESKTOP)
    view.press("Tab", 9)
    assert view.value("document.activeElement.className") == "skip"
    assert view.value("document.activeElement.getBoundingClientRect().left >= 0")
    view.press("Enter", 13)
    view.wait_for("document.activeElement.id === 'main'")
    stops = set()
    for _ in range(12):
        view.press("Tab", 9)
        stops.add(view.value("document.activeElement.tagName + '.' + document.activeElement.className"))
        assert view.value("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert "DIV.scroll" in stops
    assert "SUMMARY." in stops
    view.close()


def test_names_from_outside_are_only_seen(browser: Browser, site: Path):
    view = browser.open((site / "index.html").as_uri(), width=DESKTOP)
    view.draw_all()
    assert view.value("document.title") == "c: es and os - benchctl"
    assert view.value("document.querySelectorAll('main img').length") == 0
    assert view.value(f"[...document.querySelectorAll('h3')].some(one => one.textContent === {NAMES[2]!r})")
    shown = view.value("[...document.querySelectorAll('.plot .annotation')].map(one => one.textContent)")
    assert NAMES[2] in shown
    view.close()
