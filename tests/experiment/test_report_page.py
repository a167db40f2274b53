"""The page of an experiment: complete, self-contained, and nothing in it is markup that should not be."""

import re
from pathlib import Path

import msgspec

from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.record import TableSpec
from benchctl.experiment.report import page, write
from made_experiment import comparison, expect, made_record, made_runs
from report.html.outline import Outline, outline

HOSTILE = "<script>alert('x')</script>&amp;\u202e"
TIMES = {
    "fresh": {"es": (4.0, 4.1, 3.9), "os": (4.0, 4.05, 3.95)},
    "after": {"es": (5.0, 5.1, 4.9), "os": (6.0, 6.1, 5.9)},
}


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
    return text, outline(text)


def test_whatever_a_file_says_is_text():
    text, found = made(HOSTILE)
    assert HOSTILE not in text
    assert "&lt;script&gt;alert" in text
    assert "\u202e" not in text
    plain = made("plain")[1]
    assert [one.attributes for one in found.all("script")] == [one.attributes for one in plain.all("script")]


def test_outcomes_have_colours_and_words():
    text, found = made("plain")
    classes = {name for one in found.elements for name in one.attributes.get("class", "").split()}
    assert {"faster", "slower", "different"} <= classes
    for word in ("confirmed", "refuted", "inconclusive"):
        assert re.search(rf">{word}\??</td>", text)


def test_it_is_written_with_what_it_needs(tmp_path: Path):
    record = made_record([comparison("a", "fresh/es/range", "fresh/os/range")])
    runs = made_runs(TIMES)
    index = write(tmp_path / "page", record, runs, analyse_experiment(record, runs), {"fresh": "its page"})
    assert index == tmp_path / "page" / "index.html"
    addresses = outline(index.read_text(encoding="utf-8")).addresses()
    files = [one for one in addresses if not one.startswith(("#", "data:"))]
    assert all((index.parent / one).is_file() for one in files)
    assert [one for one in files if not one.startswith("assets/")] == [f"{runs['fresh'].id}.html"]
