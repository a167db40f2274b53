"""Option values that are more than words."""

import click
import pytest

from benchctl.cli.options import AmountType, TagType
from benchctl.errors import UsageError
from benchctl.quantities import SIZE


def test_an_amount_is_its_value_and_a_wrong_one_names_the_option():
    heap = click.Option(["--heap"])
    assert AmountType(SIZE).convert("4g", heap, None) == AmountType(SIZE).convert(4096, heap, None) == 4096
    with pytest.raises(UsageError, match=r"^--heap: invalid size '4' "):
        AmountType(SIZE).convert("4", heap, None)


def test_tags_are_words_or_keys_with_values():
    for text in ("nightly", "8.19.0", "before_upgrade-2", "env:laptop"):
        assert TagType().convert(text, None, None) == (text,)
    assert TagType().convert("env:laptop,disk:ssd,x", None, None) == ("env:laptop", "disk:ssd", "x")
    for text in ("", "a b", "a:", ":b", "a:b:c", "a,,b", "-x", "a/b", "x" * 65, "\u00fc"):
        with pytest.raises(click.BadParameter, match="is not a tag"):
            TagType().convert(text, None, None)
