"""Bodies: reproducible, within bounds, spread as they should be, and always the JSON that they stand for."""

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchctl.corpus.tables import words
from benchctl.load.work import Bodies, _word, zipf_table
from benchctl.track.values import (
    Choice,
    Date,
    Integer,
    Number,
    Placeholder,
    Pool,
    ValueSource,
    check_values,
    split_text,
)

SEEDS = st.integers(0, 2**64)
REQUESTS = st.integers(0, 10**9)
WEEK = Date(min="2023-01-01", max="2023-01-08", min_width=600, max_width=86_400, step=60)
SOURCES: dict[str, ValueSource] = {
    "day": Date(min="2023-01-01", max="2023-01-31", step=86_400, format='"%d"\\%m/é%Y%%'),
    "millis": Date(min="1969-12-31", max="1970-01-02", step=0.25, format="epoch_millis"),
    "size": Integer(min=-3, max=1000),
    "price": Number(min=-1.5, max=99.99, decimals=2),
    "tiny": Number(min=0, max=0.00001),
    "any": Choice(items=('ü\n"x\\', None, True, 1.5, {"a": ["${day}", "é"]}), pick="random"),
    "span": Integer(min=0, max=50, min_width=1, max_width=20, pool=Pool(size=40, share=0.5)),
    "cost": Number(min=0, max=10, min_width=0.5, max_width=2.5, decimals=1),
    "week": WEEK,
}


def drawn(source: ValueSource, requests: int, *, seed: int = 1, key: str = "task") -> list[Any]:
    """What so many requests draw: single values, or (from, to)."""
    template = [f"${{x.{end}}}" if end else "${x}" for end in source.ends]
    bodies = Bodies(template, {"x": source}, seed=seed, key=key)
    decoded = [json.loads(bodies.encode(number)) for number in range(requests)]
    return [tuple(values) if len(values) > 1 else values[0] for values in decoded]


def test_the_values_never_change_between_versions_of_benchctl():
    # Frozen on purpose: other values are other requests, and older results could no longer be compared.
    names = [name + (f".{end}" if end else "") for name, source in SOURCES.items() for end in source.ends]
    bodies = Bodies(["${" + name + "}" for name in names], SOURCES, seed=20_230_101, key="range")
    assert [json.loads(bodies.encode(number)) for number in (0, 1, 1_000_000)] == FROZEN["values"]
    assert zipf_table(5, 1.3) == FROZEN["zipf_table"]


FROZEN: dict[str, Any] = json.loads((Path(__file__).parent / "frozen_values.json").read_text("utf-8"))


@given(SEEDS, st.integers(1, 7), st.integers(1, 40))
def test_interleaved_clients_send_what_one_client_would(seed: int, clients: int, requests: int):
    template = {"a": "${size}", "b": "${span.from}", "c": "${any}"}
    alone = Bodies(template, SOURCES, seed=seed, key="k")
    sent: dict[int, bytes] = {}
    for client in range(clients):
        own = Bodies(template, SOURCES, seed=seed, key="k")
        sent |= {number: own.encode(number) for number in range(client, requests, clients)}
    assert [sent[number] for number in range(requests)] == [
        alone.encode(number) for number in range(requests)
    ]


def test_seed_key_and_name_each_give_values_of_their_own():
    source = Integer(min=0, max=10**12)
    usual = drawn(source, 20)
    assert drawn(source, 20, seed=2) != usual
    assert drawn(source, 20, key="other") != usual
    two = Bodies(["${x}", "${y}"], {"x": source, "y": source}, seed=1, key="task")
    pairs = [json.loads(two.encode(number)) for number in range(20)]
    assert [pair[0] for pair in pairs] == usual
    assert all(x != y for x, y in pairs)


@given(REQUESTS)
def test_path_and_body_of_a_request_agree(number: int):
    path = Bodies("/logs-${size}/_search?q=${price}", SOURCES, seed=3, key="k", plain=True)
    body = Bodies({"a": "${price}", "b": "${size}"}, SOURCES, seed=3, key="k")
    said = json.loads(body.encode(number))
    assert path.encode(number).decode() == f"/logs-{said['b']}/_search?q={said['a']}"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_random_words_are_those_of_the_corpus(stream: int, number: int):
    assert _word(stream, number) == int(words(stream, np.array([number], dtype=np.uint64))[0])


@given(SEEDS, st.integers(-(2**63), 2**64 - 1), st.integers(0, 2**64 - 1))
def test_integers_stay_within_their_bounds(seed: int, low: int, width: int):
    high = min(low + width, 2**64 - 1)
    assert all(low <= value <= high for value in drawn(Integer(min=low, max=high), 10, seed=seed))


@given(SEEDS, st.integers(0, 6), st.integers(-(10**8), 10**8), st.integers(0, 10**8))
def test_numbers_stay_within_their_bounds_and_have_few_decimals(
    seed: int, decimals: int, low: int, width: int
):
    scale = 10**decimals
    source = Number(min=low / scale, max=(low + width) / scale, decimals=decimals)
    assert check_values({"x": source}, "${x}") == ""
    for value in drawn(source, 10, seed=seed):
        assert source.min <= value <= source.max
        assert round(value, decimals) == value


