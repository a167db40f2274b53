"""Result files of other tools, made by hand: their structure, figures of our own."""

import json
from pathlib import Path
from typing import Any


def times(*, p50: float, p90: float | None = None, p99: float | None = None, top: float) -> dict[str, Any]:
    """Percentiles in milliseconds, without those that a small task has not."""
    found = {"50_0": p50, "90_0": p90, "99_0": p99, "100_0": top, "mean": p50 * 1.05}
    return {**{name: value for name, value in found.items() if value is not None}, "unit": "ms"}


def task_of(name: str, ms: float = 10.0, **changes: Any) -> dict[str, Any]:
    """An unthrottled task of 100 requests and more: its latency repeats its service time."""
    service = times(p50=ms, p90=ms * 1.2, p99=ms * 1.5, top=ms * 2)
    rate = 1000 / ms
    base = {
        "task": name,
        "operation": name,
        "throughput": {
            "min": rate * 0.9,
            "mean": rate,
            "median": rate * 1.01,
            "max": rate * 1.1,
            "unit": "ops/s",
        },
        "latency": dict(service),
        "service_time": service,
        "processing_time": times(p50=ms * 1.1, p90=ms * 1.3, p99=ms * 1.6, top=ms * 2.1),
        "error_rate": 0.0,
        "duration": 120_000,
    }
    return {**base, **changes}


def race(number: int = 1, *tasks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What Rally writes to race.json."""
    return {
        "rally-version": "2.9.1",
        "rally-revision": "abc1234",
        "environment": "local",
        "race-id": f"0000-{number}",
        "race-timestamp": f"20260101T0{number}0000Z",
        "pipeline": "from-distribution",
        "user-tags": {},
        "track": "big5",
        "car": "4gheap",
        "cluster": {
            "revision": "d9ec3fa6",
            "distribution-version": "8.11.0",
            "distribution-flavor": "default",
            "team-revision": "77",
        },
        "results": {
            "op_metrics": list(tasks or (task_of("range"), task_of("desc_sort_timestamp", 40))),
            "total_time": 1_000,
            "young_gc_time": 5,
        },
        "challenge": "big5rangedebug",
        "track-params": {"iterations": 300},
        **changes,
    }


def run_of_osb(number: int = 1, *tasks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What OpenSearch Benchmark writes to test_run.json."""
    return {
        "benchmark-version": "2.0.0",
        "benchmark-revision": None,
        "environment": "local",
        "test-run-id": f"1111-{number}",
        "test-run-timestamp": f"20260102T0{number}0000Z",
        "pipeline": "benchmark-only",
        "user-tags": {},
        "workload": "big5",
        "cluster-config-instance": ["external"],
        "cluster": {"revision": "e1", "distribution-version": "2.11.0", "distribution-flavor": "default"},
        "results": {"op_metrics": list(tasks or (task_of("range", 12), task_of("desc_sort_timestamp", 30)))},
        "test_procedure": "big5rangedebug",
        **changes,
    }


def write(path: Path, document: object) -> Path:
    """One file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
