import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import msgspec
import pytest

import benchctl.report.schema
from benchctl.report.formats import render
from benchctl.report.schema import SchemaName, schema, schema_file, schema_text
from benchctl.results.foreign.race import read_race
from benchctl.results.foreign.record import record_of
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SCHEMA_VERSION
from builders import ES, make_driver
from races import race, write

FOLDER = Path(benchctl.report.schema.__file__).parent / "schemas"


def checker(name: SchemaName) -> jsonschema.Draft202012Validator:
    found = schema(name)
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def unordered(found: Any) -> Any:
    """A schema with its alternatives in an order of ours: that of msgspec differs between versions."""
    if isinstance(found, dict):
        return {key: unordered(value) for key, value in found.items()}
    if isinstance(found, list):
        return sorted((unordered(one) for one in found), key=json.dumps)
    return found


@pytest.mark.parametrize("name", get_args(SchemaName))
def test_the_published_file_is_that_of_the_types(name: SchemaName):
    published = json.loads((FOLDER / schema_file(name)).read_text(encoding="utf-8"))
    current = json.loads(schema_text(name))
    assert unordered(published) == unordered(current), (
        f"benchctl schema {name} > {FOLDER / schema_file(name)}"
    )


def test_no_schema_is_published_under_another_name():
    assert {path.name for path in FOLDER.iterdir()} == {schema_file(name) for name in get_args(SchemaName)}


def printed(record: RunRecord) -> Any:
    return json.loads(render(analyse_run(record), "json", records=[record]))


def test_what_is_printed_keeps_to_it(build: Callable[..., RunRecord]):
    def drive(summary: Any, _variant: str, _block: int) -> Any:
        return msgspec.structs.replace(summary, driver=make_driver())

    validator = checker("analysis")
    for record in (build(), build(forks=0), build(forks=1), build(variants=("es",)), build(edit=drive)):
        validator.validate(printed(record))


def test_imported_results_keep_to_both(tmp_path: Path):
    record = record_of([read_race(write(tmp_path / "a.json", race()))], ES, "r")
    checker("analysis").validate(printed(record))
    checker("run").validate(json.loads(msgspec.json.encode(record)))


def test_records_keep_to_theirs(record: RunRecord):
    checker("run").validate(json.loads(msgspec.json.encode(record)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 1}, "2 was expected"),
        ({"rows": None}, "is not of type 'array'"),
        ({"extra": 1}, "Additional properties are not allowed"),
    ],
)
def test_anything_else_does_not(record: RunRecord, change: dict[str, Any], message: str):
    with pytest.raises(jsonschema.ValidationError, match=message):
        checker("analysis").validate({**printed(record), **change})


def test_fields_are_described_by_their_docstrings():
    found = schema("analysis")
    assert found["$id"] == f"urn:benchctl:analysis:{SCHEMA_VERSION}"
    comparison = found["$defs"]["Comparison"]
    assert "Attributes" not in comparison["description"]
    assert comparison["properties"]["effect_percent"]["description"] == "contender / baseline - 1."
    assert "95 % interval" in comparison["properties"]["high_percent"]["description"]
    # Of the base type, and of a type whose fields are renamed.
    assert found["$defs"]["Document"]["properties"]["rows"]["description"].startswith("by metric")
    engine = schema("run")["$defs"]["EngineFacts"]["properties"]
    assert engine["jvm-flags"]["description"] == "what the node's JVM was really started with."