def test_every_value_of_a_small_source_comes_about_equally_often():
    counts = Counter(drawn(Integer(min=3, max=7), 5_000))
    assert sorted(counts) == [3, 4, 5, 6, 7]
    assert all(count == pytest.approx(1_000, rel=0.15) for count in counts.values())
    assert set(drawn(Number(min=0.1, max=0.3, decimals=1), 100)) == {0.1, 0.2, 0.3}


@given(SEEDS, st.integers(0, 60), st.data())
def test_ranges_are_ordered_within_their_bounds_and_widths(seed: int, steps: int, data: st.DataObject):
    narrowest = data.draw(st.integers(0, steps))
    widest = data.draw(st.integers(narrowest, steps))
    source = Integer(min=5, max=5 + steps, min_width=narrowest, max_width=widest)
    for low, high in drawn(source, 20, seed=seed):
        assert 5 <= low <= high <= 5 + steps
        assert narrowest <= high - low <= widest


def test_all_widths_and_places_of_a_range_come():
    source = Integer(min=0, max=3, min_width=1, max_width=3)
    counts = Counter(drawn(source, 6_000))
    assert set(counts) == {(0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)}
    assert counts[0, 3] == pytest.approx(2_000, rel=0.1)
    assert counts[0, 2] == pytest.approx(1_000, rel=0.15)


@given(SEEDS, st.sampled_from([0.001, 0.25, 1, 7, 60, 3_600]), st.integers(0, 5_000))
def test_dates_keep_to_their_grid(seed: int, step: float, steps: int):
    first = datetime.fromisoformat("2022-12-31T23:00:00")
    last = first + timedelta(seconds=step * (steps + 0.5))
    format_ = "%Y-%m-%dT%H:%M:%S.%f"
    source = Date(min=first.isoformat(), max=last.isoformat(), step=step, format=format_)
    for text in drawn(source, 10, seed=seed):
        moment = datetime.fromisoformat(text)
        assert first <= moment <= last
        assert (moment - first) % timedelta(seconds=step) == timedelta(0)


@given(SEEDS)
def test_ranges_of_time_keep_to_grid_and_widths(seed: int):
    for low, high in drawn(WEEK, 10, seed=seed):
        begin, end = datetime.fromisoformat(low), datetime.fromisoformat(high)
        assert begin >= datetime.fromisoformat(WEEK.min)
        assert end <= datetime.fromisoformat(WEEK.max)
        assert timedelta(seconds=600) <= end - begin <= timedelta(days=1)
        assert begin.second == end.second == 0


def test_a_list_is_gone_through_in_turn_at_random_or_by_zipf():
    items = ("a", "b", "c", "d")
    assert drawn(Choice(items=items), 6) == ["a", "b", "c", "d", "a", "b"]
    evenly = Counter(drawn(Choice(items=items, pick="random"), 4_000))
    assert all(evenly[item] == pytest.approx(1_000, rel=0.15) for item in items)
    # With alpha 1 the weights are 1, 1/2, 1/3, 1/4: 12, 6, 4 and 3 of 25.
    by_zipf = Counter(drawn(Choice(items=items, pick="zipf"), 25_000))
    assert [by_zipf[item] for item in items] == pytest.approx([12_000, 6_000, 4_000, 3_000], rel=0.05)


@given(st.integers(1, 300), st.floats(0, 5))
def test_zipf_tables_hold_the_probabilities_of_the_law(size: int, alpha: float):
    weights = np.arange(1, size + 1, dtype=float) ** -alpha
    table = zipf_table(size, alpha)
    assert table[-1] == 2**64
    assert [entry / 2**64 for entry in table] == pytest.approx(np.cumsum(weights / weights.sum()), rel=1e-9)


def test_a_hopeless_rank_of_zipf_never_comes_and_breaks_nothing():
    assert zipf_table(3, 1e9) == [2**64] * 3


def test_a_pool_holds_as_many_different_values_as_it_says():
    assert len(set(drawn(Integer(min=1, max=60, pool=Pool(size=50, alpha=0)), 2_000))) == 50
    every = Integer(min=0, max=3, min_width=1, max_width=3, pool=Pool(size=6, alpha=0))
    assert len(set(drawn(every, 200))) == 6


def test_a_pool_is_used_for_its_share_and_by_zipf():
    wide = Integer(min=0, max=10**15, pool=Pool(size=10, share=0.3, alpha=1))
    counts = Counter(drawn(wide, 20_000))
    repeated = sorted((count for count in counts.values() if count > 1), reverse=True)
    assert len(repeated) == 10
    assert sum(repeated) == pytest.approx(6_000, rel=0.05)
    harmonic = sum(1 / rank for rank in range(1, 11))
    assert repeated[0] == pytest.approx(6_000 / harmonic, rel=0.1)
    assert repeated[1] == pytest.approx(6_000 / harmonic / 2, rel=0.1)


