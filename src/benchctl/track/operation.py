"""The typed form of operations: what a task repeats, one class a type, with Rally's words and keys."""

from typing import Any, Literal

import msgspec

from benchctl.track.composite import composite_at, composites
from benchctl.track.values import ValueSource

_MOST_RETRIES = 100
_MOST_DOCUMENTS = 2**31 - 1  # that a sample counts

MOST_WAIT_S = 10**6
"""Eleven days: longer than any pause or deadline is meant to be, and short enough for every clock."""


def _demand(*rules: tuple[bool, str]) -> None:
    """Refuse an operation that breaks a rule; msgspec puts the place in the file behind it.

    Raises:
        ValueError: the first one broken.
    """
    for holds, text in rules:
        if not holds:
            raise ValueError(text)


class Operation(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="kebab",
    omit_defaults=True,
    kw_only=True,
    tag_field="operation-type",
):
    """What all operations have in common.

    Attributes:
        name: what tasks and tables call it.
        request_params: query parameters of the URL.
        request_timeout: seconds until a request counts as timed out; None means the driver's default.
        headers: further HTTP headers.
        opaque_id: sent as X-Opaque-Id.
        retry_on_429: how often a request that the node rejects as too many is sent again.
        include_in_reporting: whether tables show it; None means as its type usually is.
        meta: the user's own notes.
        tags: names that filters select it by.
    """

    name: str
    request_params: dict[str, Any] = {}
    request_timeout: float | None = None
    headers: dict[str, str] = {}
    opaque_id: str | None = None
    retry_on_429: int = msgspec.field(default=0, name="retry-on-429")
    include_in_reporting: bool | None = None
    meta: dict[str, Any] = {}
    tags: tuple[str, ...] | str = ()

    def __post_init__(self) -> None:
        texts = [*self.headers, *self.headers.values(), self.opaque_id or ""]
        _demand(
            (self.name != "", "the operation's name is empty"),
            (
                self.request_timeout is None or 0 < self.request_timeout <= MOST_WAIT_S,
                f"request-timeout must be above 0, at most {MOST_WAIT_S:,} seconds",
            ),
            (
                0 <= self.retry_on_429 <= _MOST_RETRIES,
                f"retry-on-429 must be from 0 to {_MOST_RETRIES}",
            ),
            (
                all(text.isascii() and text.isprintable() for text in texts),
                "a header with a line break, another control character or one outside of ASCII",
            ),
        )

    @property
    def type_name(self) -> str:
        """Rally's name of its type."""
        return str(self.__struct_config__.tag)

    @property
    def reported(self) -> bool:
        """Whether tables show it."""
        if self.include_in_reporting is not None:
            return self.include_in_reporting
        return isinstance(self, Varying | Bulk)

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "ops"

    @property
    def shares_work(self) -> bool:
        """Whether the clients of a task take their work from one source, such as the corpus."""
        return False

    @property
    def ends(self) -> bool:
        """Whether it ends by itself, however long a task could go on."""
        return False

    @property
    def url_params(self) -> dict[str, str]:
        """The query parameters as engines read them: `true` and `false`, lists separated by commas."""
        return {key: url_param(value) for key, value in self.request_params.items()}


def url_param(value: Any) -> str:  # noqa: ANN401 - whatever JSON the track holds
    """One value of a query string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(url_param(item) for item in value)
    return "" if value is None else str(value)


class Varying(Operation, frozen=True, kw_only=True):
    """Operations whose requests may differ from one to the next.

    Attributes:
        values: name -> where the values of `${name}` come from, wherever that stands in what is sent.
    """

    values: dict[str, ValueSource] = msgspec.field(default_factory=dict)

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        raise NotImplementedError


class Asking(Varying, frozen=True, kw_only=True):
    """Operations that search.

    Attributes:
        index: what to search; None means the track's own index.
    """

    index: str | None = None

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "queries"


class _WithBody(Asking, frozen=True, kw_only=True):
    """Operations that ask one thing, perhaps in several pages.

    Attributes:
        body: the JSON body.
    """

    body: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return self.body


class _Paging(_WithBody, frozen=True, kw_only=True):
    """Operations that read an answer page by page.

    Attributes:
        pages: how many pages at most; `all` reads to the end.
        results_per_page: hits or buckets a page; None leaves it to the body.
    """

    pages: int | Literal["all"] = "all"
    results_per_page: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand(*_page_rules(self.pages, self.results_per_page))


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
    """

    cache: bool | None = None
    pages: int | Literal["all"] | None = None
    results_per_page: int | None = None
    detailed_results: bool = False
    response_compression_enabled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand(*_page_rules(self.pages, self.results_per_page))


