"""Placeholders: found wherever strings are, escaped when wanted, refused when they are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.track.values import Placeholder, is_name, placeholders, split_text

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
PLACEHOLDERS = st.builds(Placeholder, NAMES, st.sampled_from(["", "from", "to"]))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("plain, costs 5 $", ["plain, costs 5 $"]),
        ("${day}", [Placeholder("day")]),
        ("logs-${day.from}*", ["logs-", Placeholder("day", "from"), "*"]),
        ("${a}${b.to}", [Placeholder("a"), Placeholder("b", "to")]),
        ("$${day}", ["${day}"]),
        ("a$${b}${c}$d", ["a${b}", Placeholder("c"), "$d"]),
        ("{${a}}", ["{", Placeholder("a"), "}"]),
    ],
)
def test_a_text_is_cut_at_its_placeholders(text: str, pieces: list[str | Placeholder]):
    assert split_text(text) == pieces


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


@pytest.mark.parametrize(
    ("text", "named"), [("a_1-b", True), ("1a", False), ("a.b", False), ("", False), ("ä", False)]
)
def test_names_are_letters_digits_underscores_and_hyphens(text: str, named: bool):  # noqa: FBT001 - a table
    assert is_name(text) is named
