"""The dashboard's structure: neither product can be run here, so this is what is known of it.

Objects are those of Kibana 7.10, every reference is to an object of the file, and every field that a chart
asks for is one that exported records have, with the type that the aggregation takes.
"""

import json
from typing import Any

import pytest

from benchctl.report.dashboards import dashboard_objects
from benchctl.results.shapes import SHAPES, Layout, ShapeName, races_of
from builders import make_fork, make_record, make_summary

NUMBERS = {"median", "std_dev"}


@pytest.fixture(params=SHAPES)
def name(request: pytest.FixtureRequest) -> ShapeName:
    found: ShapeName = request.param
    return found


@pytest.fixture
def objects(name: ShapeName) -> dict[str, dict[str, Any]]:
    lines = dashboard_objects(name).splitlines()
    found = {one["id"]: one for one in map(json.loads, lines)}
    assert len(found) == len(lines)
    return found


def fields(name: ShapeName) -> dict[str, set[str]]:
    """Metric -> paths of the values that its records have."""
    fork = make_fork("es", 0, make_summary("range", 4.0), started="2026-01-01T00:00:00+00:00")
    (race,) = races_of(make_record("r", forks=(fork,)), fork, Layout(name))
    return {
        str(record["name"]): {f"value.{key}" for key, value in record["value"].items() if value is not None}
        | record.keys()
        for _, record in race.results()
    }


def test_every_reference_is_to_an_object_of_the_file(objects: dict[str, dict[str, Any]]):
    for one in objects.values():
        for reference in one["references"]:
            assert objects[reference["id"]]["type"] == reference["type"]
        assert len({reference["name"] for reference in one["references"]}) == len(one["references"])


def test_there_is_one_dashboard_with_every_visualization(objects: dict[str, dict[str, Any]]):
    (dashboard,) = (one for one in objects.values() if one["type"] == "dashboard")
    panels = json.loads(dashboard["attributes"]["panelsJSON"])
    referred = {one["name"]: one["id"] for one in dashboard["references"]}
    assert {referred[panel["panelRefName"]] for panel in panels} == {
        name for name, one in objects.items() if one["type"] == "visualization"
    }
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        grid = panel["gridData"]
        covered = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & covered
        assert max(x for x, _ in covered) < 48
        cells |= covered


def test_a_pattern_covers_the_months_and_the_stream(name: ShapeName, objects: dict[str, dict[str, Any]]):
    (pattern,) = (one["attributes"] for one in objects.values() if one["type"] == "index-pattern")
    assert Layout(name).index("results", "2026-01").startswith(pattern["title"].removesuffix("*"))
    assert pattern["timeFieldName"] == SHAPES[name].timestamp


def test_charts_ask_for_what_records_have(name: ShapeName, objects: dict[str, dict[str, Any]]):
    known = fields(name)
    charts = 0
    for one in objects.values():
        if one["type"] != "visualization":
            continue
        state = json.loads(one["attributes"]["visState"])
        source = json.loads(one["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
        if not state["aggs"]:
            continue
        charts += 1
        assert source["indexRefName"] in {reference["name"] for reference in one["references"]}
        metric = source["query"]["query"].split()[1]
        for aggregation in state["aggs"]:
            field = aggregation["params"]["field"]
            assert field in known[metric], (one["id"], field)
            assert (aggregation["type"] in NUMBERS) == field.startswith("value.")
        assert len({aggregation["id"] for aggregation in state["aggs"]}) == len(state["aggs"])
        assert state["aggs"][0]["schema"] == "metric"
    assert charts == 7


def test_lists_to_choose_from_are_fields_of_results(name: ShapeName, objects: dict[str, dict[str, Any]]):
    (choice,) = (one for key, one in objects.items() if key.endswith("-choice"))
    controls = json.loads(choice["attributes"]["visState"])["params"]["controls"]
    assert {one["fieldName"] for one in controls} <= fields(name)["service_time"]
    assert {one["indexPatternRefName"] for one in controls} == {one["name"] for one in choice["references"]}


def test_nothing_asks_for_a_form_that_came_later(objects: dict[str, dict[str, Any]]):
    versions = {version for one in objects.values() for version in one["migrationVersion"].values()}
    assert max(tuple(map(int, version.split("."))) for version in versions) == (7, 10, 0)
