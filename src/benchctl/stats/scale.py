"""How far a measurement is from the scale of the blog's, in documents that the engine had to visit."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

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


def scale_note(hits_per_request: int, requests: int, blog_hits: int, blog_requests: int) -> ScaleNote | None:
    """Compare document visits, which is what trains and exercises the JIT's code.

    Hits are documents that one request matches, requests those of one fork or of the blog; None when
    nothing was visited here, so that there is no ratio.
    """
    visits = hits_per_request * requests
    if visits <= 0:
        return None
    ratio = blog_hits * blog_requests / visits
    if ratio >= 1:
        distance = f"{rounded_ratio(ratio)} times fewer document visits than in the blog"
    else:
        distance = f"{rounded_ratio(1 / ratio)} times more document visits than in the blog"
    text = f"{distance} ({hits_per_request:,} x {requests:,} here, {blog_hits:,} x {blog_requests:,} there)"
    return ScaleNote(hits_per_request, requests, blog_hits, blog_requests, ratio, text)


def operation_scale(
    operation: str, challenge: str, *, hits: int | None, requests: int, documents: int
) -> ScaleNote | None:
    """Return the distance of one task whose operation and challenge the blog has; None if it has not.

    `requests` are those of one fork, warm-up included; `hits` None falls back to the blog's share of this
    corpus of `documents`.
    """
    blog_hits, blog_requests = BLOG_HITS.get(operation), BLOG_REQUESTS.get(challenge)
    if blog_hits is None or blog_requests is None:
        return None
    estimated = round(documents * blog_hits / BLOG_DOCUMENTS)
    return scale_note(estimated if hits is None else hits, requests, blog_hits, blog_requests)


def rounded_ratio(ratio: float) -> str:
    """Two significant digits: `1.6`, `59`, `1,800`."""
    return f"{ratio:.1f}" if ratio < _WHOLE_NUMBERS_FROM else f"{float(f'{ratio:.2g}'):,.0f}"
