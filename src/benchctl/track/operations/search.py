"""Operations that search, send requests as they are, or pause: one class a type, with Rally's keys."""

from typing import Any, Literal

import msgspec

from benchctl.track.operations.bulk import Bulk
from benchctl.track.operations.common import MOST_WAIT_S, Asking, Operation, Varying, demand, url_param
from benchctl.track.operations.composite import composite_at, composites

__all__ = [
    "MOST_WAIT_S",
    "Asking",
    "Bulk",
    "CompositeAgg",
    "MultiSearch",
    "OneSearch",
    "Operation",
    "PaginatedSearch",
    "RawRequest",
    "ScrollSearch",
    "Search",
    "Sleep",
    "Varying",
    "url_param",
]


class _WithBody(Asking, frozen=True, kw_only=True):
    """Operations that ask one thing, perhaps in several pages.

    Attributes:
        body: the JSON body.
        with_point_in_time_from: name of the operation whose point in time is searched; within a composite
            only.
    """

    body: dict[str, Any] = msgspec.field(default_factory=dict)
    with_point_in_time_from: str | None = None

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return self.body


class _Paging(_WithBody, frozen=True, kw_only=True):
    """Operations that read an answer page by page.

    Attributes:
        pages: how many pages at most; `all` reads to the end.
        results_per_page: hits or buckets a page; None leaves it to the body.
        cache: whether the node may answer from its request cache; None leaves it to the index.
        detailed_results: taken from Rally's tracks; answers are always read in full detail.
        response_compression_enabled: whether the node may compress its answers; not unless this says so.
    """

    pages: int | Literal["all"] = "all"
    results_per_page: int | None = None
    cache: bool | None = None
    detailed_results: bool = False
    response_compression_enabled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(*_page_rules(self.pages, self.results_per_page))


def _page_rules(
    pages: int | Literal["all"] | None, results_per_page: int | None
) -> tuple[tuple[bool, str], ...]:
    return (
        (not isinstance(pages, int) or pages >= 1, "pages must be at least 1, or 'all'"),
        (results_per_page is None or results_per_page >= 1, "results-per-page must be at least 1"),
    )


class Search(_WithBody, frozen=True, kw_only=True, tag="search"):
    """One search; with `pages` it scrolls, as in Rally.

    Attributes:
        cache: whether the node may answer from its request cache; None leaves it to the index.
        pages: how many pages to scroll through; None asks once.
        results_per_page: hits a page.
        detailed_results: taken from Rally's tracks; answers are always read in full detail.
        response_compression_enabled: whether the node may compress its answers. They are not unless this says
            so: unpacking costs the driver time.
        profile_query: OpenSearch Benchmark's word for `profile` in the body.
        profile_metrics: taken from its workloads; benchctl draws no figures from profiles.
        profile_metrics_sample_size: as `profile_metrics`.
        calculate_recall: taken from its workloads; only searches for vectors have a recall.
    """

    cache: bool | None = None
    pages: int | Literal["all"] | None = None
    results_per_page: int | None = None
    detailed_results: bool = False
    response_compression_enabled: bool = False
    profile_query: bool = False
    profile_metrics: list[Any] | None = None
    profile_metrics_sample_size: int = 0
    calculate_recall: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            *_page_rules(self.pages, self.results_per_page),
            (
                self.pages is None or self.with_point_in_time_from is None,
                "with-point-in-time-from and pages do not mix: a scroll has a point in time of its own",
            ),
        )


class PaginatedSearch(_Paging, frozen=True, kw_only=True, tag="paginated-search"):
    """A search that goes on with `search_after`.

    Its body needs a sort, best one that no two documents share: of hits that sort alike, those that do not
    fit on a page are on none.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            ("sort" in self.body, "body: a paginated-search needs a sort"),
            ("search_after" not in self.body, "body: search_after is what pages are asked for with"),
            (not self.body.get("from"), "body: search_after and from do not mix"),
        )


class ScrollSearch(_Paging, frozen=True, kw_only=True, tag="scroll-search"):
    """A search that goes on with a scroll, which is cleared at the end.

    As in Rally, hits come in index order unless the body sorts them, and a scroll is kept for ten seconds
    from page to page unless the request parameters say `scroll`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (
                self.with_point_in_time_from is None,
                "with-point-in-time-from means nothing to a scroll, which has a point in time of its own",
            )
        )


class CompositeAgg(_Paging, frozen=True, kw_only=True, tag="composite-agg"):
    """A composite aggregation that goes on with its `after_key`; it may stand inside of others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        found = list(composites(self.body))
        demand(
            (len(found) == 1, f"body: exactly one composite aggregation is needed, found {len(found)}"),
            (
                all("after" not in composite_at(self.body, names) for names in found),
                "body: after is what pages are asked for with",
            ),
            (
                all("sources" in composite_at(self.body, names) for names in found),
                "body: a composite aggregation needs sources",
            ),
        )


class OneSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """One search of a batch.

    Attributes:
        body: its body.
        index: what it searches; None means the operation's.
        header: further keys of its header line.
    """

    body: dict[str, Any]
    index: str | None = None
    header: dict[str, Any] = {}


class MultiSearch(Asking, frozen=True, kw_only=True, tag="multi-search"):
    """Several searches in one request to `_msearch`.

    Attributes:
        searches: what is asked, each with values of its own.
    """

    searches: tuple[OneSearch, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((len(self.searches) > 0, "searches is empty"))

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return [[search.header, search.body] for search in self.searches]


class RawRequest(Varying, frozen=True, kw_only=True, tag="raw-request"):
    """Any request.

    Attributes:
        path: with its leading slash.
        method: of HTTP.
        ignore: status codes that count as success beside the 2xx.
        body: one JSON value, or lines of them, which go out as NDJSON; a text goes out as it is.
    """

    path: str
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD"] = "GET"
    ignore: tuple[int, ...] | int = ()
    body: dict[str, Any] | list[Any] | str = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((self.path.startswith("/"), "path must begin with '/'"))

    @property
    def accepted(self) -> frozenset[int]:
        """Status codes that count as success beside the 2xx."""
        own = (self.ignore,) if isinstance(self.ignore, int) else self.ignore
        return super().accepted | frozenset(own)

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return [self.path, self.body]


class Sleep(Operation, frozen=True, kw_only=True, tag="sleep"):
    """A pause.

    Attributes:
        duration: seconds.
    """

    duration: float

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((0 <= self.duration <= MOST_WAIT_S, f"duration must be from 0 to {MOST_WAIT_S:,} seconds"))
