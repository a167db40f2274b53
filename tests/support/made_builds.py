"""Index builds made by hand."""

from typing import Any

import msgspec

from benchctl.results.model import IndexFacts, IngestCosts, IngestReport, RunRecord, SegmentFacts
from builders import make_plan, make_record

REPORT = IngestReport(1_000, 500_000, 2, 10.0, 1.0, 2.0, 0.5, 8.0, 1.0, 2.0, 0.1)


def built(seconds: float, size: int = 2_000_000, /, took_s: float = 0.0, **changes: Any) -> IndexFacts:
    """A build of 1,000 documents that was filled in so many seconds; without costs unless took is given."""
    costs = IngestCosts(took_s, took_s + 4.0, 0.5) if took_s else None
    ingest = msgspec.structs.replace(REPORT, ingest_s=seconds, force_merge_s=seconds / 5, costs=costs)
    facts = IndexFacts("k", 1_000, size, (SegmentFacts(1_000, size, "9.8.0"),), ingest)
    return msgspec.structs.replace(facts, **changes)


def built_record(plan: dict[str, Any] | None = None, **builds: tuple[IndexFacts, ...]) -> RunRecord:
    """A finished run that built indices and did nothing else."""
    asked = {"schedules": (), "forks": 0, "index_builds": max(map(len, builds.values()))}
    return make_record(
        status="complete",
        plan=make_plan(**asked | (plan or {})),
        indices={name: own[0] for name, own in builds.items()},
        builds={name: own for name, own in builds.items() if len(own) > 1},
    )


def builds(*seconds: float, **changes: Any) -> tuple[IndexFacts, ...]:
    """One build of so many seconds each; sizes differ by a byte."""
    return tuple(built(one, 2_000_000 + place, **changes) for place, one in enumerate(seconds))
