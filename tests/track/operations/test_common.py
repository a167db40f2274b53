"""Remedies for what a node lacks."""

import pytest

from benchctl.track.operations.common import names_unknown, remedy


@pytest.mark.parametrize(
    ("reason", "module"),
    [
        ("script_lang not supported [painless]", "lang-painless"),
        ("unknown query [percolate] did you mean [nested]?", "percolator"),
        ("Unknown aggregation type [matrix_stats] did you mean any of [stats]?", "aggs-matrix-stats"),
        ("no processor type exists with name [grok]", "ingest-common"),
        ("no handler found for uri [/big5/_update_by_query?refresh=true] and method [POST]", "reindex"),
        ("no handler found for uri [/big5/_search/template] and method [POST]", "lang-mustache"),
        ("Incorrect HTTP method for uri [/_reindex] and method [POST], allowed: [GET]", "reindex"),
    ],
)
def test_a_module_that_is_known_to_do_it_is_named(reason: str, module: str):
    assert names_unknown(reason)
    assert f"module:{module} " in remedy(reason)


def test_what_no_module_does_takes_a_full_distribution_or_is_unknown():
    assert "module" not in remedy("Unknown aggregation type [multi_terms]")
    assert "full distributions" in remedy("Unknown aggregation type [multi_terms]")
    assert remedy("unknown query [nonsense]") == remedy("") == ""
