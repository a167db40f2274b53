"""Sources of values: how tracks write them, and what is wrong with those that cannot work."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.track.values import (
    Choice,
    Date,
    DateRange,
    Integer,
    IntegerRange,
    Number,
    NumberRange,
    Pool,
    ValueSource,
    check_values,
)

DAY = Date(min="2023-01-01", max="2023-01-08")


def source(**keys: Any) -> ValueSource:
    return msgspec.convert({key.replace("_", "-"): value for key, value in keys.items()}, ValueSource)


def numbers(**keys: Any) -> ValueSource:
    return source(kind="integer", **{"min": 1, "max": 9} | keys)


def span(**keys: Any) -> ValueSource:
    return source(kind="integer-range", **{"min": 1, "max": 9, "min_width": 0, "max_width": 3} | keys)


def dates(**keys: Any) -> ValueSource:
    return source(kind="date", **{"min": "2023-01-01", "max": "2023-01-08"} | keys)


def window(**keys: Any) -> ValueSource:
    whole = {"min": "2023-01-01", "max": "2023-01-08", "min_width": 60, "max_width": 3600}
    return source(kind="date-range", **whole | keys)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"kind": "list", "items": ["a", 1, null]}', Choice(items=("a", 1, None))),
        (
            '{"kind": "list", "items": [1], "pick": "zipf", "alpha": 1.2}',
            Choice(items=(1,), pick="zipf", alpha=1.2),
        ),
        (
            '{"kind": "integer", "min": -5, "max": 5, "pool": {"size": 3, "share": 0.3}}',
            Integer(min=-5, max=5, pool=Pool(size=3, share=0.3)),
        ),
        ('{"kind": "number", "min": 0, "max": 1.5, "decimals": 2}', Number(min=0, max=1.5, decimals=2)),
        ('{"kind": "date", "min": "2023-01-01", "max": "2023-01-08"}', DAY),
        (
            '{"kind": "integer-range", "min": 1, "max": 9, "min-width": 2, "max-width": 3}',
            IntegerRange(min=1, max=9, min_width=2, max_width=3),
        ),
        (
            '{"kind": "number-range", "min": 1, "max": 9, "min-width": 0.5, "max-width": 3}',
            NumberRange(min=1, max=9, min_width=0.5, max_width=3),
        ),
        (
            (
                '{"kind": "date-range", "min": "2023-01-01", "max": "2023-01-08",'
                ' "min-width": 60, "max-width": 60}'
            ),
            DateRange(min="2023-01-01", max="2023-01-08", min_width=60, max_width=60),
        ),
    ],
)
def test_sources_are_read_from_json_and_used(written: str, read: ValueSource):
    found = msgspec.json.decode(written, type=ValueSource)
    assert found == read
    assert check_values({"x": found}, [f"${{x{'.' if end else ''}{end}}}" for end in found.ends]) == ""


@pytest.mark.parametrize(
    "written",
    [
        {"kind": "list", "items": ["a"], "pool": {"size": 1}},
        {"kind": "gaussian", "min": 1, "max": 2},
        {"kind": "integer", "min": 1.5, "max": 2},
    ],
)
def test_sources_that_do_not_exist_are_refused(written: dict[str, Any]):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(written, ValueSource)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (source(kind="list", items=[]), "items is empty"),
        (source(kind="list", items=[1], alpha=2.0), "alpha means nothing to pick 'cycle'"),
        (source(kind="list", items=[1], pick="zipf", alpha=-1.0), "alpha -1.0 is not 0 or more"),
        (source(kind="list", items=[1], pick="zipf", alpha=float("inf")), "alpha inf is not 0 or more"),
        (numbers(max=0), "max 0 is below min 1"),
        (numbers(max=2**64), f"max {2**64} has more than 64 bits"),
        (numbers(min=-(2**63), max=2**64 - 1), "min and max are more than 2^64 - 1 steps apart"),
        (numbers(pool={"size": 0}), "pool: size 0 is not from 1 to 100000"),
        (numbers(max=10**9, pool={"size": 100_001}), "pool: size 100001 is not from 1 to 100000"),
        (numbers(pool={"size": 10}), "pool: size 10 is more than the 9 values that there are"),
        (numbers(pool={"size": 3, "share": 1.5}), "pool: share 1.5 is not from 0 to 1"),
        (numbers(pool={"size": 3, "share": -0.1}), "pool: share -0.1 is not from 0 to 1"),
        (numbers(pool={"size": 3, "alpha": float("nan")}), "pool: alpha nan is not 0 or more"),
        (Number(min=0, max=float("inf")), "max inf is not finite"),
        (Number(min=0.125, max=1, decimals=2), "min 0.125 has more than 2 decimals"),
        (
            Number(min=0, max=1e15, decimals=0),
            "max 1000000000000000.0 with 0 decimals has more than 15 digits",
        ),
        (Number(min=0, max=1, decimals=16), "decimals 16 is not from 0 to 15"),
        (Number(min=2, max=1.5), "max 1.5 is below min 2"),
        (span(min_width=-1), "min-width -1 is below 0"),
        (span(min_width=3, max_width=2), "max-width 2 is below min-width 3"),
        (span(max_width=9), "max-width 9 is wider than the grid from min to max"),
        (span(max_width=10**400), f"max-width {10**400} is wider than the grid from min to max"),
        (span(max=0), "max 0 is below min 1"),
        (dates(min="yesterday"), "min 'yesterday' is not a date in ISO 8601"),
        (dates(max="2023-02-30"), "max '2023-02-30' is not a date in ISO 8601"),
        (dates(min="0001-01-01T00:00:00+10:00"), "min '0001-01-01T00:00:00+10:00' is not a date in ISO 8601"),
        (
            dates(min="2023-01-01T00:00:00.1234567"),
            "min '2023-01-01T00:00:00.1234567' is finer than a microsecond",
        ),
        (dates(max="2022-12-31"), "max 2022-12-31 is below min 2023-01-01"),
        (dates(step=0), "step 0.0 is not above 0"),
        (dates(step=1e-7), "step 1e-07 has more than 6 decimals"),
        (dates(step=0.5), "step 0.5 is finer than format '%Y-%m-%dT%H:%M:%S' shows"),
        (dates(format="%Y-%m-%d"), "step 1.0 is finer than format '%Y-%m-%d' shows"),
        (
            dates(min="2023-01-01T00:00:00.5"),
            "min 2023-01-01T00:00:00.5 is finer than format '%Y-%m-%dT%H:%M:%S' shows",
        ),
        (dates(format="%d %b %Y"), "format '%d %b %Y' has '%b': benchctl knows %Y %m %d %H %M %S %f and %%"),
        (dates(format="%Y-%m-%d%"), "format '%Y-%m-%d%' has '%': benchctl knows %Y %m %d %H %M %S %f and %%"),
        (
            dates(format="%H:%M"),
            "format '%H:%M' lacks %Y: it has to show the date, and every unit above its last",
        ),
        (
            dates(format="%Y%m%d %M"),
            "format '%Y%m%d %M' lacks %H: it has to show the date, and every unit above its last",
        ),
        (
            dates(format="iso"),
            "format 'iso' lacks %Y: it has to show the date, and every unit above its last",
        ),
        (window(max_width=604_801), "max-width 604801.0 is wider than the grid from min to max"),
        (
            window(step=60, min_width=61, max_width=119),
            "no multiple of step lies between min-width 61.0 and max-width 119.0",
        ),
        (window(pool={"size": 1, "alpha": -0.5}), "pool: alpha -0.5 is not 0 or more"),
    ],
)
def test_a_source_that_cannot_work_is_named_with_its_reason(wrong: ValueSource, problem: str):
    assert check_values({"x": wrong}, ["${x}"]) == f"values.x: {problem}"


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (
            {"a": "${size}"},
            "'${size}' stands for no value (known: day, span); $${ writes the characters themselves",
        ),
        ({"a": "${day.to}"}, "'${day.to}' stands for no value: write ${day}"),
        ({"a": "on ${span}"}, "'${span}' stands for no value: write ${span.from} or ${span.to}"),
        (
            {"a": "${day x}"},
            "'${day x}' begins no placeholder: write ${name}, or $${ for the characters themselves",
        ),
        (
            {"a": ["${day}"], "b": "$${span}"},
            "values.span: nothing uses it: write ${span.from} or ${span.to}",
        ),
        ({"${day}": "${span.from}"}, "values.day: nothing uses it: write ${day}"),
        (["/logs-${day}/_search", {"a": [{"b": "${span.to}"}]}], ""),
    ],
)
def test_placeholders_and_values_have_to_match(texts: Any, problem: str):
    assert check_values({"day": DAY, "span": span()}, texts) == problem


def test_an_operation_without_values_has_no_placeholders():
    assert check_values({}, {"a": ["b", 1, None, "5 $"]}) == ""
    assert check_values({}, "${day}") == (
        "'${day}' stands for no value (the operation has no values); $${ writes the characters themselves"
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
