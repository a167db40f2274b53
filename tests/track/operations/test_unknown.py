"""Remedies for what a node lacks."""

import pytest

from benchctl.track.operations import names_unknown, remedy


@pytest.mark.parametrize(
    "reason",
    [
        "script_lang not supported [painless]",
        "unknown query [percolate] did you mean [nested]?",
        "Unknown aggregation type [matrix_stats] did you mean any of [stats]?",
        "Unknown aggregation type [multi_terms]",
        "no processor type exists with name [grok]",
        "no handler found for uri [/big5/_update_by_query?refresh=true] and method [POST]",
        "no handler found for uri [/big5/_search/template] and method [POST]",
        "Incorrect HTTP method for uri [/_reindex] and method [POST], allowed: [GET]",
    ],
)
def test_what_full_distributions_do_has_a_remedy(reason: str):
    assert names_unknown(reason)
    assert remedy(reason) == " (distribution:official has it)"


def test_what_is_unknown_has_none():
    assert remedy("unknown query [nonsense]") == remedy("") == ""
