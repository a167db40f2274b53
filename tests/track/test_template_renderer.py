"""Templates get what Rally and OpenSearch Benchmark give them, and nothing of Python."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.track.template import Rendered, Renderer
from benchctl.track.template_source import Origin
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
    with pytest.raises(UsageError, match=r"a.json, line 1: collect\(parts='more-\*.json'\) finds no file"):
        render(tmp_path, text, more=True)


def test_a_failing_template_names_the_line_of_the_part(cases: Cases, tmp_path: Path):
    write_files(tmp_path, {"inner.json": "1\n{% oops %}", "../out.json": "1"})

    def tell(part: str) -> Rendered:
        write_files(tmp_path, {"part.json": part})
        return render(tmp_path, '[\n{{ r.collect(parts="part.json") }}]')

    cases("template", tell, tmp_path)


def test_variables_without_a_value_are_named_where_they_were_printed(tmp_path: Path):
    rendered = render(tmp_path, "{{ one }}{{ two | default(1) }}{% if three %}{% endif %}")
    assert rendered.undefined == {"one": Origin(tmp_path / "a.json", 1)}


def test_challenge_files_of_ones_own_print_nothing_that_has_no_value(tmp_path: Path):
    with pytest.raises(UsageError, match="line 2: 'one' is undefined") as caught:
        render(tmp_path, "\n{{ one }}", lenient=False)
    assert "--param" in caught.value.hint


def test_a_name_with_a_hyphen_is_told_apart_from_one_without_a_value(tmp_path: Path):
    with pytest.raises(UsageError, match="line 1: 'page' is undefined") as caught:
        render(tmp_path, "{{ page-size | default(10) }}")
    assert "'page-size'" in caught.value.hint


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
    assert rendered.origin(len(rendered.text) - 1) is not None
    assert given == {"a": 1}


def test_reserved_names_are_no_parameters(tmp_path: Path):
    with pytest.raises(UsageError, match="--param now"):
        Renderer(tmp_path, {"now": 1})


def test_text_that_a_template_compares_does_not_hide_where_the_rest_came_from(tmp_path: Path):
    text = '{% set kept %}a{% endset %}\n{% if kept == "a" %}\nhere{% endif %}'
    rendered = render(tmp_path, text)
    assert str(rendered.origin(rendered.text.index("here"))).endswith("a.json, line 3")


def test_a_template_that_comes_out_otherwise_each_time_has_no_known_lines(tmp_path: Path):
    rendered = render(tmp_path, "{{ range(90000) | random }}{{ range(90000) | random }} here")
    assert rendered.origin(len(rendered.text) - 1) is None


lines = st.lists(
    st.sampled_from(
        [
            "plain text",
            "{{ 1 + 1 }} and",
            "{% for i in range(2) %}again",
            "{% endfor %}",
            "  {%- if true -%}",
            "yes",
            "{% endif %}",
            "{# a comment #}",
            "{% set kept %}",
            "kept {{ 3 }}",
            "{% endset %}",
            "{{ kept }}",
            "{% macro m() %}",
            "inside",
            "{% endmacro %}",
            "{{ m() }}",
            "{% raw %}{{ raw }}{% endraw %}",
            "",
        ]
    ),
    max_size=12,
)


@given(lines)
def test_lines_of_plain_text_are_found_again(tmp_path_factory: pytest.TempPathFactory, rows: list[str]):
    """Whatever tags stand around them: the word with its number lies on the line of that number."""
    folder = tmp_path_factory.mktemp("marks")
    numbered = [f"{row} w{number}w" if row == "plain text" else row for number, row in enumerate(rows, 1)]
    try:
        rendered = render(folder, "\n".join(numbered))
    except UsageError:
        return  # tags that do not fit together
    for number in range(1, len(rows) + 1):
        offset = rendered.text.find(f"w{number}w")
        inside = "{% set kept %}" in rows or "{% macro m() %}" in rows
        if offset >= 0 and not inside:
            origin = rendered.origin(offset)
            assert origin is not None
            assert origin.line == number
