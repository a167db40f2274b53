import hashlib
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest

from benchctl.report.formats import render
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SCHEMA_VERSION
from builders import make_driver
from reference_pages import reference

# Of the form of each version.
DIGESTS: dict[str, str] = {
    "analysis": "933be2604689b36c",
    "run": "e888f7163a1dd2da",
    "message": "78b93a28d6f03ab9",
    "config": "b1d5ad76102482e0",
}


def checker(name: str) -> jsonschema.Draft202012Validator:
    found = reference().schema(name)
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def form(found: Any) -> Any:
    """A schema without its prose, its alternatives in order: msgspec's differs between versions.

    Names of keys are left out as well: it tells them from 0.23 on.
    """
    if isinstance(found, dict):
        return {
            key: {name: form(one) for name, one in value.items()} if key == "properties" else form(value)
            for key, value in found.items()
            if key not in {"description", "propertyNames"}
        }
    if isinstance(found, list):
        return sorted((form(one) for one in found), key=lambda one: json.dumps(one, sort_keys=True))
    return found


@pytest.mark.parametrize(("name", "digest"), DIGESTS.items())
def test_what_readers_rely_on_changes_on_purpose_only(name: str, digest: str):
    """New optional keys are fine: note the new digest. Anything else takes a new version, too."""
    text = json.dumps(form(reference().schema(name)), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


def test_every_schema_is_held_fast():
    assert set(DIGESTS) == set(reference().SCHEMAS)


def printed(record: RunRecord) -> Any:
    return json.loads(render(analyse_run(record), "json", records=[record]))


def test_what_is_printed_keeps_to_it(build: Callable[..., RunRecord]):
    def drive(summary: Any, _variant: str, _block: int) -> Any:
        return msgspec.structs.replace(summary, driver=make_driver())

    validator = checker("analysis")
    for record in (build(), build(forks=0), build(forks=1), build(variants=("es",)), build(edit=drive)):
        validator.validate(printed(record))


def test_records_keep_to_theirs(record: RunRecord):
    checker("run").validate(json.loads(msgspec.json.encode(record)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 1}, "9 was expected"),
        ({"rows": None}, "is not of type 'array'"),
        ({"extra": 1}, "Additional properties are not allowed"),
    ],
)
def test_anything_else_does_not(record: RunRecord, change: dict[str, Any], message: str):
    with pytest.raises(jsonschema.ValidationError, match=message):
        checker("analysis").validate({**printed(record), **change})


def test_fields_are_described_by_the_comments_beside_them():
    found = reference().schema("analysis")
    assert found["$id"] == f"urn:benchctl:analysis:{SCHEMA_VERSION}"
    comparison = found["$defs"]["Comparison"]
    assert comparison["properties"]["effect_percent"]["description"] == "contender / baseline - 1"
    # One comment above two fields, and of a base type.
    assert "95% interval" in comparison["properties"]["low_percent"]["description"]
    assert "95% interval" in comparison["properties"]["high_percent"]["description"]
    assert found["$defs"]["Document"]["properties"]["rows"]["description"].startswith("by metric")
