"""Operations, what a task repeats: the keys that every type has, and the kinds of types."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import msgspec

from benchctl.errors import suggestion
from benchctl.track.template import PATH_FORM, Label, Name
from benchctl.track.values import Entry, ValueSource

_SETTLES_AFTER: Final = "settles-after"
_ALONE: Final = 1.6  # so many times as many

MOST_WAIT_S = 10**6
"""Eleven days: longer than any pause or deadline is meant to be, and short enough for every clock."""

PositiveSeconds = Annotated[float, msgspec.Meta(gt=0, le=MOST_WAIT_S)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Codes = tuple[int, ...] | int
"""Status codes, one or several."""
UrlPath = Annotated[str, msgspec.Meta(pattern=PATH_FORM)]
_HeaderText = Annotated[str, msgspec.Meta(pattern=r"^[ -~]*\Z")]  # printable ASCII, on one line
# Keys that say the same, of any operation.
_EXCLUSIVE = (("index", "data_stream"), ("type", "data_stream"), ("indices", "data_streams"))


class _LibraryParams(msgspec.Struct):
    """Request parameters that Rally hands to its client library, which sends none of them."""

    request_timeout: PositiveSeconds | None = None
    ignore: Codes = ()


Rules = Iterator[tuple[bool, str]]
"""Rules for several keys: true if one holds, and the text for one that does not."""


ASSERTED = ("hits", "hits_relation", "took", "timed_out", "success", "weight", "success-count", "error-count")
"""Properties of a response that can be asserted, by Rally's names."""


class Assertion(Entry, frozen=True):
    """A condition on a response, checked where assertions are on."""

    property: str  # one of ASSERTED
    condition: Literal["<", "<=", "==", ">=", ">"]  # how it compares with the value
    value: int | float | str | bool  # a number, a text or a truth

    def __post_init__(self) -> None:
        if self.property not in ASSERTED:
            raise ValueError(f"unknown property '{self.property}': {suggestion(self.property, ASSERTED)}")


Progress = Literal["recovered", "snapshot complete", "no snapshot running"]
"""Polled request of an operation that waits."""


@dataclass(frozen=True)
class Form:
    """The request of an operation that has a single one, in words that do not depend on how it is sent."""

    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD"]
    # `{key}` is a key of the operation, `{index}` its index or the track's, `{/index}` a further segment
    # where the operation names one.
    path: str
    opensearch: str | None = None  # the path there, where it is another
    # Keys of the operation that go into the query where they say something; the request parameters come
    # before them.
    query: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # those that always do, true or false
    # What else the query has unless the request parameters say otherwise.
    params: Mapping[str, str] = field(default_factory=dict)
    # Makes it of the operation; None for the operation's own `body`, where it has that key.
    body: "Callable[[Any], Any] | None" = None
    condition_at: str = ""  # a path in front of that of the operation's `condition`, where it has one
    until: Progress | None = None  # what the answer must say; the request is sent again until it does
    every: str = ""  # the key of the operation with the seconds between these requests
    # Whether a missing thing is not a failure, or the key of the operation that says so.
    missing: bool | str = False
    slow: bool = False  # whether it takes as long as it takes, and its time is what is measured


