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
from benchctl.track.document import Document, convert, know, offset_of, read_document, repeated_keys
from benchctl.track.template import Renderer
from foreign_tracks import write_files


class Thing(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    how_many: int = 1


know(["misplaced-key"])


def read(folder: Path, *, lenient: bool = True, **files: str) -> tuple[Document, Any]:
    written = {name.replace("_", ".", 1): text for name, text in files.items()}
    path = write_files(folder, written) / "a.json"
    return read_document(Renderer(folder, {}, lenient=True).render(path), lenient=lenient)


def test_broken_json_shows_the_rendered_lines_and_their_files(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        read(
            tmp_path,
            a_json='[\n{{ r.collect(parts="b.json") }}\n]',
            b_json='{"n": {{ 40 + 2 }},\n {% if true %}"bad" 7{% endif %}\n}',
        )
    first = f"{tmp_path}/a.json is not JSON once its template is rendered"
    assert caught.value.message == "\n".join(
        [
            f"{first}: Expecting ':' delimiter, in {tmp_path}/b.json, line 2",
            "  a.json:1 | [",
            '  b.json:1 | {"n": 42,',
            '  b.json:2 |  "bad" 7',
            "           |        ^",
            "  b.json:3 | }",
            "  a.json:3 | ]",
        ]
    )


@pytest.mark.parametrize(("text", "closing"), [("[1, 2 , {2} ]", "]"), ('{{"a": 1,{2}}}', "}")])
def test_a_trailing_comma_is_named_with_its_line(tmp_path: Path, text: str, closing: str):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, a_json="[\n" + text.format(1, 2, "\n") + "\n]")
    assert f": a trailing comma before {closing}, in {tmp_path}/a.json, line 2\n" in caught.value.message


TWICE = '{\n"a": [{"size": 1}, {"size": 1,\n"from": {"size": 2},\n"size": 3}]}'


def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, lenient=False, a_json=TWICE)
    assert caught.value.message == f"{tmp_path}/a.json, line 4: $.a[1]: the key 'size' is duplicated"
    assert "only the last would count" in caught.value.hint


def test_a_key_that_stands_twice_is_noted_where_rallys_habits_hold(tmp_path: Path):
    document, value = read(tmp_path, a_json=TWICE)
    assert value == {"a": [{"size": 1}, {"size": 3, "from": {"size": 2}}]}
    assert [str(remark) for remark in document.remarks] == [
        f"{tmp_path}/a.json, line 4: $.a[1]: the key 'size' is duplicated, and the last one counts"
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
    assert [(where, name) for where, name, _ in found] == [("$[0]", key)]
    assert text[found[0][2] :] == f"{json.dumps(key)}: 1}}]"


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


def test_a_number_beyond_all_bounds_is_named_by_its_place(tmp_path: Path):
    with pytest.raises(UsageError, match=r"a.json, line 2: 1e999 is beyond all bounds"):
        read(tmp_path, a_json='{"n": [1,\n1e999]}')


@pytest.mark.parametrize(
    ("raw", "place", "words"),
    [
        ('{"nmae": "x"}', 3, ["$.things[1]: unknown key 'nmae'", "did you mean 'name'"]),
        ('{"name": 3}', 3, ["$.things[1].name", "Expected `str`"]),
        ('{"how-many": 2}', 3, ["$.things[1]", "'name' is missing"]),
        ('{"name": "x",\n"how-many": "y"}', 4, ["$.things[1].how-many"]),
        ('{"name": "x",\n"how": 1}', 4, ["unknown key 'how'", "known"]),
    ],
)
def test_a_complaint_names_file_line_and_path(tmp_path: Path, raw: str, place: int, words: list[str]):
    document, value = read(
        tmp_path, a_json='{"things": [\n{},\n{{ r.collect(parts="b.json") }}]}', b_json=raw
    )
    with pytest.raises(UsageError) as caught:
        convert(value["things"][1], Thing, document, "$.things[1]")
    assert f"b.json, line {place - 2}: " in caught.value.message
    for word in words:
        assert word in str(caught.value)


def test_comments_and_misplaced_keys_are_passed_over_where_rally_does(tmp_path: Path):
    raw = {"name": "x", "#TODO": 1, "misplaced-key": 2, "//": 3}
    document, _ = read(tmp_path, a_json='{"name": "x",\n"misplaced-key": 2}')
    assert convert(raw, Thing, document, "$") == Thing("x")
    assert [str(remark) for remark in document.remarks] == [
        f"{tmp_path}/a.json, line 2: $: 'misplaced-key' means nothing here and is passed over"
    ]
    with pytest.raises(UsageError, match="'misplaced-key'") as caught:
        convert(raw, Thing, Document("own.json"), "$")
    assert "another kind of object" in caught.value.hint


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
