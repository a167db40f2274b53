"""Index builds compared: figures with a known difference, and what is said without one."""

import msgspec
import pytest

from benchctl.report.ingest import ingest_lines
from benchctl.results.model import IndexFacts, IngestCosts, IngestReport
from builders import make_record

REPORT = IngestReport(1_000, 500_000, 2, 10.0, 1.0, 2.0, 0.5, 8.0, 1.0, 2.0, 0.0)
FACTS = IndexFacts("k", 1_000, 2_000_000, (), REPORT)


def builds(*seconds: float) -> tuple[IndexFacts, ...]:
    return tuple(
        msgspec.structs.replace(FACTS, ingest=msgspec.structs.replace(REPORT, ingest_s=one))
        for one in seconds
    )


def test_what_differs_is_told_with_its_interval():
    record = make_record(builds={"es": builds(10.0, 10.1, 9.9, 10.0), "os": builds(20.0, 20.2, 19.8, 20.1)})
    first, sent, indexing, *_, size, last = ingest_lines(record)
    assert first.startswith("docs/s: es 100.0, os 49.94: -50.1 % (-50.")
    assert first.endswith("p <0.001, slower")
    assert sent.startswith("data sent, MB/s: es 0.05000, os 0.02497: -50.1 % (-50.")
    # What is the same in every build has no spread to test with.
    assert indexing == "engine's indexing, s: es 8.000, os 8.000: 0.0 %, without a spread to test with"
    assert size == "segments: es 0, os 0, equal"
    assert last == "es 4 builds, os 4 builds; paired t over builds, which were made in turns; p not adjusted"


def test_what_both_say_of_their_index_is_compared_part_by_part():
    def sizes(*bytes_each: int, **files: int) -> tuple[IndexFacts, ...]:
        return tuple(
            msgspec.structs.replace(FACTS, fields={"a": size, "b": 19_999}, files={"points": size, **files})
            for size in bytes_each
        )

    record = make_record(
        builds={"es": sizes(10**6, 10**6 + 9), "os": sizes(2 * 10**6, 2 * 10**6 + 5, vectors=10**6)}
    )
    *_, files, field, _ = ingest_lines(record)
    assert files.startswith("files of points, MB: es 1.000, os 2.000: +100.0 % (")
    assert field.startswith("field a, MB: es 1.000, os 2.000: +100.0 % (")


def test_builds_from_the_cache_are_no_pairs():
    found = {name: builds(10.0, 10.5, 9.5) for name in ("es", "os")}
    found["os"] = tuple(msgspec.structs.replace(one, cached=True) for one in found["os"])
    *_, last = ingest_lines(make_record(builds=found))
    assert "Welch's t over builds, some from the cache" in last


def test_an_engine_that_never_flushed_has_no_ratio():
    record = make_record(builds={"es": builds(1.0, 2.0), "os": builds(1.0, 2.0)})
    assert "engine's flushes, s: es 0, os 0" in list(ingest_lines(record))


@pytest.mark.parametrize(
    "given", [{}, {"es": builds(1.0, 2.0)}, {"es": builds(1.0, 2.0), "os": builds(0.0, 0.0)}]
)
def test_one_side_is_no_comparison(given: dict[str, tuple[IndexFacts, ...]]):
    assert list(ingest_lines(make_record(builds=given))) == []


def test_what_an_ingest_cost_is_compared_where_both_know_it():
    def spent(write_s: float) -> dict[str, float]:
        return {"write": write_s, "collector": 0.0, "other": 1.0}

    def costing(*cpu_s: float) -> tuple[IndexFacts, ...]:
        return tuple(
            msgspec.structs.replace(
                FACTS,
                ingest=msgspec.structs.replace(
                    REPORT,
                    costs=IngestCosts(8.0 + one, 12.0 + one, spent(one)),
                ),
            )
            for one in cpu_s
        )

    lines = list(
        ingest_lines(make_record(builds={"es": costing(3.0, 3.1, 2.9), "os": costing(6.0, 6.3, 5.8)}))
    )
    assert any(line.startswith("sum of took, s: es 11.00, os 14.03: +27.6 % (") for line in lines)
    assert "time beyond took, s: es 4.000, os 4.000: 0.0 %, without a spread to test with" in lines
    assert any(line.startswith("CPU, ms/1k docs: es 4,000.0, os 7,033.3: +75.8 % (") for line in lines)
    assert any(line.startswith("CPU of write, ms/1k docs: es 3,000.0, os 6,033.3: ") for line in lines)
    assert "CPU of collector, ms/1k docs: es 0, os 0, equal" in lines
    known = {"es": costing(3.0, 3.1), "os": builds(10.0, 10.1)}
    assert not any("CPU" in line or "took" in line for line in ingest_lines(make_record(builds=known)))