class Operation(Entry, frozen=True, kw_only=True, tag_field="operation-type"):
    """The keys and traits of every operation."""

    shown: ClassVar[bool] = False
    """True if tables show operations of this type by default; else they are administrative."""

    counts: ClassVar[str] = "ops"
    """Unit of this type's throughput."""

    reads: ClassVar[bool] = False
    """True if this type changes nothing and so may run on a foreign cluster."""

    shares_work: ClassVar[bool] = False
    """True if the clients of a task take their work from one source, such as the corpus."""

    wire: ClassVar[Form | None] = None
    """The request of this type; None where there are several, or where it depends on more than its keys."""

    name: Name
    # Query parameters of the URL. Two of them are Rally's client's own, and stay out of it: `request_timeout`
    # (as the key of the operation) and `ignore` (status codes that count as success).
    request_params: dict[str, Any] = msgspec.field(default_factory=dict)
    # Seconds until a request counts as timed out; None means the driver's default.
    request_timeout: PositiveSeconds | None = None
    headers: dict[_HeaderText, _HeaderText] = msgspec.field(default_factory=dict)
    opaque_id: _HeaderText | None = None  # sent as X-Opaque-Id
    # How often a request that the node rejects as too many is sent again.
    retry_on_429: Annotated[int, msgspec.Meta(ge=0, le=100)] = msgspec.field(default=0, name="retry-on-429")
    include_in_reporting: bool | None = None  # whether tables show it; None means as its type usually is
    # What its answers have to be like; checked where the run says so, as in Rally.
    assertions: tuple[Assertion, ...] = ()
    # The user's own notes. `settles-after` is benchctl's: so many requests warm the JIT up.
    meta: dict[str, Any] = msgspec.field(default_factory=dict)
    tags: tuple[Name, ...] | Name = ()

    def __post_init__(self) -> None:
        for holds, text in chain(self._exclusive(), self._rules()):
            if not holds:
                # Msgspec puts the place in the file behind it.
                raise ValueError(text)
        self._library_params()

    def _exclusive(self) -> Rules:
        for key, other in _EXCLUSIVE:
            both = getattr(self, key, None) is not None and getattr(self, other, None) is not None
            yield not both, f"{key} and {other} cannot be combined".replace("_", "-")

    def _rules(self) -> Rules:
        yield from ()

    def _library_params(self) -> _LibraryParams:
        try:
            return msgspec.convert(self.request_params, _LibraryParams, strict=False)
        except msgspec.ValidationError as err:
            raise ValueError(f"request-params: {str(err).replace('$.', '')}") from err

    @property
    def target(self) -> str | None:
        """The index or data stream that it names; None means the track's own."""
        return getattr(self, "index", None) or getattr(self, "data_stream", None)

    @property
    def constant(self) -> bool:
        """Return whether all of its requests are known to be the same."""
        return False

    def settles_after(self, usual: int, *, alone: bool) -> int:
        """Return how many requests warm it up, `usual` when its track does not say.

        More on a node that runs nothing else: `range` on 100,000 documents takes 2,500 after two other tasks,
        whose code it shares, and 3,500 to 4,000 `alone`.
        """
        count = self.meta.get(_SETTLES_AFTER)
        return round((count if type(count) is int else usual) * (_ALONE if alone else 1.0))

    @property
    def meaning(self) -> Self:
        """The operation as digests know it: when it settles says nothing about what is asked."""
        if _SETTLES_AFTER not in self.meta:
            return self
        own = {key: value for key, value in self.meta.items() if key != _SETTLES_AFTER}
        return msgspec.structs.replace(self, meta=own)

    @property
    def type_name(self) -> str:
        """Rally's name of its type."""
        return str(self.__struct_config__.tag)

    @property
    def reported(self) -> bool:
        """Return whether tables show it."""
        return self.shown if self.include_in_reporting is None else self.include_in_reporting

    @property
    def unit(self) -> str:
        """The unit that its throughput counts per second."""
        return self.counts

    @property
    def content(self) -> Any:
        """The content of its request; None for nothing."""
        if self.wire is None or self.wire.body is None:
            return getattr(self, "body", None)
        return self.wire.body(self)

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself, however long a task could go on."""
        return False

    @property
    def url_params(self) -> dict[str, str]:
        """The query parameters as engines read them: `true` and `false`, lists separated by commas."""
        own = _LibraryParams.__struct_fields__
        return {key: url_param(value) for key, value in self.request_params.items() if key not in own}

    @property
    def deadline_s(self) -> float | None:
        """Seconds until a request counts as timed out; None means the driver's default."""
        return self.request_timeout or self._library_params().request_timeout

    @property
    def accepted(self) -> frozenset[int]:
        """Status codes that count as success beside the 2xx."""
        own, ignored = getattr(self, "ignore", ()), self._library_params().ignore
        codes = ((part,) if isinstance(part, int) else part for part in (own, ignored))
        return frozenset(code for part in codes for code in part)


