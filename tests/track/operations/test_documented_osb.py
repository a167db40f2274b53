"""Each key that OpenSearch Benchmark documents for workloads is read, told by name or refused, as listed."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Track
from benchctl.track.operations import Cannot, Operation, Retried
from benchctl.track.operations.catalogue import OPERATION_TYPES
from foreign_tracks import write_files

TEXT = (Path(__file__).parent / "cases" / "documented_osb.txt").read_text(encoding="utf-8")
LINES = [line.split(" ", 3) for line in TEXT.splitlines() if line and not line.startswith("#")]
VALUES = {(owner, key): json.loads(value) for owner, key, _, value in LINES}

BESIDE = {
    "t.json": '{"settings": {"index.number_of_shards": 2}}',
    "u.json": '{"settings": {"index.number_of_shards": 3}}',
    "part1.txt": '"a": 1',
}
TEMPLATE = {"name": "t", "template": "t.json", "index-pattern": "t*"}
DOCUMENTS = {"source-file": "d.json", "document-count": 1}
TASK = {"name": "t", "operation": "refresh"}
# What a part of a workload has beside the key.
PARTS: dict[str, dict[str, Any]] = {
    "index": {"name": "i"},
    "data-stream": {"name": "s"},
    "template": TEMPLATE,
    "composable-template": TEMPLATE,
    "component-template": {"name": "t", "template": "t.json"},
    "corpus": {"name": "c", "documents": [DOCUMENTS]},
    "documents": DOCUMENTS,
    "test-procedure": {"name": "p", "schedule": [TASK]},
    "task": TASK,
    "parallel": {"tasks": [TASK]},
    "paginated-search": {"body": {"sort": "a"}},
    "create-index-template": {"template": "t"},
    "create-composable-template": {"template": "t"},
    "create-component-template": {"template": "t"},
}
# What else a key needs to be legal.
NEEDED: dict[str, dict[str, Any]] = {
    "neighbors_data_set_path": {"data_set_path": "v.hdf5"},
    "neighbors_data_set_corpus": {"data_set_path": "v.hdf5"},
    "delete-matching-indices": {"index-pattern": "t*"},
    "ramp-up-time-period": {"warmup-time-period": 4, "time-period": 5},
    "warmup-time-period": {"time-period": 5},
    "schedule": {"target-throughput": 5},
}
GROUPS = {"operation": Operation, "retried": Retried}
SCHEDULES = {"schedule", "test_procedures", "test_procedure", "scenarios"}
# What stands before a step of a composite.
OPENED = [
    {"name": "pit", "operation-type": "create-point-in-time"},
    {"name": "sent", "operation-type": "submit-async-search", "body": {}},
]


def workload(owner: str, members: dict[str, Any], *, step: bool) -> dict[str, Any]:
    """A small workload with one part or operation of these members."""
    if owner in OPERATION_TYPES:
        operation = {"name": "o", "operation-type": owner, **members}
        if step:
            requests = [*OPENED, operation]
            operation = {"name": "o", "operation-type": "composite", "requests": requests}
        declared = {kind: [TEMPLATE] for kind in ("templates", "composable-templates", "component-templates")}
        return {**declared, "operations": [operation], "schedule": [{"operation": operation["name"]}]}
    if owner == "root":
        return members if SCHEDULES & members.keys() else {**members, "schedule": [TASK]}
    if owner == "test-procedure":
        return {"test_procedures": [members, {"name": "r", "schedule": [TASK]}]}
    if owner in ("task", "parallel"):
        return {"schedule": [members if owner == "task" else {owner: members}]}
    if owner == "documents":
        owner, members = "corpus", {"name": "c", owner: [members]}
    if owner == "corpus" and "target-data-stream" not in json.dumps(members):
        return {"indices": [{"name": "i"}], "corpora": [members], "schedule": [TASK]}
    section = {"index": "indices", "corpus": "corpora"}.get(owner, f"{owner}s")
    return {section: [members], "schedule": [TASK]}


def load(folder: Path, main: dict[str, Any] | str) -> Track | UsageError:
    text = main if isinstance(main, str) else json.dumps(main)
    try:
        track, _ = load_track(str(write_files(folder / "small", {**BESIDE, "workload.json": text})), {})
    except UsageError as err:
        return err
    return track


def meaning(loaded: Track | UsageError) -> bytes:
    if isinstance(loaded, UsageError):
        return b""
    return msgspec.json.encode(msgspec.structs.replace(loaded, remarks=(), digest=""))


def is_step(owner: str, key: str) -> bool:
    """Return whether an operation with that key can only be a part of a composite."""
    return "point-in-time" in key or "point-in-time" in owner or "async" in owner


def check(folder: Path, owner: str, key: str, verdict: str, value: Any) -> None:
    base, kind = dict(PARTS.get(owner, {})), OPERATION_TYPES.get(owner)
    if kind is not None:
        fields = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
        base |= {name: VALUES[owner, name] for name in sorted(fields - {"name"})}
    base |= NEEDED.get(key, {}) if owner != "test-procedure" else {}
    step = is_step(owner, key)
    with_it = load(folder, workload(owner, {**base, key: value}, step=step))
    base.pop(key, None)
    without = load(folder, workload(owner, base, step=step))
    if verdict == "refused":
        assert isinstance(with_it, UsageError)
        assert (key in with_it.message, ": $." in with_it.message) == (True, True)
        return
    assert isinstance(with_it, Track), str(with_it)
    cannot = kind is not None and issubclass(kind, Cannot)
    told = any(f"'{key}'" in remark.message for remark in with_it.remarks)
    told |= cannot and owner in getattr(kind, "reason", "")
    assert (with_it.faults, told) == ((), verdict == "n/a")
    if not cannot and key != "version":  # only one can be read
        assert (meaning(with_it) != meaning(without)) == (verdict == "read")


@pytest.mark.parametrize(
    ("owner", "key", "verdict"),
    [line[:3] for line in LINES if line[0] not in ("function", *GROUPS)],
    ids=lambda word: word,
)
def test_a_key_is_read_or_told_by_name(tmp_path: Path, owner: str, key: str, verdict: str):
    check(tmp_path, owner, key, verdict, VALUES[owner, key])


@pytest.mark.parametrize(("group", "key", "verdict"), [line[:3] for line in LINES if line[0] in GROUPS])
def test_every_type_has_the_keys_of_its_group(tmp_path: Path, group: str, key: str, verdict: str):
    own = {owner for owner, _ in VALUES} & {
        name for name, kind in OPERATION_TYPES.items() if issubclass(kind, GROUPS[group])
    }
    for owner in sorted(own):
        # Keys of the first are passed over with them; a step has other defaults, and refuses unknown keys.
        if not (issubclass(OPERATION_TYPES[owner], Cannot) or is_step(owner, key)):
            check(tmp_path, owner, key, verdict, VALUES[group, key])


@pytest.mark.parametrize(("name", "verdict"), [line[1:3] for line in LINES if line[0] == "function"])
def test_a_function_gives_something(tmp_path: Path, name: str, verdict: str):
    imported = '{% import "benchmark.helpers" as benchmark with context %}'
    main = f'{{"meta": {{ {VALUES["function", name]} }}, "schedule": [{{"operation": "refresh"}}]}}'
    loaded = load(tmp_path, imported + main)
    assert isinstance(loaded, Track), str(loaded)
    told = any(f"'{name}'" in remark.message for remark in loaded.remarks)
    assert (bool(loaded.meta["a"]), told) == (verdict == "read", verdict == "n/a")
