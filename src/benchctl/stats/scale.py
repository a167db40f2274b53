"""Scale of a measurement relative to the blog's, in documents that the engine had to visit."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from benchctl.results.figures import TaskSummary
from benchctl.results.model import AnswerCheck

BLOG_DOCUMENTS = 1_740_763_348
BLOG_RANGE_HITS = 486_989_570

# The composite histogram covers the documents up to 2023-01-07T12:00, 6.5 of the corpus's 7.25 days.
BLOG_HISTOGRAM_HITS = round(BLOG_DOCUMENTS * 6.5 / 7.25)

BLOG_HITS: Mapping[str, int] = MappingProxyType(
    {
        "range": BLOG_RANGE_HITS,
        "composite-date_histogram-daily": BLOG_HISTOGRAM_HITS,
        "composite-date_histogram-daily-size-1": BLOG_HISTOGRAM_HITS,
        "default": BLOG_DOCUMENTS,
        "scroll": BLOG_DOCUMENTS,
        "desc_sort_timestamp": BLOG_DOCUMENTS,
        "desc_sort_with_after_timestamp": BLOG_DOCUMENTS,
        "asc_sort_timestamp": BLOG_DOCUMENTS,
        "asc_sort_with_after_timestamp": BLOG_DOCUMENTS,
        "sort_numeric_desc": BLOG_DOCUMENTS,
        "sort_numeric_asc": BLOG_DOCUMENTS,
    }
)

# Requests a task got there, warm-up included; 300 stands for the full schedule. The second half are the
# challenges of experiments/jvm-inlining.yml, by what the blog ran in their place.
BLOG_REQUESTS: Mapping[str, int] = MappingProxyType(
    {
        "range-only": 110,
        "range-only-short": 10,
        "big5rangedebug": 10,
        "big5rangedebug-histo-size-1": 10,
        "big5": 300,
        "range-settled": 10,
        "debug-settled": 10,
        "debug-size-1": 10,
        "big5-short": 300,
    }
)

_WHOLE_NUMBERS_FROM = 10


class ScaleNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The distance from the blog's scale."""

    hits_per_request: int
    requests: int  # sent to one fork's node by this task, warm-up included
    blog_hits: int
    blog_requests: int
    ratio: float
    text: str


def operation_scale(
    operation: str,
    challenge: str,
    summaries: Sequence[TaskSummary],
    documents: int,
    answers: AnswerCheck | None = None,
) -> ScaleNote | None:
    """Compare document visits, which is what trains and exercises the JIT's code.

    Hits are those that the answer check or a fork counted exactly, or else the blog's share of this corpus of
    `documents`; requests are those of the fork that got most, warm-up included.

    Returns:
        None where the blog has no such operation and challenge, or nothing was visited here.
    """
    blog_hits, blog_requests = BLOG_HITS.get(operation), BLOG_REQUESTS.get(challenge)
    if blog_hits is None or blog_requests is None:
        return None
    measured = [summary for summary in summaries if summary.samples > 0]
    exact = answers.exact_hits.get(operation, {}).values() if answers else ()
    exact_hits = [
        *exact,
        *(summary.hits for summary in measured if summary.hits_exact and summary.hits is not None),
    ]
    hits = exact_hits[0] if exact_hits else round(documents * blog_hits / BLOG_DOCUMENTS)
    requests = max((summary.samples + summary.warmup_samples for summary in measured), default=0)
    if hits * requests <= 0:
        return None
    ratio = blog_hits * blog_requests / (hits * requests)
    way, times = ("fewer", ratio) if ratio >= 1 else ("more", 1 / ratio)
    distance = f"{rounded_ratio(times)} times {way} document visits than in the original benchmark"
    text = f"{distance} ({hits:,} x {requests:,} here, {blog_hits:,} x {blog_requests:,} there)"
    return ScaleNote(hits, requests, blog_hits, blog_requests, ratio, text)


def rounded_ratio(ratio: float) -> str:
    """Two significant digits: `1.6`, `59`, `1,800`."""
    return f"{ratio:.1f}" if ratio < _WHOLE_NUMBERS_FROM else f"{float(f'{ratio:.2g}'):,.0f}"