class Cannot(Operation, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Operations that benchctl cannot do: their tasks are unsupported, and their own keys are passed over."""

    reason: ClassVar[str]
    """Reason in tables."""

    @property
    def ends(self) -> bool:
        """Return True: nothing is sent."""
        return True


def url_param(value: Any) -> str:
    """Return one value of a query string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(url_param(item) for item in value)
    return "" if value is None else str(value)


class Retried(Operation, frozen=True, kw_only=True):
    """Operations that may be done again when they did not go well."""

    retries: Annotated[int, msgspec.Meta(ge=0)] = 0  # how often
    retry_until_success: bool = False  # as often as it takes, after errors, too
    retry_wait_period: PositiveSeconds = 0.5  # seconds before each further try
    retry_on_timeout: bool = True  # whether a request that timed out is tried again
    retry_on_error: bool = False  # whether an answer that is not a success is


class Varying(Operation, frozen=True, kw_only=True):
    """Operations whose requests may differ from one to the next."""

    shown: ClassVar[bool] = True

    # Name -> where the values of `${name}` come from, wherever that stands in what is sent.
    values: dict[str, ValueSource] = msgspec.field(default_factory=dict)

    @property
    def constant(self) -> bool:
        """Return whether all of its requests are the same."""
        return not self.values

    @property
    def templates(self) -> Any:
        """Texts that may contain `${name}`."""
        return self.content


class Asking(Varying, frozen=True, kw_only=True):
    """Operations that search."""

    counts: ClassVar[str] = "queries"

    index: Label | None = None  # what to search; None means the data stream, or else the track's own index
    data_stream: Label | None = None  # the same, for those that are data streams
    type: str | None = None  # of documents, on nodes old enough to have types


class OnIndex(Retried, frozen=True, kw_only=True):
    """Operations on an index or a data stream; None means the track's own."""

    index: Label | None = None  # one, or several with commas
    data_stream: Label | None = None  # the same, for those that are data streams


class Condition(Entry, frozen=True):
    """A value at one place of an answer."""

    path: str  # keys into the answer with dots between them, such as `_all.total.merges.current`
    expected_value: Any  # what has to stand there


class Criterion(Entry, frozen=True):
    """A comparison of a value at one place of an answer with another."""

    # Numbers are compared; `exists` and `not_exists` ask for any value.
    operator: Literal["exists", "not_exists", "gte", "lte", "eq", "neq"]
    value: int | float | str | None = None  # to compare with

    def __post_init__(self) -> None:
        if self.operator not in {"exists", "not_exists"} and not is_number(self.value):
            raise ValueError(f"operator {self.operator} needs a number as its value")


def is_number(value: object) -> bool:
    """Return whether a value is a number, perhaps in a text."""
    try:
        float(str(value))
    except ValueError:
        return False
    return not isinstance(value, bool)


# How engines say that they do not know a query, an aggregation, a language, a path or a part of the body.

UNKNOWN_TYPE = "named_object_not_found_exception"

_UNKNOWN = re.compile(
    r"unknown (?:query|aggregation|suggester|suggestion|rescorer)\b"
    r"|no \[[\w-]+\] registered for \["
    r"|script_lang not supported|stored script with unsupported lang"
    r"|no processor type exists with name"
    r"|no handler found for uri"
    # A node that lacks these takes them for names of indices, which have no such method.
    r"|incorrect http method for uri \[/_(?:sql|query|reindex|data_stream/|transform/)"
    r"|setting \[search\.concurrent[\w.]*\], not recognized"
    r"|unknown key for a ",
    re.IGNORECASE,
)


def names_unknown(reason: str) -> bool:
    """Return whether a node's error means that it lacks the operation, not that the request is wrong."""
    return _UNKNOWN.search(reason) is not None or UNKNOWN_TYPE in reason


# What only further modules do, in the words of a node's errors.
_ONLY_IN_FULL: Final = frozenset(
    {"matrix_stats", "geo_bounds", "geohash_grid", "geotile_grid", "geohex_grid", "csv",
     "date_index_name", "dissect", "dot_expander", "foreach", "grok", "gsub", "html_strip", "kv",
     "rename", "user_agent", "expression", "mustache", "template", "painless", "rank_feature",
     "search_as_you_type", "has_child", "has_parent", "parent_id", "children", "parent", "percolate",
     "_rank_eval", "_reindex", "_update_by_query", "_delete_by_query", "multi_terms",
     "auto_date_histogram", "adjacency_matrix", "significant_text", "_sql", "_query", "_data_stream",
     "_transform"}
)  # fmt: skip


def remedy(reason: str) -> str:
    """Return the distribution that can do what a node lacks, as a clause; empty if unknown."""
    words = [word for named in re.findall(r"\[([^\]]*)\]", reason) for word in re.split(r"[/?&=\s]", named)]
    return " (distribution:official has it)" if _ONLY_IN_FULL.intersection(words) else ""
