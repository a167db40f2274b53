"""The page of an experiment: complete, self-contained, and nothing in it is markup that should not be."""

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.record import TableSpec
from benchctl.experiment.report import page, write
from made_experiment import comparison, expect, made_record, made_runs

HOSTILE = "<script>alert('x')</script>&amp;\u202e"
TIMES = {
    "fresh": {"es": (4.0, 4.1, 3.9), "os": (4.0, 4.05, 3.95)},
    "after": {"es": (5.0, 5.1, 4.9), "os": (6.0, 6.1, 5.9)},
}


class Outline(HTMLParser):
    """Which elements there are, and where they point."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.classes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "script":
            self.scripts.append(found.get("src", found.get("type", "")))
        self.links += [value for name, value in found.items() if name in ("href", "src")]
        self.ids |= {found["id"]} if "id" in found else set()
        self.classes += found.get("class", "").split()


def outlined(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    return parser


def made(word: str) -> tuple[str, Outline]:
    rows = (
        comparison("a", "fresh/os/range", "after/os/range", label=word, published=(0.65, 0.33)),
        comparison("b", "fresh/es/range", "fresh/os/range", label=f"{word} 2"),
    )
    table = TableSpec(title=word, rows=rows, source=word, about=word, baseline=word, contender=f"{word}!")
    expectations = [
        expect(word, "slower", "a", needs=word),
        expect("refuted", "faster", "a"),
        expect("open", "alike", "b", margin="0.1%"),
    ]
    record = made_record([table], expectations)
    spec = msgspec.structs.replace(record.spec, title=word, about=word, source=word)
    record = msgspec.structs.replace(record, spec=spec)
    runs = made_runs(TIMES)
    text = page(record, runs, analyse_experiment(record, runs))
    return text, outlined(text)


def test_whatever_a_file_says_is_text():
    text, outline = made(HOSTILE)
    assert HOSTILE not in text
    assert "&lt;script&gt;alert" in text
    assert "\u202e" not in text
    assert outline.scripts == outlined(made("plain")[0]).scripts


def test_it_loads_nothing_from_any_network():
    _, outline = made("plain")
    outside = [link for link in outline.links if not link.startswith(("#", "assets/", "data:"))]
    assert not outside
    assert all(link[1:] in outline.ids for link in outline.links if link.startswith("#"))


def test_outcomes_have_colours_and_words():
    text, outline = made("plain")
    assert {"faster", "slower", "different"} <= set(outline.classes)
    for word in ("confirmed", "refuted", "inconclusive"):
        assert re.search(rf">{word}\??</td>", text)


def test_published_figures_stand_above_measured_ones():
    text, _ = made("plain")
    assert re.search(r">published</td>\s*<td[^>]*>0.65</td>", text)


def test_it_is_written_with_what_it_needs(tmp_path: Path):
    record = made_record([comparison("a", "fresh/es/range", "fresh/os/range")])
    runs = made_runs(TIMES)
    index = write(tmp_path / "page", record, runs, analyse_experiment(record, runs), {"fresh": "its page"})
    assert index == tmp_path / "page" / "index.html"
    files = [
        one for one in outlined(index.read_text(encoding="utf-8")).links if not one.startswith(("#", "data:"))
    ]
    assert all((index.parent / one).is_file() for one in files)
    assert [one for one in files if not one.startswith("assets/")] == [f"{runs['fresh'].id}.html"]


def test_a_page_of_somebody_else_is_kept(tmp_path: Path):
    (tmp_path / "index.html").write_text("mine")
    record = made_record([])
    with pytest.raises(UsageError, match="not written by benchctl"):
        write(tmp_path, record, {}, analyse_experiment(record, {}))
