"""Changing values of requests: placeholders, grids of values, and what is refused."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.track.values import (
    Date,
    Grid,
    Integer,
    Number,
    Placeholder,
    ValueSource,
    check_values,
    placeholders,
    split_text,
)
from golden import Cases

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
PLACEHOLDERS = st.builds(Placeholder, NAMES, st.sampled_from(["", "from", "to"]))


def test_a_text_is_cut_at_its_placeholders(cases: Cases):
    cases("pieces", split_text)


@pytest.mark.parametrize(
    "text", ["${", "x ${ day }", "${day", "${day.middle}", "${1st}", "${}", "${tag.from.to}"]
)
def test_what_begins_like_a_placeholder_and_is_none_is_refused(text: str):
    with pytest.raises(ValueError, match=r"begins no placeholder: write \$\{name\}, or \$\$\{"):
        split_text(text)


@given(st.text())
def test_escaping_every_mark_gives_any_text_back(text: str):
    # A dollar before the mark would become part of the escape; it reads back all the same.
    assert "".join(map(str, split_text(text.replace("${", "$${")))) == text


@given(st.lists(PLACEHOLDERS, max_size=5), st.lists(st.text("ab{}.$ é", max_size=4), min_size=6, max_size=6))
def test_placeholders_are_found_between_any_texts(found: list[Placeholder], texts: list[str]):
    plain = [text.replace("$", "") for text in texts]
    text = plain[0] + "".join(f"{mark}{after}" for mark, after in zip(found, plain[1:], strict=False))
    assert [piece for piece in split_text(text) if isinstance(piece, Placeholder)] == found


def test_all_strings_of_a_json_value_are_read_and_keys_are_not():
    body = {"${key}": [1, None, {"a": "${one}"}, ("x${two.to}",)], "b": "$${three}"}
    assert list(placeholders(body)) == [Placeholder("one"), Placeholder("two", "to")]


DAY_US = 86_400_000_000


@given(st.integers(0, 12), st.data())
def test_the_possible_values_of_a_grid_are_counted_exactly(steps: int, data: st.DataObject):
    narrowest = data.draw(st.integers(0, steps))
    widest = data.draw(st.integers(narrowest, steps))
    ranges = [(at, at + width) for width in range(narrowest, widest + 1) for at in range(steps - width + 1)]
    assert Grid(0, 1, steps, narrowest, widest).possible == len(ranges)


def test_numbers_count_in_their_last_decimal():
    assert Number(min=-0.5, max=1.25, decimals=2).grid == Grid(-50, 1, 175)
    ranges = Number(min=0, max=10, decimals=1, min_width=0.3, max_width=2.0)
    assert ranges.grid == Grid(0, 1, 100, 3, 20)
    assert Integer(min=1, max=9, max_width=8).grid == Grid(1, 1, 8, 0, 8)


def test_dates_count_in_microseconds_from_their_first_on():
    days = Date(min="2023-01-01", max="2023-01-02T12:00:00", step=86_400, format="%Y.%m.%d")
    assert days.grid == Grid(19_358 * DAY_US, DAY_US, 1)


def test_dates_are_utc_unless_they_say_otherwise():
    plain = Date(min="2023-01-01T00:00:00", max="2023-01-02", format="epoch_second")
    zoned = Date(min="2023-01-01T02:00:00+02:00", max="2023-01-02T00:00:00Z", format="epoch_second")
    assert plain.grid == zoned.grid


def test_widths_are_rounded_to_the_grid_inwards():
    minutes = Date(min="2023-01-01", max="2023-01-02", step=60, min_width=61, max_width=200.5)
    assert minutes.grid[-2:] == (2, 3)


DAY = Date(min="2023-01-01", max="2023-01-08")


SPAN = Integer(min=1, max=9, min_width=0, max_width=3)


def test_sources_are_read_from_json_and_used(cases: Cases):
    def read(written: str) -> ValueSource:
        found = msgspec.json.decode(written, type=ValueSource)
        assert check_values({"x": found}, [f"${{x{'.' if end else ''}{end}}}" for end in found.ends]) == ""
        return found

    cases("sources", read)


def test_a_source_that_cannot_work_is_refused_with_its_reason(cases: Cases):
    cases("wrong_sources", lambda written: msgspec.json.decode(written, type=ValueSource))


def test_placeholders_and_values_have_to_match(cases: Cases):
    cases("placeholders", lambda texts: check_values({"day": DAY, "span": SPAN}, json.loads(texts)))


def test_an_operation_without_values_has_no_placeholders():
    assert check_values({}, {"a": ["b", 1, None, "5 $"]}) == ""
    assert check_values({}, "${day}") == (
        "'${day}' is not a known value (the operation has no values); $${ writes the characters themselves"
    )


@pytest.mark.parametrize("name", ["", "day.from", "1st", "a b", "tag}"])
def test_a_name_that_no_placeholder_can_hold_is_refused(name: str):
    assert (
        check_values({name: DAY}, "x")
        == f"values: '{name}' is not a name: write letters, digits, '_' and '-'"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_body_is_accepted_or_told_in_one_line_what_is_wrong(body: Any):
    found = check_values({}, body)
    assert ("${" in json.dumps(list(_strings(body)), ensure_ascii=False)) or found == ""
    assert not found.endswith(".")


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _strings(part)]
