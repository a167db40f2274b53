"""Option values that are more than words."""

import click
import pytest

from benchctl.cli.options import AmountType, TagType, keyed
from benchctl.errors import UsageError
from benchctl.quantities import SIZE


def test_an_amount_is_its_value_and_a_wrong_one_names_the_option():
    heap = click.Option(["--heap"])
    assert AmountType(SIZE).convert("4g", heap, None) == AmountType(SIZE).convert(4096, heap, None) == 4096
    with pytest.raises(UsageError, match=r"^--heap: invalid size '4' "):
        AmountType(SIZE).convert("4", heap, None)


def test_values_are_for_one_variant_or_for_all():
    assert keyed(["es=/a", "/b"], "--jdk") == {"es": "/a", "": "/b"}
    assert keyed(["es=https://host/x?a=b"], "--target") == {"es": "https://host/x?a=b"}
    assert keyed(["https://host/x?a=b", "es=/a=b"], "--target") == {
        "": "https://host/x?a=b",
        "es": "/a=b",
    }
    with pytest.raises(UsageError, match="twice for es"):
        keyed(["es=1", "es=2"], "--jdk")
    with pytest.raises(UsageError, match="twice for all"):
        keyed(["1", "2"], "--jdk")


def test_tags_are_words_or_keys_with_values():
    for text in ("nightly", "8.19.0", "before_upgrade-2", "env:laptop"):
        assert TagType().convert(text, None, None) == (text,)
    assert TagType().convert("env:laptop,disk:ssd,x", None, None) == ("env:laptop", "disk:ssd", "x")
    for text in ("", "a b", "a:", ":b", "a:b:c", "a,,b", "-x", "a/b", "x" * 65, "\u00fc"):
        with pytest.raises(click.BadParameter, match="is not a tag"):
            TagType().convert(text, None, None)
