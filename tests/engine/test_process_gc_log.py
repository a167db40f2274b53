"""GC logs: pauses of every collector, whatever else a log holds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.process import GcPause, read_pauses

PID = 11037
END_NS = 90_000_000_123
MARKS = f"[2026-11-21T13:06:37.013+0000][{END_NS}ns][11037]"

# As the engines' shipped options write it on JDK 21, with the clock that benchctl adds.
ELASTICSEARCH = f"""\
[2026-11-21T13:06:33.936+0000][86923000123ns][11037][info][gc     ] Using G1
{MARKS}[info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
{MARKS}[info ][gc,phases   ] GC(0)   Pre Evacuate Collection Set: 0.3ms
{MARKS}[info ][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 204M->13M(4096M) 12.136ms
{MARKS}[info ][gc,cpu      ] GC(0) User=0.02s Sys=0.00s Real=0.01s
{MARKS}[info ][safepoint   ] Safepoint "G1PauseRemark", Time since last: 6242153 ns, Total: 3139613 ns
{MARKS}[info ][gc          ] GC(1) Concurrent Mark Cycle 10.155ms
{MARKS.replace("[90", "[92")}[info ][gc          ] GC(2) Pause Remark 18M->18M(4096M) 3.091ms
"""
OPENSEARCH = f"""\
{MARKS}[gc,start    ] GC(0) Pause Young (Concurrent Start) (Metadata GC Threshold)
{MARKS}[gc          ] GC(0) Pause Young (Concurrent Start) (Metadata GC Threshold) 117M->8M(4096M) 8.527ms
"""


def pauses(folder: Path, text: str, origin_ns: int = 0) -> list[GcPause]:
    (folder / "gc.log").write_text(text, encoding="utf-8")
    return read_pauses(folder, PID, origin_ns)


def test_pauses_end_when_elasticsearch_writes_them(tmp_path: Path):
    assert pauses(tmp_path, ELASTICSEARCH) == [
        GcPause(END_NS - 12_136_000, 12_136_000, "Young (Normal) (G1 Evacuation Pause)"),
        GcPause(END_NS + 2_000_000_000 - 3_091_000, 3_091_000, "Remark"),
    ]


def test_opensearch_writes_no_level(tmp_path: Path):
    assert pauses(tmp_path, OPENSEARCH) == [
        GcPause(END_NS - 8_527_000, 8_527_000, "Young (Concurrent Start) (Metadata GC Threshold)")
    ]


@pytest.mark.parametrize(
    ("line", "what", "pause_ns"),
    [
        ("[gc] GC(5) Pause Full (G1 Compaction Pause) 300M->9M(512M) 35.250ms",
         "Full (G1 Compaction Pause)", 35_250_000),
        ("[gc] GC(5) Pause Young (Allocation Failure) 66M->2M(245M) 3.123ms",
         "Young (Allocation Failure)", 3_123_000),
        ("[gc] GC(7) Pause Remark 1024K->2G(4G) 0.500ms", "Remark", 500_000),
        ("[gc,phases] GC(0) Y: Pause Mark Start (Major) 0.012ms", "Mark Start (Major)", 12_000),
        ("[gc,phases] GC(12) Pause Mark End 0.005ms", "Mark End", 5_000),
        ("[gc] GC(7) Pause Init Mark (unload classes) 0.5ms", "Init Mark (unload classes)", 500_000),
        ("[gc] GC(7) Pause Final Update Refs 80M->40M(1G) 0.25ms", "Final Update Refs", 250_000),
    ],
)  # fmt: skip
def test_other_collectors_say_it_in_their_words(tmp_path: Path, line: str, what: str, pause_ns: int):
    (found,) = pauses(tmp_path, f"{MARKS}{line}\n")
    assert (found.start_ns, found.pause_ns, found.what) == (END_NS - pause_ns, pause_ns, what)


@given(st.integers(-(2**62), 2**62))
def test_times_count_from_the_origin_whatever_the_wall_clock_is(
    tmp_path_factory: pytest.TempPathFactory, origin_ns: int
):
    text = OPENSEARCH.replace("T13:06", "T03:06")
    (found,) = pauses(tmp_path_factory.mktemp("log"), text, origin_ns)
    assert found.start_ns + found.pause_ns == END_NS - origin_ns


def test_pauses_of_the_jvms_that_start_scripts_run_are_passed_over(tmp_path: Path):
    (tmp_path / "gc.log.00").write_text(ELASTICSEARCH.replace("[11037]", "[11000]"))
    assert len(pauses(tmp_path, ELASTICSEARCH)) == 2


def test_a_log_that_was_rotated_is_read_in_order(tmp_path: Path):
    (tmp_path / "gc.log.0").write_text(OPENSEARCH.replace("[90", "[89"))
    found = pauses(tmp_path, OPENSEARCH)
    assert [pause.start_ns for pause in found] == [END_NS - 10**9 - 8_527_000, END_NS - 8_527_000]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[11037][gc] GC(0) Pause Remark 18M->18M(4096M) 3.091ms\n",
        "[2026-11-21T13:06:37.013+0000][11037][gc] GC(0) Pause Remark 18M->18M(4096M) 3.091ms\n",
        f"{MARKS}[gc] GC(0) Pause Remark 18M->18M(4096M) 3.091m",
        f"{MARKS}[gc] GC(0) Pause Remark 18M->17M(4096M) {'9' * 400}.091ms",
        f"{MARKS}[gc] Pause for thought 3.091ms\n",
        "\ufffd\x00[gc] GC(0) Pause",
    ],
)
def test_lines_that_say_no_time_or_no_pause_are_none(tmp_path: Path, text: str):
    assert pauses(tmp_path, text) == []


def test_without_a_log_there_are_no_pauses(tmp_path: Path):
    assert read_pauses(tmp_path, PID, 0) == []
    assert read_pauses(tmp_path / "none", PID, 0) == []
