"""YAML into values with places; what readers of YAML disagree about is refused."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.yaml_file import MOST_CHARACTERS, MOST_LEVELS, MOST_VALUES, Document, in_words, shown, steps_of
from golden import Cases

KEYS = st.text("abcdef", min_size=1, max_size=5)  # words that need no quotes
# PyYAML leaves out quotes that newer readers need, as in 0E0.
# Neither digits, which YAML 1.1 and 1.2 read differently, nor what no text can hold.
WORDS = st.text(st.characters(exclude_categories=["Nd", "Cs"], exclude_characters="\0"), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def value_of(text: str) -> Any:
    return Document(text, "f.yml").value


@given(VALUES)
def test_what_pyyaml_writes_is_read_back(value: Any):
    assert value_of(yaml.safe_dump(value)) == value


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, st.integers(0, 99), min_size=1), min_size=1, max_size=6))
def test_every_value_and_key_is_found_in_its_line(value: dict[str, dict[str, int]]):
    document = Document(yaml.safe_dump(value, sort_keys=False), "f.yml")
    line = 0
    for outer, inner in value.items():
        line += 1
        assert document.place((), outer) == (line, 1)
        for key in inner:
            line += 1
            assert document.place((outer,), key) == (line, 3)
            assert document.place((outer, key)) == (line, len(key) + 5)
            assert f"f.yml:{line}:" in document.refuse((outer, key), "no").message


def test_what_old_and_new_yaml_read_differently_is_refused_with_both_readings(cases: Cases):
    def read(written: str) -> object:
        assert value_of(f"a: '{written}'") == {"a": written}
        return value_of(f"a: 1\nb: {written}\n")

    cases("yaml_readings", read)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("False", False), ("~", None), ("", None), ("Null", None), ("7", 7), ("-3", -3),
        ("0x1F", 31), ("0.5", 0.5), ("8.10", 8.1), ("8.11.0", "8.11.0"), ("03:00", "03:00"),
        ("es@latest", "es@latest"), ("30m", "30m"), ("5%", "5%"), ("y", "y"), ("'no'", "no"), ('"1"', "1"),
        ("|\n  two\n  lines", "two\nlines"),
    ],
)  # fmt: skip
def test_what_all_read_alike_is_taken(written: str, value: Any):
    found = value_of(f"a: {written}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_text_may_be_tagged_as_such():
    assert value_of("a: !!str no\nb: !!str 23:00\nc: !!str 'x'\n") == {"a": "no", "b": "23:00", "c": "x"}


def test_keys_are_the_words_that_were_written():
    assert list(value_of("on: 1\nno: 2\n8.10: 3\n7: 4\n")) == ["on", "no", "8.10", "7"]


def test_what_cannot_be_meant_is_refused_where_it_stands(cases: Cases):
    cases("yaml_document", value_of)


def test_anchors_repeat_what_was_said():
    assert value_of("one: &base {heap: 1g}\ntwo: *base\n") == {"one": {"heap": "1g"}, "two": {"heap": "1g"}}


def test_a_few_lines_that_unfold_to_billions_of_values_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(UsageError, match=f"more than {MOST_VALUES:,} values"):
        value_of("\n".join(lines))


def test_depth_and_size_are_bounded():
    assert value_of("[" * MOST_LEVELS + "]" * MOST_LEVELS)
    with pytest.raises(UsageError, match=f"more than {MOST_LEVELS} levels"):
        value_of("[" * (MOST_LEVELS + 1) + "]" * (MOST_LEVELS + 1))
    with pytest.raises(UsageError, match="nested too deeply"):
        value_of("[" * 5000)
    with pytest.raises(UsageError, match="characters"):
        value_of("#" * (MOST_CHARACTERS + 1))


@pytest.mark.parametrize("char", ["\\0", "\\uD800"])
def test_characters_that_no_file_name_and_no_message_can_hold_are_refused(char: str):
    with pytest.raises(UsageError, match=r"f.yml:1:4: .*holds a character that no text can"):
        Document(f'a: "b{char}"', "f.yml")


def test_a_place_that_is_not_there_is_that_of_what_is_around_it():
    document = Document("a:\n  - b: 1\n", "f.yml")
    assert document.place(("a", 0, "c")) == (2, 5)
    assert document.place(("a", 3)) == (2, 3)
    assert document.place(("a", 0), "c") == (2, 5)
    assert Document("", "f.yml").place(("a",)) == (1, 1)


def test_the_way_to_a_value_is_said_in_words_on_one_line():
    assert in_words(("variants", 1, "jdk")) == "variants, entry 2, jdk"
    assert shown("a\n\x1b[31mb" + "c" * 100).startswith("a [31mbccc")
    assert len(shown("c" * 100)) == 60


@given(st.lists(st.integers(0, 99) | st.text("abc-_é", min_size=1) | st.none(), max_size=6))
def test_the_steps_of_a_path_of_msgspec_are_read_back(steps: list[int | str | None]):
    path = "".join("[...]" if s is None else f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
    assert list(steps_of(f"${path}")) == steps
