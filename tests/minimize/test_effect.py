"""The sentence of an effect."""

import pytest

from benchctl.errors import UsageError
from benchctl.minimize.candidates import compares_variants, parse_effect


@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_a_task_against_itself_on_a_fresh_node(direction: str) -> None:
    found = parse_effect(f" range-numeric  {direction} than fresh", ["es"])
    assert (found.task, found.direction) == ("range-numeric", direction)
    assert (found.variant, found.against) == ("es", "")
    assert str(found) == f"range-numeric {direction} than fresh"
    assert not compares_variants("range slower than fresh")


def test_a_task_on_two_variants() -> None:
    found = parse_effect("my task slower on os@2.12.0 than on os", ["os", "os@2.12.0"])
    assert (found.task, found.variant, found.against) == ("my task", "os@2.12.0", "os")
    assert parse_effect(str(found), ["os", "os@2.12.0"]) == found
    assert compares_variants(str(found))


@pytest.mark.parametrize(
    ("sentence", "variants", "words"),
    [
        ("range slower", ["es"], "cannot read"),
        ("range slow than fresh", ["es"], "cannot read"),
        ("slower than fresh", ["es"], "cannot read"),
        ("range slower than fresh", ["es", "os"], "about one variant"),
        ("range slower on os than on es", ["es"], "'os', which is not among es"),
        ("range slower on os than on es", ["es", "os", "x"], "measured would be es, os, x"),
        ("range slower on es than on es", ["es", "os"], "measured would be"),
    ],
)
def test_what_is_no_such_sentence_or_about_others_is_refused(
    sentence: str, variants: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        parse_effect(sentence, variants)
