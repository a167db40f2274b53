"""Complaints about JSON name file, line and path; broken JSON is shown."""

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.track.template import Document, Renderer, convert, offset_of, read_document, repeated_keys
from foreign_tracks import write_files


class Thing(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    how_many: int = 1


def read(folder: Path, *, lenient: bool = True, **files: str) -> tuple[Document, Any]:
    written = {name.replace("_", ".", 1): text for name, text in files.items()}
    path = write_files(folder, written) / "a.json"
    return read_document(Renderer(folder, {}, lenient=True).render(path), lenient=lenient)


def test_broken_json_shows_the_rendered_line(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        read(
            tmp_path,
            a_json='[\n{{ r.collect(parts="b.json") }}\n]',
            b_json='{"n": {{ 40 + 2 }},\n {% if true %}"bad" 7{% endif %}\n}',
        )
    assert caught.value.message == (
        f"{tmp_path}/a.json is not JSON once its template is rendered: "
        "expected ':', in line 3, column 8: \"bad\" 7"
    )


TWICE = '{\n"a": [{"size": 1}, {"size": 1,\n"from": {"size": 2},\n"size": 3}]}'


def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, lenient=False, a_json=TWICE)
    place = f"{tmp_path}/a.json, line 2 of the rendered text: $.a[1]"
    assert caught.value.message == f"{place}: the key 'size' is duplicated"


def test_a_key_that_stands_twice_is_noted_where_rallys_habits_hold(tmp_path: Path):
    document, value = read(tmp_path, a_json=TWICE)
    assert value == {"a": [{"size": 1}, {"size": 3, "from": {"size": 2}}]}
    assert [str(remark) for remark in document.remarks] == [
        f"{tmp_path}/a.json: $.a[1]: the key 'size' is duplicated, and the last one counts"
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=3), JSON, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_every_key_that_is_written_again_is_found(value: dict[str, object], random: Random):
    key = random.choice(list(value))
    text = json.dumps([value])[:-2] + f", {json.dumps(key)}: 1}}]"
    found = list(repeated_keys(text))
    assert found == [("$[0]", key)]


def test_a_value_that_nobody_gave_is_the_likely_reason(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, a_json='{"size": {{ bulk_size }} }')
    assert "bulk_size" in caught.value.hint
    assert "--param" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "[" * 100_000, '{"a": NaN}', "[1e999]", '"\ud800"'.encode("utf-8", "replace").decode(), "{}{}"],
)
def test_other_broken_json_is_a_usage_error_as_well(tmp_path: Path, text: str):
    try:
        read(tmp_path, a_json=text)
    except UsageError as err:
        assert "a.json" in err.message  # noqa: PT017 - either outcome is right, a traceback is not


@pytest.mark.parametrize(
    ("raw", "place", "words"),
    [
        ('{"nam": "x"}', 3, ["$.things[1]: unknown key 'nam'", "did you mean 'name'"]),
        ('{"name": 3}', 3, ["$.things[1].name"]),
        ('{"how-many": 2}', 3, ["$.things[1]", "'name' is missing"]),
        ('{"name": "x",\n"how-many": "y"}', 4, ["$.things[1].how-many"]),
    ],
)
def test_a_complaint_names_file_line_and_path(tmp_path: Path, raw: str, place: int, words: list[str]):
    document, value = read(
        tmp_path, a_json='{"things": [\n{},\n{{ r.collect(parts="b.json") }}]}', b_json=raw
    )
    with pytest.raises(UsageError) as caught:
        convert(value["things"][1], Thing, document, "$.things[1]")
    assert f"a.json, line {place} of the rendered text: " in caught.value.message
    for word in words:
        assert word in str(caught.value)


def test_comments_and_misplaced_keys_are_passed_over_where_rally_does(tmp_path: Path):
    raw = {"name": "x", "#TODO": 1, "misplaced-key": 2, "//": 3}
    document, _ = read(tmp_path, a_json='{"name": "x",\n"misplaced-key": 2}')
    assert convert(raw, Thing, document, "$") == Thing("x")
    assert [str(remark) for remark in document.remarks] == [
        f"{tmp_path}/a.json: $: 'misplaced-key' has no meaning here and is ignored"
    ]
    with pytest.raises(UsageError, match="'misplaced-key'"):
        convert(raw, Thing, Document("own.json"), "$")


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abcd-_#é", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, st.sampled_from([None, 0, 3]))
def test_every_value_of_a_text_is_found_by_its_path(value: Any, indent: int | None):
    text = "\n " + json.dumps(value, indent=indent, ensure_ascii=False) + " "
    decoder = json.JSONDecoder()

    def check(inner: Any, where: str) -> None:
        assert decoder.raw_decode(text, offset_of(text, where))[0] == inner
        if isinstance(inner, dict):
            for key, member in inner.items():
                check(member, f"{where}.{key}")
                assert decoder.raw_decode(text, offset_of(text, where, key))[0] == key
        elif isinstance(inner, list):
            for place, member in enumerate(inner):
                check(member, f"{where}[{place}]")

    check(value, "$")
