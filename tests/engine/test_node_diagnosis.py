"""Logs of failed nodes: the line that matters, and what to do about it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.node import diagnose
from golden import Cases


def test_known_causes_are_found_between_other_lines(cases: Cases):
    def diagnosed(line: str) -> str:
        trace = "\tat java.base/java.lang.Thread.run(Thread.java:1583)"
        return "\n".join(diagnose(["[INFO ] starting", f"  {line}", trace, "goodbye"]))

    cases("causes", diagnosed)


# What Elasticsearch 8.11 and OpenSearch 2.11 print, shortened, when the cause that is expected was made.
BOOTING = (
    "[2026-11-22T19:38:48,501][ERROR][o.e.b.Elasticsearch      ] [benchctl] fatal exception while booting "
)
FAILURES = {
    "a state file of which a bit was flipped": (
        [
            f"{BOOTING}org.elasticsearch.ElasticsearchException: failed to bind service",
            "\tat org.elasticsearch.server@8.11.0/org.elasticsearch.node.Node.<init>(Node.java:1237)",
            "Caused by: org.apache.lucene.index.CorruptIndexException: checksum failed (hardware problem?)",
            "\t... 4 more",
        ],
        "org.apache.lucene.index.CorruptIndexException: checksum failed",
        "data directory is damaged",
    ),
    "a segment's file that is gone": (
        [
            "[2026-11-22T19:37:00,000][WARN ][o.e.i.c.IndicesClusterStateService] [benchctl] failed shard",
            "org.elasticsearch.indices.recovery.RecoveryFailedException: [big5][0]: Recovery failed",
            "Caused by: org.elasticsearch.index.engine.EngineCreationFailureException: failed to create",
            "Caused by: java.nio.file.NoSuchFileException: /data/indices/AIqG/0/index/_2.cfs",
            "\t... 9 more",
        ],
        "java.nio.file.NoSuchFileException: /data/indices/AIqG/0/index/_2.cfs",
        "data directory is damaged",
    ),
    "a lock that another process holds": (
        [
            f"{BOOTING}java.lang.IllegalStateException: failed to obtain node locks, tried [/data]",
            "Caused by: java.io.IOException: failed to obtain lock on /data",
            "Caused by: org.apache.lucene.store.LockObtainFailedException: Lock held by another program: /x",
        ],
        "org.apache.lucene.store.LockObtainFailedException: Lock held by another program: /x",
        "another node uses this data directory",
    ),
    "a data directory of somebody else": (
        [
            f"{BOOTING}java.lang.IllegalStateException: failed to obtain node locks, tried [/data]",
            "Caused by: java.io.IOException: failed to obtain lock on /data",
            "Caused by: java.nio.file.NoSuchFileException: /data/node.lock",
            "\tSuppressed: java.nio.file.AccessDeniedException: /data/node.lock",
            "\t\tat java.base/sun.nio.fs.UnixException.translateToIOException(Unknown Source)",
        ],
        "java.nio.file.AccessDeniedException: /data/node.lock",
        "read and write",
    ),
    "a full disk": (
        [
            f"{BOOTING}org.elasticsearch.ElasticsearchException: failed to bind service",
            "Caused by: java.io.IOException: No space left on device",
        ],
        "java.io.IOException: No space left on device",
        "disk space",
    ),
    "something that nobody has seen before": (
        [
            f"{BOOTING}org.elasticsearch.ElasticsearchException: failed to bind service",
            "Caused by: java.lang.IllegalStateException: the plug-in wants a licence",
            "Caused by: org.moon.NotFullException: three days more",
        ],
        "org.moon.NotFullException: three days more",
        "see the logs",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_the_innermost_exception_explains_a_failure(what: str):
    log, reason, hint = FAILURES[what]
    said, advice = diagnose(["[INFO ] starting", *log, "ERROR: Elasticsearch exited unexpectedly"])
    assert said.startswith(reason)
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
        "WARNING: System::setSecurityManager has been called by org.opensearch.bootstrap.OpenSearch",
    ],
)
def test_what_is_normal_explains_nothing(line: str):
    assert diagnose([line])[0] == ""
    assert diagnose([line, "unknown setting [a]"])[0] == "unknown setting [a]"


def test_a_warning_is_what_matters_where_nothing_failed():
    normal = "[2026-01-01T00:00:00,000][WARN ][o.e.b.Check] [benchctl] Cannot allocate memory lock"
    waiting = normal.replace("Cannot allocate memory lock", "master not discovered yet: have discovered []")
    noise = ["Nov 25, 2026 sun.util.locale.provider.LocaleProviderAdapter <clinit>", "WARNING: COMPAT"]
    usual = [
        "[2026-01-01T00:00:00,000][WARN ][o.e.b.BootstrapChecks    ] [a] max virtual memory areas",
        "[2026-01-01T00:00:00,000][WARN ][o.e.c.c.ClusterBootstrapService] [a] this node is locked into",
        "[2026-01-01T00:00:00,000][WARN ][r.suppressed             ] [a] path: /i/_search",
    ]
    assert diagnose([normal, waiting, *usual, *noise]) == (waiting, "see the logs")
    assert diagnose([*usual, *noise])[0] == ""
    assert diagnose([normal, "unknown setting [a]"])[0] == "unknown setting [a]"


@given(st.lists(st.text()))
def test_any_log_is_survived_and_shortened(log: list[str]):
    reason, _ = diagnose(log)
    assert len(reason) <= 3 * 300 + 4


def test_the_port_is_named_although_the_innermost_exception_does_not():
    log = [
        "org.elasticsearch.http.BindHttpException: Failed to bind to 127.0.0.1:9200",
        "\tat org.elasticsearch.Somewhere",
        "Caused by: java.net.BindException: Address already in use",
    ]
    assert diagnose(log)[0].endswith("Failed to bind to 127.0.0.1:9200")
