"""What JVMs did at the call sites of an experiment, from logs made by hand."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from benchctl.experiment.conduct import seen_calls
from benchctl.experiment.record import ExperimentSpec
from benchctl.results.model import BootRecord, RunRecord
from benchctl.results.plan import EvidenceSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_record
from jvm_logs import (
    INLINED_VISIT,
    INTS,
    RANGE_VISITOR,
    SORT_VISITOR,
    VIRTUAL_VISIT,
    head,
    in_file,
    visits,
)
from made_experiment import call_site, made_plan, made_record

BOOT = BootRecord((0,), 5.0, 0.1, 1.0, 10, 10, ("java",), "")
INDENT = " " * 30
MAJOR_VISIT = (
    f"{INDENT}@ 35   {SORT_VISITOR}::visit (21 bytes)   inline (hot)",
    f"{INDENT} \\-> TypeProfile (950/1000 counts) = {SORT_VISITOR.replace('.', '/')}",
)
REFUSED_VISIT = (f"{INDENT}@ 35   {SORT_VISITOR}::visit (21 bytes)   too big",)


def spec(**changes: Any) -> ExperimentSpec:
    site = call_site("visit", "jit", variants=("es",), **changes)
    record = made_record([], measurements=("jit",))
    return msgspec.structs.replace(record.spec, call_sites=(site,))


def made(
    root: Path,
    *logs: bytes | None,
    evidence: EvidenceSpec | None = None,
    boots: tuple[BootRecord, ...] = (BOOT,),
    name: str = "jvm.log",
) -> tuple[dict[str, RunRecord], RunStore]:
    """A run with a fork a log, of its last node start; None for one that left none."""
    folder = RunFolder(root / "20260101-000000-jit")
    for block, data in enumerate(logs):
        if data is not None:
            path = folder.evidence_folder("es", block, len(boots) - 1) / name
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
    forks = tuple(make_fork("es", block, boots=boots) for block in range(len(logs)))
    plan = made_plan(forks=len(logs), evidence=evidence or EvidenceSpec(("inlining",)))
    record = make_record(folder.path.name, status="complete", plan=plan, forks=forks)
    folder.save(record)
    return {"jit": record}, RunStore(root)


def found(root: Path, *logs: bytes | None, **changes: Any) -> list[str | None]:
    return [one.found for one in seen_calls(spec(), *made(root, *logs, **changes))]


@pytest.mark.parametrize(
    ("lines", "fate"),
    [
        (INLINED_VISIT, "inlined"),
        (VIRTUAL_VISIT, "virtual"),
        (MAJOR_VISIT, "partly"),
        ((*MAJOR_VISIT, *VIRTUAL_VISIT), "partly"),
        ((INLINED_VISIT[0], *VIRTUAL_VISIT), "partly"),
        ((INLINED_VISIT[0],), "inlined"),
        (REFUSED_VISIT, "refused"),
        ((), "absent"),
    ],
)
def test_every_fate_is_told_apart(tmp_path: Path, lines: tuple[str, ...], fate: str):
    assert found(tmp_path, visits(*lines)) == [fate]


def test_a_call_keeps_its_receivers_and_hotspots_words(tmp_path: Path):
    (one,) = seen_calls(spec(), *made(tmp_path, visits(*INLINED_VISIT)))
    assert (one.site, one.variant, one.block, one.calls, one.given_up) == ("visit", "es", 0, 1000, False)
    assert one.receivers == {RANGE_VISITOR: 600, SORT_VISITOR: 400}
    assert "PointRangeQuery$1$1::visit inline (hot)" in one.words


def test_calls_of_other_methods_and_callers_are_others(tmp_path: Path):
    elsewhere = in_file(head(5000, 77, 4, INTS.replace("readInts24", "readInts32"), 198), *VIRTUAL_VISIT)
    other = visits(*(line.replace("::visit", "::grow") for line in VIRTUAL_VISIT))
    inside = (
        f"{INDENT}@ 60   org.apache.lucene.Other::run (9 bytes)   inline (hot)",
        f"{INDENT}  @ 1   org.apache.lucene.Another::visit (9 bytes)   accessor",
    )
    assert found(tmp_path, elsewhere, other, visits(*VIRTUAL_VISIT, *inside)) == [
        "absent",
        "absent",
        "virtual",
    ]


def test_logs_that_are_missing_or_damaged_are_told(tmp_path: Path):
    packed = zstandard.ZstdCompressor().compress(visits(*VIRTUAL_VISIT))
    runs, store = made(tmp_path, packed, b"no log", packed[:-5], None, name="jvm.log.zst")
    whole, damaged, cut_off, missing = seen_calls(spec(), runs, store)
    assert (whole.found, damaged.found, cut_off.found, missing.found) == ("virtual", None, None, None)
    assert damaged.words.startswith("cannot read ")
    assert cut_off.words.endswith("it is cut off")
    assert missing.words == "it does not exist"


def test_forks_that_were_to_keep_no_log_are_not_asked_for_one(tmp_path: Path):
    extra = EvidenceSpec(("inlining",), extra_forks=1)
    runs, store = made(tmp_path, None, None, visits(*VIRTUAL_VISIT), evidence=extra)
    run = msgspec.structs.replace(runs["jit"], plan=msgspec.structs.replace(runs["jit"].plan, forks=2))
    assert [(one.block, one.found) for one in seen_calls(spec(), {"jit": run}, store)] == [(2, "virtual")]


def test_the_node_start_that_the_task_ran_on_is_looked_at(tmp_path: Path):
    logs = {0: visits(*VIRTUAL_VISIT), 1: visits(*INLINED_VISIT)}
    runs, store = made(tmp_path, None, boots=(BOOT, BOOT))
    for boot, data in logs.items():
        path = store.find("latest").evidence_folder("es", 0, boot) / "jvm.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    tasks = tuple(Task(name, iterations=5) for name in ("range", "term"))
    plan = made_plan(Challenge("both", tasks), evidence=EvidenceSpec(("inlining",)), restart="task", forks=1)
    run = msgspec.structs.replace(runs["jit"], plan=plan)
    seen = [seen_calls(spec(task=task), {"jit": run}, store)[0].found for task in ("range", "term")]
    assert seen == ["virtual", "inlined"]
