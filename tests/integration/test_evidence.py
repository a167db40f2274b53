"""Evidence on real nodes: collected in forks of its own, kept, counted, and in no comparison."""

import json

import pytest

from benchctl.results.evidence import (
    GC_DTYPES,
    GC_FILE,
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    OS_FILE,
    fork_evidence,
)
from benchctl.results.store import RunStore
from benchctl.results.windows import task_windows
from integration.calls import Benchctl

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(600)]

SMALL = ("--challenge", "range-only-short", "--docs", "20k", "--heap", "512m", "--param", "iterations=30")


def test_a_fork_more_of_both_engines_carries_evidence(benchctl: Benchctl, store: RunStore):
    done = benchctl("run", *SMALL, "--forks", "2", "--evidence", "jit,gc,os", "--wait")
    assert done.returncode == 0, done.stderr
    assert "geometric means over forks (es 2, os 2)" in done.stdout
    assert "What evidence (gc, jit, os) cost" in done.stdout
    folder = store.find("latest")
    record = folder.load()
    assert [sorted({fork.block for fork in record.forks if fork.evidence})] == [[2]]
    for variant in ("es", "os"):
        assert [fork.block for fork in record.compared(variant)] == [0, 1]
        fork = record.done(variant)[2]
        (window,) = task_windows(folder, fork).values()
        jit = fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES)
        assert jit is not None
        assert not (jit["what"] == "unread").any()
        assert ((jit["what"] == "compiled") & (jit["level"] == 4)).sum() > 100
        assert (jit["what"] == "deoptimised").any()
        # The engine compiles before its first request, during the task, and does not outlive its stop.
        started_ns = fork.boots[0].origin_ns
        assert started_ns is not None
        assert started_ns < jit["t_ns"][0] < window.begin_ns < jit["t_ns"][-1]
        assert jit["t_ns"][-1] < window.end_ns + 20e9
        assert ((jit["t_ns"] > window.begin_ns) & (jit["t_ns"] < window.end_ns)).any()
        gc = fork_evidence(folder, fork, GC_FILE, GC_DTYPES)
        assert gc is not None
        assert {"pause", "safepoint"} == set(gc["what"])
        readings = fork_evidence(folder, fork, OS_FILE, OS_DTYPES)
        assert readings is not None
        assert readings["t_ns"][0] < window.begin_ns < window.end_ns < readings["t_ns"][-1]
        assert readings["user_s"][-1] > readings["user_s"][0] > 0
        plain = record.done(variant)[0]
        assert not any("jit+compilation" in word for word in plain.boots[0].command)

    shown = benchctl("evidence", record.id)
    assert shown.returncode == 0, shown.stderr
    assert all(f"{kind}: " in shown.stdout for kind in ("jit", "gc", "os"))
    (task,) = json.loads(benchctl("evidence", record.id, "--format", "json").stdout)["tasks"]
    for variant in ("es", "os"):
        (jit_counts,), (os_counts,) = task["jit"][variant], task["os"][variant]
        assert jit_counts["c1"]["count"] > 0
        assert 0 < os_counts["user_s"] < 4 * os_counts["seconds"]
