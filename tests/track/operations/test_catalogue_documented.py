"""Each key that Rally and OpenSearch Benchmark document is read, told by name or refused, as listed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Track
from benchctl.track.operations import Cannot, Operation, Retried
from benchctl.track.operations.catalogue import OPERATION_TYPES
from foreign_tracks import write_files


class Line(NamedTuple):
    """A documented key of a part of a track, an operation type, or what several of these have."""

    owner: str
    key: str
    verdict: str
    value: Any


def read_lines() -> list[Line]:
    paths = sorted((Path(__file__).parent / "cases").glob("documented_*.txt"))
    texts = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    words = [text.split(" ", 3) for text in texts if text and not text.startswith("#")]
    return [Line(owner, key, verdict, json.loads(value)) for owner, key, verdict, value in words]


LINES = read_lines()
VALUES = {(line.owner, line.key): line.value for line in LINES}
TYPES = sorted({line.owner for line in LINES} & OPERATION_TYPES.keys())
COMMON = {"operation": Operation, "retried": Retried}

BESIDE = {
    "t.json": '{"settings": {"index.number_of_shards": 2}}',
    "u.json": '{"settings": {"index.number_of_shards": 3}}',
    "part1.txt": '"a": 1',
}
TEMPLATE = {"name": "t", "template": "t.json", "index-pattern": "t*"}
DOCUMENTS = {"source-file": "d.json", "document-count": 1}
TASK = {"name": "t", "operation": "refresh"}
SECTIONS = {
    "index": "indices",
    "data-stream": "data-streams",
    "template": "templates",
    "composable-template": "composable-templates",
    "component-template": "component-templates",
    "corpus": "corpora",
    "challenge": "challenges",
    "test-procedure": "test_procedures",
}
# What a part of a track has beside the key.
PARTS: dict[str, dict[str, Any]] = {
    "index": {"name": "i"},
    "data-stream": {"name": "s"},
    "template": TEMPLATE,
    "composable-template": TEMPLATE,
    "component-template": {"name": "t", "template": "t.json"},
    "corpus": {"name": "c", "documents": [DOCUMENTS]},
    "documents": DOCUMENTS,
    "challenge": {"name": "p", "schedule": [TASK]},
    "test-procedure": {"name": "p", "schedule": [TASK]},
    "task": TASK,
    "parallel": {"tasks": [TASK]},
    "paginated-search": {"body": {"sort": "a"}},
    "composite-agg": {"body": {"aggs": {"a": {"composite": {"sources": [1]}}}}},
    "create-index-template": {"template": "t"},
    "create-composable-template": {"template": "t"},
    "create-component-template": {"template": "t"},
}
# What else a key of an operation or a task needs to be legal.
NEEDED: dict[str, dict[str, Any]] = {
    "neighbors_data_set_path": {"data_set_path": "v.hdf5"},
    "neighbors_data_set_corpus": {"data_set_path": "v.hdf5"},
    "delete-matching-indices": {"index-pattern": "t*"},
    "ramp-up-time-period": {"warmup-time-period": 4, "time-period": 5},
    "warmup-time-period": {"time-period": 5},
    "schedule": {"target-throughput": 5},
}
SCHEDULES = {"schedule", "challenges", "challenge", "test_procedures", "test_procedure", "scenarios"}
# What stands before a step of a composite.
OPENED = [
    {"name": "pit", "operation-type": "open-point-in-time"},
    {"name": "sent", "operation-type": "submit-async-search", "body": {}},
]


def is_step(line: Line) -> bool:
    """Return whether an operation with that key can only be a part of a composite."""
    return "point-in-time" in line.key or "point-in-time" in line.owner or "async" in line.owner


def small_track(line: Line, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return a small track with one part or operation of these members."""
    owner = line.owner
    if owner in OPERATION_TYPES:
        operation = {"name": "o", "operation-type": owner, **members}
        if is_step(line):
            operation = {"name": "o", "operation-type": "composite", "requests": [*OPENED, operation]}
        templates = {section: [TEMPLATE] for name, section in SECTIONS.items() if name.endswith("template")}
        return {**templates, "operations": [operation], "schedule": [{"operation": operation["name"]}]}
    if owner == "root":
        return {"schedule": [TASK], **members} if not SCHEDULES & members.keys() else {**members}
    if owner in ("task", "parallel"):
        return {"schedule": [members if owner == "task" else {owner: members}]}
    if owner in ("challenge", "test-procedure"):
        # Of several, one may be the default.
        return {SECTIONS[owner]: [members, {"name": "r", "schedule": [TASK]}]}
    if owner == "documents":
        members = {"name": "c", owner: [members]}
    indexed = owner in ("corpus", "documents") and "target-data-stream" not in json.dumps(members)
    indices = {"indices": [{"name": "i"}]} if indexed else {}
    return {**indices, SECTIONS.get(owner, "corpora"): [members], "schedule": [TASK]}


