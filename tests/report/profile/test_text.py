from benchctl.jvm.profile import Counted, differences, shares
from benchctl.report.profile import Form, Heading, difference_lines, frame_words, summary_lines

COLLECT = "org.apache.lucene.search.TopFieldCollector.collect:78"
READ = "org.apache.lucene.util.bkd.DocIdsWriter.readInts24:305"
CALLER = "org.apache.lucene.util.bkd.BKDReader.addAll:540"


def fork(collect: int, read: int) -> Counted:
    return Counted(
        {("[search]", COLLECT): collect, ("[search]", CALLER, READ): read}, 2 * (collect + read), 0
    )


def test_the_table_is_that_of_luceneutil():
    heading = Heading("es", 1, 100, 200)
    assert summary_lines(heading, shares([fork(75, 25)]), Form()) == [
        "Profile of es, 1 fork:",
        "PROFILE SUMMARY from 100 events (total: 200)",
        "  profile.mode=cpu",
        "  profile.count=30",
        "  profile.stacksize=1",
        "  profile.linenumbers=false",
        "  profile.inclusive=false",
        "  profile.threads=all",
        "  profile.task=all, while measured",
        "PERCENT  CPU SAMPLES  STACK",
        " 75.00%           75  org.apache.lucene.search.TopFieldCollector#collect():78",
        " 25.00%           25  org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
        "",
        "Of so many samples, a share of 5 % is known to within 4.3 points at best.",
    ]


def test_callers_stand_below_and_several_forks_have_a_range():
    heading = Heading("es", 2, 200, 400)
    lines = summary_lines(heading, shares([fork(75, 25), fork(85, 15)], size=2), Form(size=2, lines=True))
    assert lines[9:14] == [
        "PERCENT         FORKS  CPU SAMPLES  STACK",
        " 80.00%  75.00-85.00%          160  org.apache.lucene.search.TopFieldCollector#collect():78",
        "                                      at [search]",
        " 20.00%  15.00-25.00%           40  org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
        "                                      at org.apache.lucene.util.bkd.BKDReader#addAll():540",
    ]


def test_what_is_not_in_the_table_is_said():
    heading = Heading(
        "es", 1, 100, 200, cut=3, unread=1, native=12, native_frame="java.util.zip.Inflater.inflate"
    )
    text = "\n".join(summary_lines(heading, shares([fork(75, 25)]), Form(top=1)))
    assert "1 more line with 25.00% together: see --top." in text
    assert "12 samples of es in native code, most in java.util.zip.Inflater#inflate(): --mode native" in text
    assert "3 stacks deeper than what is recorded" in text
    assert "1 line of the recordings not understood." in text


def test_native_samples_are_no_times():
    lines = summary_lines(Heading("es", 1, 100, 200, native=100), shares([fork(75, 25)]), Form(mode="native"))
    assert lines[9].split()[1:3] == ["NATIVE", "SAMPLES"]
    assert any("no shares of time" in line for line in lines)
    assert not any("Not in these shares" in line for line in lines)


def test_sides_stand_beside_each_other_and_chance_is_marked():
    found = differences([fork(75, 25)], [fork(50, 50)])
    lines = difference_lines(Heading("es", 1, 100, 200), Heading("os", 1, 100, 200), found, Form())
    assert lines[9:14] == [
        "Profile of os, 1 fork:",
        "PROFILE SUMMARY from 100 events (total: 200)",
        "    es      os  POINTS  CHANCE   STACK",
        "75.00%  50.00%  -25.00   12.96   org.apache.lucene.search.TopFieldCollector#collect():78",
        "25.00%  50.00%  +25.00   12.96   org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
    ]
    close = differences([fork(75, 25)], [fork(74, 26)])
    lines = difference_lines(Heading("es", 1, 100, 200), Heading("os", 1, 100, 200), close, Form(top=1))
    assert "12.08~ " in lines[12]
    assert lines[-1] == "1 of 2 frames shown."


def test_frames_that_are_no_methods_stay_as_they_are():
    assert frame_words("[search]") == "[search]"
    assert frame_words("(unknown)") == "(unknown)"
    assert frame_words("a.b.C.d:3") == "a.b.C#d():3"
