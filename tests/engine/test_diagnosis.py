"""Logs of failed nodes: the line that matters, and what to do about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.diagnosis import diagnose


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("Unrecognized VM option 'UseFoo'", "does not take that flag"),
        ("Error: VM option 'PrintInlining' is diagnostic and must be enabled", "UnlockDiagnosticVMOptions"),
        ("java.lang.UnsupportedClassVersionError: org/x has been compiled by a more recent", "another Java"),
        ("java.lang.Error: Enabling a Security Manager is not supported.", "an older Java"),
        ("Error occurred during initialization: Module jdk.incubator.vector not found", "lacks that module"),
        ("OpenJDK: os::commit_memory failed; error='Cannot allocate memory' (errno=12)", "free memory"),
        ("java.lang.OutOfMemoryError: Java heap space", "a larger one with --heap"),
        ("java.lang.OutOfMemoryError: unable to create native thread", "free memory"),
        ("# A fatal error has been detected by the Java Runtime Environment:", "hs_err_pid*.log"),
        ("java.lang.IllegalArgumentException: unknown setting [no.such] please check", "that node setting"),
        ("BindHttpException[Failed to bind to 127.0.0.1:9200]", "another process has that port"),
        ("java.lang.IllegalStateException: failed to obtain node locks, tried [/data]", "data folder"),
        ("java.io.IOException: No space left on device", "disk space"),
        ("java.nio.file.AccessDeniedException: /data/nodes", "read and write"),
    ],
)
def test_known_causes_are_found_between_other_lines(line: str, hint: str):
    log = [
        "[INFO ] starting",
        f"  {line}",
        "\tat java.base/java.lang.Thread.run(Thread.java:1583)",
        "goodbye",
    ]
    reason, advice = diagnose(log)
    assert reason == line
    assert hint in advice


def test_an_unknown_cause_shows_the_telling_lines():
    log = ["starting", "[x][ERROR] the moon is full", "\tat org.x.Y(Z.java:1)", "closing", ""]
    assert diagnose(log)[0] == "[x][ERROR] the moon is full"


def test_without_telling_lines_the_last_ones_are_shown():
    assert diagnose(["a", "b", "c", "d", " "])[0] == "b; c; d"


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-01T00:00:00,000][INFO ][o.e.n.Node] [benchctl] JVM arguments [-XX:+ExitOnOutOfMemoryError]",
        "[2026-01-01T00:00:00,000][WARN ][o.e.b.Check] [benchctl] Cannot allocate memory lock",
        "WARNING: System::setSecurityManager has been called by org.opensearch.bootstrap.OpenSearch",
    ],
)
def test_what_is_normal_explains_nothing(line: str):
    assert diagnose([line])[0] == ""
    assert diagnose([line, "unknown setting [a]"])[0] == "unknown setting [a]"


@given(st.lists(st.text()))
def test_any_log_is_survived_and_shortened(log: list[str]):
    reason, _ = diagnose(log)
    assert len(reason) <= 3 * 300 + 4