def load(folder: Path, main: dict[str, Any] | str) -> Track | UsageError:
    text = main if isinstance(main, str) else json.dumps(main)
    try:
        track, _ = load_track(str(write_files(folder / "small", {**BESIDE, "track.json": text})), {})
    except UsageError as err:
        return err
    return track


def meaning(loaded: Track | UsageError) -> bytes:
    if isinstance(loaded, UsageError):
        return b""
    return msgspec.json.encode(msgspec.structs.replace(loaded, remarks=(), digest=""))


def check(folder: Path, line: Line) -> None:
    owner, key, verdict, value = line
    base, kind = dict(PARTS.get(owner, {})), OPERATION_TYPES.get(owner)
    if kind is not None:
        required = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
        base |= {name: VALUES[owner, name] for name in sorted(required - {"name"})}
    base |= NEEDED.get(key, {}) if kind is not None or owner in ("task", "parallel") else {}
    with_it = load(folder, small_track(line, {**base, key: value}))
    base.pop(key, None)
    without = load(folder, small_track(line, base))
    if verdict == "refused":
        assert isinstance(with_it, UsageError)
        assert (key in with_it.message, ": $." in with_it.message) == (True, True)
        return
    assert isinstance(with_it, Track), str(with_it)
    cannot = kind is not None and issubclass(kind, Cannot)
    named = any(f"'{key}'" in remark.message for remark in with_it.remarks)
    assert (with_it.faults, named or cannot) == ((), verdict == "n/a")
    if not cannot and key != "version":  # only one can be read
        assert (meaning(with_it) != meaning(without)) == (verdict == "read")


@pytest.mark.parametrize(
    "line",
    [line for line in LINES if line.owner not in {*COMMON, "function"}],
    ids=lambda line: f"{line.owner} {line.key}",
)
def test_a_key_is_read_told_by_name_or_refused(tmp_path: Path, line: Line):
    check(tmp_path, line)


@pytest.mark.parametrize("line", [line for line in LINES if line.owner in COMMON], ids=lambda line: line.key)
def test_every_type_has_the_keys_that_its_like_have(tmp_path: Path, line: Line):
    for owner in TYPES:
        kind, known = OPERATION_TYPES[owner], line._replace(owner=owner)
        has_it = issubclass(kind, COMMON[line.owner]) and (owner, line.key) not in VALUES
        # A type that cannot be done has its keys passed over with it; a step refuses what it does not know.
        if has_it and not issubclass(kind, Cannot) and (line.verdict == "read" or not is_step(known)):
            check(tmp_path, known)


@pytest.mark.parametrize(
    "line", [line for line in LINES if line.owner == "function"], ids=lambda line: line.key
)
def test_a_template_has_what_is_documented(tmp_path: Path, line: Line):
    helpers = "".join(
        f'{{% import "{name}.helpers" as {name} with context %}}' for name in ("rally", "benchmark")
    )
    main = f'{helpers}{{"meta": {{ {line.value} }}, "schedule": [{{"operation": "refresh"}}]}}'
    loaded = load(tmp_path, main)
    assert isinstance(loaded, Track), str(loaded)
    told = any(f"'{line.key}'" in remark.message for remark in loaded.remarks)
    assert (bool(loaded.meta["a"]), told) == (line.verdict == "read", line.verdict == "n/a")