class PaginatedSearch(_Paging, frozen=True, kw_only=True, tag="paginated-search"):
    """A search that goes on with `search_after`.

    Its body needs a sort, best one that no two documents share: of hits that sort alike, those that do not
    fit on a page are on none.
    """

    cache: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand(
            ("sort" in self.body, "body: a paginated-search needs a sort"),
            ("search_after" not in self.body, "body: search_after is what pages are asked for with"),
            (not self.body.get("from"), "body: search_after and from do not mix"),
        )


class ScrollSearch(_Paging, frozen=True, kw_only=True, tag="scroll-search"):
    """A search that goes on with a scroll, which is cleared at the end.

    As in Rally, hits come in index order unless the body sorts them, and a scroll is kept for ten seconds
    from page to page unless the request parameters say `scroll`.
    """

    cache: bool | None = None


class CompositeAgg(_Paging, frozen=True, kw_only=True, tag="composite-agg"):
    """A composite aggregation that goes on with its `after_key`; it may stand inside of others."""

    cache: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        found = list(composites(self.body))
        _demand(
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
        _demand((len(self.searches) > 0, "searches is empty"))

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
        _demand((self.path.startswith("/"), "path must begin with '/'"))

    @property
    def ignored(self) -> frozenset[int]:
        """Status codes that count as success beside the 2xx."""
        return frozenset((self.ignore,) if isinstance(self.ignore, int) else self.ignore)

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return [self.path, self.body]


class Bulk(Operation, frozen=True, kw_only=True, tag="bulk"):
    """Documents of the corpus, many a request; it ends with the corpus unless it is looped.

    Attributes:
        bulk_size: documents a request.
        batch_size: taken from Rally's tracks; benchctl reads ahead by itself.
        ingest_percentage: how much of the corpus to send, in whole requests, rounded up.
        index: where to; None means the track's own index.
        pipeline: ingest pipeline.
        refresh: the request's refresh parameter.
        looped: start over at the end of the corpus.
        conflicts: give documents ids, of which some repeat; new ids count up, or come in random order.
        conflict_probability: per cent of documents that get the id of an earlier one.
        on_conflict: what is sent for them.
        recency: 0 to 1; how much ids that are new are preferred to repeat, 0 for not at all.
        detailed_results: taken from Rally's tracks; failures are always counted by document.
        timeout: the request's timeout parameter.
    """

    bulk_size: int
    batch_size: int | None = None
    ingest_percentage: float = 100.0
    index: str | None = None
    pipeline: str | None = None
    refresh: bool | Literal["true", "false", "wait_for"] | None = None
    looped: bool = False
    conflicts: Literal["sequential", "random"] | None = None
    conflict_probability: float = 25.0
    on_conflict: Literal["index", "update"] = "index"
    recency: float = 0.0
    detailed_results: bool = False
    timeout: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand(
            (
                1 <= self.bulk_size <= _MOST_DOCUMENTS,
                f"bulk-size must be at least 1, at most {_MOST_DOCUMENTS:,}",
            ),
            (0 < self.ingest_percentage <= 100, "ingest-percentage must be above 0, at most 100"),  # noqa: PLR2004 - per cent
            (0 <= self.conflict_probability <= 100, "conflict-probability must be from 0 to 100"),  # noqa: PLR2004 - per cent
            (0 <= self.recency <= 1, "recency must be from 0 to 1"),
        )

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "docs"

    @property
    def shares_work(self) -> bool:
        """Whether the clients of a task take their work from one source, such as the corpus."""
        return True

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: with the corpus."""
        return not self.looped


class Sleep(Operation, frozen=True, kw_only=True, tag="sleep"):
    """A pause.

    Attributes:
        duration: seconds.
    """

    duration: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _demand((0 <= self.duration <= MOST_WAIT_S, f"duration must be from 0 to {MOST_WAIT_S:,} seconds"))
