import pytest

from benchctl.stats.scale import BLOG_HITS, operation_scale, scale_note


def test_distance_in_document_visits():
    found = scale_note(1_000_000, 300, 486_989_570, 10)
    assert found.ratio == pytest.approx(16.23, abs=0.01)
    assert found.text.startswith("16 times fewer document visits than in the blog")


def test_more_than_the_blog():
    assert scale_note(100, 100, 10, 100).text.startswith("10 times more")


def test_nothing_visited_has_no_distance():
    assert scale_note(0, 300, 486_989_570, 10) is None


def test_histogram_covers_all_but_the_last_of_the_days():
    assert BLOG_HITS["composite-date_histogram-daily"] == pytest.approx(1_740_763_348 * 26 / 29, abs=1)


def test_unknown_hits_fall_back_to_the_share_of_the_corpus():
    found = operation_scale("range", "big5rangedebug", hits=None, requests=10, documents=1_740_763_348)
    assert (found.hits_per_request, found.ratio) == (486_989_570, 1.0)


def test_the_blog_says_nothing_about_other_operations():
    assert operation_scale("term", "big5", hits=5, requests=10, documents=100) is None
    assert operation_scale("range", "mine", hits=5, requests=10, documents=100) is None
