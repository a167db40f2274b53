import pytest

from benchctl.results.model import AnswerCheck
from benchctl.stats.scale import BLOG_DOCUMENTS, BLOG_HITS, operation_scale
from builders import make_summary


def test_histogram_covers_all_but_the_last_of_the_days():
    assert BLOG_HITS["composite-date_histogram-daily"] == pytest.approx(1_740_763_348 * 26 / 29, abs=1)


@pytest.mark.parametrize(
    ("hits", "exact", "samples", "expected"),
    [
        # The share of the corpus, unless somebody counted.
        (None, {}, 10, (486_989_570, "1.0 times fewer")),
        (5_000_000, {}, 10, (5_000_000, "97 times fewer")),
        (5_000_000, {"es": 1_000_000}, 10, (1_000_000, "490 times fewer")),
        (486_989_570, {}, 100, (486_989_570, "10 times more")),
        (0, {}, 10, None),
        (None, {}, 0, None),
    ],
)
def test_distance_in_document_visits(
    hits: int | None, exact: dict[str, int], samples: int, expected: tuple[int, str] | None
):
    fork = make_summary("range", 1.0, samples=samples, warmup_samples=0, hits=hits, hits_exact=True)
    answers = AnswerCheck(("range",), {"range": exact}, ())
    found = operation_scale("range", "big5rangedebug", [fork], BLOG_DOCUMENTS, answers)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.hits_per_request == expected[0]
        assert found.text.startswith(f"{expected[1]} document visits than in the original benchmark")


def test_the_blog_says_nothing_about_other_operations():
    fork = make_summary("term", 1.0)
    assert operation_scale("term", "big5", [fork], 100) is None
    assert operation_scale("range", "mine", [fork], 100) is None