@pytest.mark.parametrize(("share", "different"), [(0.0, 500), (1.0, 4)])
def test_a_pool_can_serve_none_or_all(share: float, different: int):
    source = Integer(min=0, max=10**15, pool=Pool(size=4, share=share))
    assert len(set(drawn(source, 500))) == different


def test_a_pool_takes_nothing_from_the_fresh_values():
    plain = drawn(Integer(min=0, max=10**15), 200)
    mixed = drawn(Integer(min=0, max=10**15, pool=Pool(size=5, share=0.5)), 200)
    fresh = [(one, other) for one, other in zip(plain, mixed, strict=True) if mixed.count(other) == 1]
    assert len(fresh) > 50
    assert all(one == other for one, other in fresh)


# Any JSON whose strings hold any characters, and placeholders of every kind among them.
MARKS = st.sampled_from(
    [str(Placeholder(name, end)) for name, source in SOURCES.items() for end in source.ends]
)
STRINGS = st.lists(MARKS | st.just("$${") | st.text(max_size=6), max_size=4).map("".join)
TEMPLATES = st.recursive(
    STRINGS
    | MARKS
    | st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5) | MARKS, inner, max_size=4)
    ),
    max_leaves=12,
)


def reference(template: Any, number: int, seed: int) -> Any:
    """The slow and obvious way: replace in the objects, one string at a time."""
    if isinstance(template, dict):
        return {key: reference(value, number, seed) for key, value in template.items()}
    if isinstance(template, list):
        return [reference(value, number, seed) for value in template]
    if not isinstance(template, str):
        return template
    pieces = split_text(template)
    values = [piece if isinstance(piece, str) else alone(piece, number, seed) for piece in pieces]
    if len(pieces) == 1 and isinstance(pieces[0], Placeholder):
        return values[0][0]
    return "".join(value if isinstance(value, str) else value[1] for value in values)


def alone(mark: Placeholder, number: int, seed: int) -> tuple[Any, str]:
    """One value, and its text."""
    bodies = Bodies(str(mark), SOURCES, seed=seed, key="k")
    encoded = bodies.encode(number)
    value = json.loads(encoded)
    return value, value if isinstance(value, str) else encoded.decode()


@settings(deadline=None)
@given(TEMPLATES, st.integers(0, 1_000), st.integers(0, 5))
def test_the_encoded_body_is_the_json_of_the_replaced_template(template: Any, number: int, seed: int):
    assume(not _malformed(template))
    bodies = Bodies(template, SOURCES, seed=seed, key="k")
    encoded = bodies.encode(number)
    assert json.loads(encoded) == reference(template, number, seed)
    if isinstance(template, str) and len(split_text(template)) != 1:
        plain = Bodies(template, SOURCES, seed=seed, key="k", plain=True)
        assert plain.encode(number).decode() == json.loads(encoded)


def _malformed(template: Any) -> bool:
    problem = check_values({}, template)
    return "begins no placeholder" in problem or "begins no placeholder" in check_values(SOURCES, template)


@given(TEMPLATES)
def test_a_body_without_placeholders_is_the_library_s_json_and_the_same_object_each_time(template: Any):
    escaped = json.loads(json.dumps(template).replace("$", "."))
    bodies = Bodies(escaped, {}, seed=1, key="k")
    assert bodies.encode(0) == msgspec.json.encode(escaped)
    assert bodies.encode(0) is bodies.encode(7)


def test_a_placeholder_alone_keeps_its_type_and_within_a_text_becomes_text():
    values: dict[str, ValueSource] = {
        "n": Choice(items=(5,)),
        "b": Choice(items=(True,)),
        "o": Choice(items=({"a": "é"},)),
    }
    bodies = Bodies(["${n}", "n ${n}", "${b}", "${b}!", "${o}", "<${o}>", "$${n}"], values, seed=1, key="k")
    assert bodies.encode(0) == '[5,"n 5",true,"true!",{"a":"é"},"<{\\"a\\":\\"é\\"}>","${n}"]'.encode()


@given(st.text(), st.text())
def test_values_of_any_characters_are_escaped_in_json_and_plain_in_texts(value: str, around: str):
    assume("$" not in around)
    values: dict[str, ValueSource] = {"x": Choice(items=(value,))}
    template = f"{around}${{x}}{around}"
    plain = Bodies(template, values, seed=1, key="k", plain=True)
    assert plain.encode(0).decode() == around + value + around
    assert json.loads(Bodies(template, values, seed=1, key="k").encode(0)) == around + value + around


def test_what_was_not_checked_is_refused():
    with pytest.raises(ValueError, match="is not a known value"):
        Bodies("${x}", {}, seed=1, key="k")
    with pytest.raises(ValueError, match="is not a known value"):
        Bodies("${week}", SOURCES, seed=1, key="k")
    with pytest.raises(ValueError, match="pool: size 3 is more than the 2 available values"):
        Bodies("${x}", {"x": Integer(min=1, max=2, pool=Pool(size=3))}, seed=1, key="k")
