"""Operations in query languages: SQL and ES|QL."""

from typing import Annotated, Any, ClassVar

import msgspec

from benchctl.track.operations.common import Operation


class Sql(Operation, frozen=True, kw_only=True, tag="sql"):
    """A query in SQL; further pages come by its cursor.

    Attributes:
        body: with the `query`.
        pages: how many pages at most.
    """

    shown: ClassVar[bool] = True

    body: dict[str, Any]
    pages: Annotated[int, msgspec.Meta(ge=1)] = 1


class Esql(Operation, frozen=True, kw_only=True, tag="esql"):
    """A query in ES|QL.

    Attributes:
        query: its text.
        filter: a query that documents must match first.
        body: further keys of the body.
        detailed_results: taken from Rally's tracks; answers are always read in full detail.
    """

    shown: ClassVar[bool] = True

    query: str
    filter: dict[str, Any] | None = None
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    detailed_results: bool = False


class EsqlProfile(Operation, frozen=True, kw_only=True, tag="esql-profile"):
    """A query in ES|QL that the node also profiles; benchctl draws no figures from the profile.

    Attributes:
        query: its text.
        filter: a query that documents must match first.
        body: further keys of the body.
    """

    shown: ClassVar[bool] = True

    query: str
    filter: dict[str, Any] | None = None
    body: dict[str, Any] = msgspec.field(default_factory=dict)
