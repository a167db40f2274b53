"""Templates get what Rally and OpenSearch Benchmark give them, and nothing of Python."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.track.template import Rendered, Renderer
from foreign_tracks import write_files
from golden import Cases

NOW_S = 1_700_000_000.0  # 2023-11-14


def render(folder: Path, text: str, *, lenient: bool = True, **params: Any) -> Rendered:
    path = write_files(folder, {"a.json": text}) / "a.json"
    return Renderer(folder, params, lenient=lenient, now_s=NOW_S).render(path)


def test_what_templates_are_given(cases: Cases, tmp_path: Path):
    cases("given", lambda text: render(tmp_path, text, given="<&'>").text, tmp_path)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('"codec", codec', {"a": 1}),
        ('"codec", codec, default_value=[2]', {"a": 1, "codec": [2]}),
        ('"level", level', {"a": 1, "level": "x"}),
        ('"level", level, default_value="y"', {"a": 1, "level": "x"}),
        ('"off", off, default_value=true', {"a": 1, "off": False}),
    ],
)
def test_a_parameter_is_set_where_it_exists(tmp_path: Path, call: str, expected: dict[str, Any]):
    text = f'{{% import "rally.helpers" as r with context %}}{{"a": 1 {{{{ r.exists_set_param({call}) }}}} }}'
    assert json.loads(render(tmp_path, text, level="x", off=False).text) == expected
    bare = text.replace('"a": 1', "").replace(") }}", ", comma=False) }}")
    assert json.loads(render(tmp_path, bare, level="x", off=False).text) == {
        key: value for key, value in expected.items() if key != "a"
    }


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ('between(1, 100, "%")', [1, 100, 5.0], [0, 101, 1.5, "5", True]),
        ("between(0.5, 9)", [0.5, 9, 2.25], [0.4, 9.1]),
        ('one_of("a", 2)', ["a", 2], ["A", "2"]),
    ],
)
def test_a_parameter_is_checked_by_its_name(tmp_path: Path, check: str, good: list[Any], bad: list[Any]):
    text = f"[1,\n {{{{ x | default({json.dumps(good[0])}) | {check} | tojson }}}}]"
    write_files(tmp_path, {"part.json": text})
    including = "{% include 'part.json' %}"
    for value in good:
        assert json.loads(render(tmp_path, including, x=value).text) == [1, value]
    for value in bad:
        for template, place in ((text, "a.json"), (including, "part.json")):
            with pytest.raises(UsageError, match=f"{place}, line 2.*: parameter x: {value!r} is "):
                render(tmp_path, template, x=value)


def test_a_value_that_does_not_exist_is_told_by_its_name(tmp_path: Path):
    for lenient in (True, False):
        with pytest.raises(UsageError, match="has no attribute 'manhattan'"):
            render(tmp_path, "{{ {'l2': 1}[space] | tojson }}", space="manhattan", lenient=lenient)


def test_variables_reach_the_parts_that_stand_in_their_scope(tmp_path: Path):
    write_files(tmp_path, {"part.json": "{{ inner | default('none') }}{{ top }}"})
    text = (
        "{% set top = 1 %}[{% with inner=5 %}{{ r.collect(parts='part.json') }}{% endwith %}"
        "{{ r.collect(parts='part.json') }}]"
    )
    assert render(tmp_path, text).text == "[51none1]"


def test_a_pattern_that_is_computed_collects_from_the_tracks_folder(tmp_path: Path):
    write_files(tmp_path, {"parts/1.json": "{{ n }}", "parts/2.json": "2"})
    text = (
        '{% set n = 1 %}{% import "rally.helpers" as r with context %}'
        '[{{ r.collect(parts="par" ~ "ts/*.json") }}]'
    )
    assert json.loads(render(tmp_path, text).text) == [1, 2]


def test_includes_are_found_from_the_tracks_folder(tmp_path: Path):
    write_files(tmp_path, {"deep/part.json": '{% include "body.json" %}', "body.json": "{{ size }}"})
    renderer = Renderer(tmp_path, {"size": 4})
    path = write_files(tmp_path, {"a.json": '{{ r.collect(parts="deep/*.json") }}'}) / "a.json"
    assert renderer.render(path).text == "4"
    assert renderer.known == {"size"}


def test_a_part_that_is_missing_only_matters_where_the_template_gets_there(tmp_path: Path):
    text = "{% if more %}{{ r.collect(parts='more-*.json') }}{% endif %}"
    assert render(tmp_path, text).text == ""
    with pytest.raises(UsageError, match=r"a.json, line 1.*collect\(parts='more-\*.json'\) finds no file"):
        render(tmp_path, text, more=True)


def test_a_failing_template_names_and_shows_the_line(cases: Cases, tmp_path: Path):
    write_files(tmp_path, {"inner.json": "1\n{% oops %}", "../out.json": "1"})

    def tell(part: str) -> Rendered:
        write_files(tmp_path, {"part.json": part})
        return render(tmp_path, '[\n{{ r.collect(parts="part.json") }}]')

    cases("template", tell, tmp_path)


def test_variables_without_a_value_that_were_printed_are_named(tmp_path: Path):
    rendered = render(tmp_path, "{{ one }}{{ two | default(1) }}{% if three %}{% endif %}")
    assert rendered.undefined == ("one",)


def test_challenge_files_of_ones_own_print_nothing_that_has_no_value(tmp_path: Path):
    with pytest.raises(UsageError, match=r"line 2, .*: 'one' is undefined") as caught:
        render(tmp_path, "\n{{ one }}", lenient=False)
    assert "--param" in caught.value.hint


def test_all_variables_are_known_parameters_but_those_the_file_sets(tmp_path: Path):
    path = (
        write_files(tmp_path, {"a.json": "{% set own = 1 %}{{ own }}{{ a }}{{ b | default(now) }}"})
        / "a.json"
    )
    renderer = Renderer(tmp_path, {"a": 1})
    renderer.render(path)
    assert renderer.known == {"a", "b"}


def test_templates_change_no_parameter_for_others(tmp_path: Path):
    text = "{% set _ = given.update({'seen': given | length}) %}{{ given | tojson }} plain"
    given = {"a": 1}
    rendered = render(tmp_path, text, given=given)
    assert rendered.text == '{"a": 1, "seen": 1} plain'
    assert given == {"a": 1}


def test_reserved_names_are_no_parameters(tmp_path: Path):
    with pytest.raises(UsageError, match="--param now"):
        Renderer(tmp_path, {"now": 1})
