"""GC logs: pauses of every collector, whatever else a log holds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.usage import GcPause, LogClock, read_pauses

PID = 11037
CLOCK = LogClock(zero_ns=0, epoch_ns=0, started_ns=0)
WALL = "[2026-11-21T13:06:37.013+0000]"
WALL_NS = 1_795_266_397_013_000_000

# As the engines' shipped options write it, on JDK 21.
ELASTICSEARCH = """\
[2026-11-21T13:06:33.936+0000][11037][info][gc     ] Using G1
[2026-11-21T13:06:35.219+0000][11037][info][gc,init] CPUs: 2 total, 2 available
[2026-11-21T13:06:37.001+0000][11037][info][gc,start    ] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
[2026-11-21T13:06:37.012+0000][11037][info ][gc,phases   ] GC(0)   Pre Evacuate Collection Set: 0.3ms
[2026-11-21T13:06:37.013+0000][11037][info ][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) \
204M->13M(4096M) 12.136ms
[2026-11-21T13:06:37.013+0000][11037][info ][gc,cpu      ] GC(0) User=0.02s Sys=0.00s Real=0.01s
[2026-11-21T13:06:37.014+0000][11037][info ][safepoint   ] Safepoint "G1PauseRemark", \
Time since last: 6242153 ns, Reaching safepoint: 2147 ns, At safepoint: 3117372 ns, Total: 3139613 ns
[2026-11-21T13:06:38.013+0000][11037][info ][gc          ] GC(1) Concurrent Mark Cycle 10.155ms
[2026-11-21T13:06:39.013+0000][11037][info ][gc          ] GC(2) Pause Remark 18M->18M(4096M) 3.091ms
"""
OPENSEARCH = """\
[2026-11-21T13:06:37.000+0000][11037][gc,start    ] GC(0) Pause Young (Concurrent Start) \
(Metadata GC Threshold)
[2026-11-21T13:06:37.013+0000][11037][gc          ] GC(0) Pause Young (Concurrent Start) \
(Metadata GC Threshold) 117M->8M(4096M) 8.527ms
"""


def pauses(folder: Path, text: str, clock: LogClock = CLOCK) -> list[GcPause]:
    (folder / "gc.log").write_text(text, encoding="utf-8")
    return read_pauses(folder, PID, clock)


def test_pauses_end_when_elasticsearch_writes_them(tmp_path: Path):
    assert pauses(tmp_path, ELASTICSEARCH) == [
        GcPause(WALL_NS - 12_136_000, 12_136_000, "Young (Normal) (G1 Evacuation Pause)"),
        GcPause(WALL_NS + 2_000_000_000 - 3_091_000, 3_091_000, "Remark"),
    ]


def test_opensearch_writes_no_level(tmp_path: Path):
    assert pauses(tmp_path, OPENSEARCH) == [
        GcPause(WALL_NS - 8_527_000, 8_527_000, "Young (Concurrent Start) (Metadata GC Threshold)")
    ]


@pytest.mark.parametrize(
    ("line", "what", "pause_ns"),
    [
        ("[gc] GC(5) Pause Full (G1 Compaction Pause) 300M->9M(512M) 35.250ms",
         "Full (G1 Compaction Pause)", 35_250_000),
        ("[gc] GC(5) Pause Young (Allocation Failure) 66M->2M(245M) 3.123ms",
         "Young (Allocation Failure)", 3_123_000),
        ("[gc,phases] GC(0) Y: Pause Mark Start (Major) 0.012ms", "Mark Start (Major)", 12_000),
        ("[gc,phases] GC(12) Pause Mark End 0.005ms", "Mark End", 5_000),
        ("[gc] GC(7) Pause Init Mark (unload classes) 0.5ms", "Init Mark (unload classes)", 500_000),
        ("[gc] GC(7) Pause Final Update Refs 80M->40M(1G) 0.25ms", "Final Update Refs", 250_000),
    ],
)  # fmt: skip
def test_other_collectors_say_it_in_their_words(tmp_path: Path, line: str, what: str, pause_ns: int):
    (found,) = pauses(tmp_path, f"{WALL}[11037]{line}\n")
    assert (found.start_ns, found.pause_ns, found.what) == (WALL_NS - pause_ns, pause_ns, what)


def test_the_jvm_may_count_from_its_start(tmp_path: Path):
    text = "[12.250s][info][gc] GC(0) Pause Remark 18M->18M(4096M) 3.000ms\n"
    clock = LogClock(zero_ns=-1, epoch_ns=-1, started_ns=500)
    assert pauses(tmp_path, text, clock) == [GcPause(12_247_000_500, 3_000_000, "Remark")]


@given(st.integers(-(2**62), 2**62))
def test_wall_times_are_moved_to_the_wanted_clock(tmp_path_factory: pytest.TempPathFactory, epoch_ns: int):
    clock = LogClock(0, epoch_ns, 0)
    (found,) = pauses(tmp_path_factory.mktemp("log"), OPENSEARCH, clock)
    assert found.start_ns + found.pause_ns == epoch_ns + WALL_NS


@pytest.mark.parametrize("wall", ["T03:06:37.013+0000", "T13:06:37.013+0000", "T23:06:37.013+0000"])
def test_pauses_do_not_move_when_the_wall_clock_jumps(tmp_path: Path, wall: str):
    line = "[2026-11-21{}][90000000123ns][11037][gc] GC(0) Pause Remark 18M->18M(4096M) 3.000ms\n"
    text = line.format("T13:06:30.000+0000").replace("90000000123", "83000000123") + line.format(wall)
    found = pauses(tmp_path, text, LogClock(zero_ns=-(10**10), epoch_ns=0, started_ns=0))
    assert [pause.start_ns for pause in found] == [72_997_000_123, 79_997_000_123]


def test_a_zone_is_taken_off(tmp_path: Path):
    text = OPENSEARCH.replace("T13:06:37.013+0000", "T15:06:37.013+0200")
    assert pauses(tmp_path, text) == pauses(tmp_path, OPENSEARCH)


def test_pauses_of_the_jvms_that_start_scripts_run_are_passed_over(tmp_path: Path):
    (tmp_path / "gc.log.00").write_text(ELASTICSEARCH.replace("[11037]", "[11000]"))
    assert len(pauses(tmp_path, ELASTICSEARCH)) == 2


def test_a_log_that_was_rotated_is_read_in_order(tmp_path: Path):
    (tmp_path / "gc.log.0").write_text(OPENSEARCH.replace("13:06:37", "13:06:36"))
    found = pauses(tmp_path, OPENSEARCH)
    assert [pause.start_ns for pause in found] == [WALL_NS - 10**9 - 8_527_000, WALL_NS - 8_527_000]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[11037][gc] GC(0) Pause Remark 18M->18M(4096M) 3.091ms\n",
        f"{WALL}[11037][gc] GC(0) Pause Remark 18M->18M(4096M) 3.091m",
        f"{WALL}[11037][gc] Pause for thought 3.091ms\n",
        "\ufffd\x00[gc] GC(0) Pause",
    ],
)
def test_lines_that_say_no_time_or_no_pause_are_none(tmp_path: Path, text: str):
    assert pauses(tmp_path, text) == []


def test_without_a_log_there_are_no_pauses(tmp_path: Path):
    assert read_pauses(tmp_path, PID, CLOCK) == []
    assert read_pauses(tmp_path / "none", PID, CLOCK) == []
