"""What a search came to, as it is printed."""

import csv
import io
import json
from typing import Any

import msgspec

from benchctl.search.minimize_report import Ended, render_minimize
from benchctl.search.record import Decision, Effect, MinimizeRecord, MinimizeSpec
from benchctl.track.model import Challenge, Task
from builders import make_plan

SPEC = MinimizeSpec(
    effect=Effect("range", "slower", "es"),
    metric="throughput",
    by=None,
    most_forks=12,
    prefix_iterations=10,
    budget_s=None,
    alpha=0.05,
)
BEGUN = Decision(
    number=1,
    phase="shorten",
    short=True,
    steps=(0, 1, 2),
    tasks=("default", "sort", "histogram"),
    verdict="present",
    contender=(67.0, 68.0, 66.0, 67.0, 67.0),
    reference=(100.0, 101.0, 99.0, 100.0, 100.0),
    effect_percent=-33.0,
    low_percent=-35.0,
    high_percent=-31.0,
    alpha=0.0304,
    seconds=120.0,
)
REMOVED = msgspec.structs.replace(
    BEGUN,
    number=2,
    phase="remove",
    steps=(1, 2),
    tasks=("sort", "histogram"),
    removed=("default",),
    effect_percent=-32.0,
    seconds=60.0,
)
KEPT = msgspec.structs.replace(
    REMOVED,
    number=3,
    steps=(2,),
    tasks=("histogram",),
    removed=("sort",),
    verdict="absent",
    effect_percent=0.4,
    low_percent=-1.0,
    high_percent=1.8,
)
OPEN = msgspec.structs.replace(
    KEPT,
    number=4,
    steps=(1,),
    tasks=("sort",),
    removed=("histogram",),
    verdict="undecided",
    reason="no answer after 12 pairs of forks",
    effect_percent=-14.0,
)


def record(*decisions: Decision, **changes: Any) -> MinimizeRecord:
    found = MinimizeRecord(
        id="20260101-big5-ab",
        created="2026-01-01T00:00:00+00:00",
        status="complete",
        spec=SPEC,
        plan=make_plan(),
        decisions=decisions,
        found=Challenge("big5-minimal-range", (Task("sort"), Task("histogram"), Task("range"))),
        minimal=True,
    )
    return msgspec.structs.replace(found, **changes)


def text(found: MinimizeRecord, **keys: Any) -> str:
    return render_minimize(Ended(found, **keys), width=120)


def flat(found: MinimizeRecord, **keys: Any) -> str:
    return " ".join(text(found, **keys).split())


def test_the_table_has_a_line_a_question_and_the_conclusion_names_what_is_left() -> None:
    found = text(
        record(BEGUN, REMOVED, KEPT), files=("found.json",), commands={"To see it again": "benchctl run"}
    )
    lines = found.splitlines()
    assert any(line.split()[:4] == ["1", "3", "counts", "cut"] for line in lines)
    kept = next(line for line in lines if line.startswith("3 "))
    assert " ".join(kept.split()) == "3 1 sort +0.4 -1.0 to +1.8 absent 5 1 min 00 s"
    words = " ".join(found.split())
    assert "'range slower than fresh' persists with 2 of 3 steps before it: sort, histogram." in words
    assert "There it is -32.0 % (-35.0 to -31.0); at the beginning it was -33.0 % (-35.0 to -31.0)." in words
    assert "at most 10 requests" in words
    assert "took 4 min 00 s" in words
    assert "Challenge file: found.json" in words
    assert "To see it again: benchctl run" in words


def test_what_stayed_open_is_named() -> None:
    words = flat(record(BEGUN, REMOVED, KEPT, OPEN))
    assert "Whether it takes histogram stayed open after 12 pairs of forks" in words
    assert "without any single one" not in words


def test_a_search_that_ran_out_of_time_says_so() -> None:
    words = flat(record(BEGUN, REMOVED, status="interrupted", minimal=False, stopped="the time was up"))
    assert "It may get smaller: the search ended before every step was tried: the time was up." in words


def test_nothing_in_front_may_be_needed() -> None:
    nothing = msgspec.structs.replace(REMOVED, steps=(), tasks=(), removed=("default", "sort", "histogram"))
    words = flat(record(BEGUN, nothing))
    assert "0 of 3 steps before it: nothing" in words
    assert "Nothing in front of it is needed." in words


def test_an_effect_that_is_not_there_is_not_claimed() -> None:
    gone = msgspec.structs.replace(BEGUN, verdict="undecided", effect_percent=-2.0)
    words = flat(record(gone, found=None, minimal=False))
    assert "is not confirmed (-2.0 % (-35.0 to -31.0)): there is nothing to keep" in words
    assert "nothing to keep" in flat(record(found=None, minimal=False, status="interrupted", stopped="x"))


def test_a_threshold_that_was_asked_for_is_named() -> None:
    spec = msgspec.structs.replace(SPEC, by=0.1)
    assert "An effect counts from 10.0 %." in flat(record(BEGUN, REMOVED, spec=spec))


def test_the_schedule_itself_is_printed_as_its_file_has_it() -> None:
    found = record(BEGUN, REMOVED, KEPT)
    for shown in (text(found), render_minimize(Ended(found), "markdown").replace("```", "")):
        challenge = json.loads("{" + shown.partition("\n{")[2])
        assert challenge["name"] == "big5-minimal-range"
        assert [task["operation"] for task in challenge["schedule"]] == ["sort", "histogram", "range"]
    assert "{" not in text(record(BEGUN, found=None))


def test_programs_get_everything() -> None:
    found = record(BEGUN, REMOVED, KEPT)
    document = json.loads(render_minimize(Ended(found, files=("a.json",)), "json"))
    assert document["files"] == ["a.json"]
    assert msgspec.convert(document["search"], MinimizeRecord) == found
    rows = list(csv.DictReader(io.StringIO(render_minimize(Ended(found), "csv"))))
    assert [row["verdict"] for row in rows] == ["present", "present", "absent"]
    assert (rows[2]["left"], rows[2]["without"], rows[2]["pairs"]) == ("histogram", "sort", "5")


def test_readers_elsewhere_get_the_same() -> None:
    found = Ended(record(BEGUN, REMOVED), commands={"To see it again": "benchctl run --challenge x.json"})
    assert "| # | Left | Without |" in render_minimize(found, "markdown")
    page = render_minimize(found, "html")
    assert "benchctl run --challenge x.json" in page
    assert "fresh node" in page
