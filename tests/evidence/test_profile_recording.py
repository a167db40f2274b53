from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.evidence.profile import UNKNOWN, RecordingClock, RecordingText, Sample

STARTED = datetime.fromisoformat("2026-11-21T22:56:30")
CLOCK = RecordingClock(STARTED, STARTED + timedelta(seconds=27))
FRAME = "org.apache.lucene.search.Weight.scorerSupplier:135"


def read(text: str, clock: RecordingClock = CLOCK) -> list[Sample]:
    return list(RecordingText(text.splitlines(keepends=True), clock).samples())


def test_samples_have_their_pools_and_stacks_outermost_first(recording: str):
    running, *_ = read(recording)
    assert running.stack[:2] == ("[search]", "java.lang.Thread.run")
    assert running.stack[3:] == (FRAME, "org.apache.lucene.util.bkd.DocIdsWriter.readInts24:305")


def test_lambdas_lose_the_numbers_that_differ_from_jvm_to_jvm(recording: str):
    assert read(recording)[0].stack[2] == "java.util.function.Supplier$$Lambda.apply"
    newer = recording.replace("$$Lambda$1432+0x00007f0a9c5b1a28", "$$Lambda.0x00007f0a9c5b1a28")
    assert read(newer)[0].stack[2] == "java.util.function.Supplier$$Lambda.apply"


def test_a_stack_that_could_not_be_walked_is_unknown(recording: str):
    *_, unknown = read(recording)
    assert unknown.stack == ("[search]", UNKNOWN)


def test_the_thread_that_starts_and_stops_the_recording_is_passed_over(recording: str):
    own = recording.replace("elasticsearch[benchctl][search][T#1]", "Attach Listener")
    assert read(own) == []


def test_times_count_from_the_start_of_the_process_whatever_the_time_zone(recording: str):
    expected = [27_678, 27_700, 27_710]
    assert [sample.uptime_ns // 1_000_000 for sample in read(recording)] == expected
    for zone in (timedelta(hours=9), timedelta(hours=-5), timedelta(hours=5, minutes=45)):
        elsewhere = RecordingClock(CLOCK.started - zone, CLOCK.begun - zone)
        assert [sample.uptime_ns // 1_000_000 for sample in read(recording, elsewhere)] == expected


def test_a_second_chunk_says_nothing_new_of_the_time_zone(recording: str):
    later = recording.replace("22:56:57", "23:26:57")
    samples = read(recording + later)
    assert samples[3].uptime_ns - samples[0].uptime_ns == 1800 * 10**9


def test_lines_that_are_not_understood_are_counted(recording: str):
    broken = recording.replace(
        "java.lang.Thread.run()\n  ]\n}\n\njdk.Exec", "no parentheses\n  ]\n}\n\njdk.Exec"
    )
    text = RecordingText(f"something else\n{broken}".splitlines(), CLOCK)
    assert len(list(text.samples())) == 3
    assert text.unread == 2


def test_events_of_other_kinds_are_passed_over(recording: str):
    other = "jdk.GarbageCollection {\n  gcId = 3\n}\n\n"
    text = RecordingText((other + recording).splitlines(), CLOCK)
    assert len(list(text.samples())) == 3
    assert text.unread == 0


def test_a_sample_without_a_time_is_an_error(recording: str):
    headless = recording[recording.index("jdk.ExecutionSample") :]
    with pytest.raises(BenchctlError, match="no times of its samples"):
        read(headless)


@given(st.text(alphabet='jdk.ExcutionSample{}=[]() \n:1234N/A"-', max_size=400))
def test_garbage_raises_nothing_but_our_own_error(garbage: str):
    try:
        read(garbage)
    except BenchctlError as err:
        assert "when its samples" in str(err)  # noqa: PT017 - most garbage raises nothing at all


@pytest.mark.parametrize("impossible", ["22:56:57.678 (2026-02-30)", "25:56:57.678 (2026-11-21)"])
def test_a_sample_at_a_time_that_is_none_is_counted_and_left_out(recording: str, impossible: str):
    text = RecordingText(recording.replace("22:56:57.678 (2026-11-21)", impossible).splitlines(), CLOCK)
    assert len(list(text.samples())) == 2
    assert text.unread == 1


@pytest.mark.parametrize("impossible", ["22:56:57.100 (2026-02-30)", "22:56:57.100 (9999-12-31)"])
def test_a_start_that_shows_no_time_zone_is_counted_and_the_next_one_taken(recording: str, impossible: str):
    start = recording[: recording.index("jdk.ExecutionSample")]
    broken = start.replace("22:56:57.100 (2026-11-21)", impossible)
    text = RecordingText((broken + recording).splitlines(), CLOCK)
    assert [sample.uptime_ns for sample in text.samples()] == [sample.uptime_ns for sample in read(recording)]
    assert text.unread == 1
