"""What a variant answered to every search of a run: kept with the run, to be held against another night's."""

from typing import Any, Final

import msgspec

ANSWERS_VERSION: Final = 1


class TopHits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """Hits at the top that share a place, by content: ids differ from one index build to the next.

    Documents that sort alike come in any order, so that of several only their set is known.

    Attributes:
        first: place of the first of them among the hits, from 1.
        documents: how many share the place.
        by: what they sort by: sort values, or a score.
        digest: of their sources and fields, in no order.
        begins: of the very first hit, the beginning of its source.
    """

    first: int
    documents: int
    by: Any
    digest: str
    begins: str = ""


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """What is left of something that is too large to keep.

    Attributes:
        size_bytes: as JSON.
        entries: buckets of aggregations at all depths, or sort values of hits.
        digest: equal for answers that agree: numbers that are not integers go in as about six digits.
        begins: its beginning, as JSON.
    """

    size_bytes: int
    entries: int
    digest: str
    begins: str


class KeptAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """What a variant answered to one operation.

    Attributes:
        operation: its name.
        question: digest of what was asked: answers to different questions are not compared.
        total: documents matched, counted exactly; None when the engine gave none.
        returned: number of hits in the answer.
        sort_values: of the returned hits, in order; empty where they are cut.
        sort_values_cut: what is left of them when they are large; None when they are whole.
        aggregations: as answered; None where they are cut.
        aggregations_cut: what is left of them when they are large; None when they are whole.
        scores: of the first hits, where nothing else sorts them.
        top: the first hits as far as their order is settled.
        left_out: what is not kept, because right answers may differ in it: names of aggregations, `scores`.
        unsteady: why the answer may change although nothing has; empty when it may not.
        unsupported: the node's reason when it cannot do the operation.
        failed: the node's reason when it refuses the request for another cause.
    """

    operation: str
    question: str
    total: int | None = None
    returned: int = 0
    sort_values: list[Any] = []
    sort_values_cut: Cut | None = None
    aggregations: Any = None
    aggregations_cut: Cut | None = None
    scores: tuple[float, ...] = ()
    top: tuple[TopHits, ...] = ()
    left_out: tuple[str, ...] = ()
    unsteady: str = ""
    unsupported: str | None = None
    failed: str | None = None


class VariantAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What one variant answered. Written as `answers/<variant>.json` in the folder of a run.

    Attributes:
        answers_version: of this format.
        variant: its label.
        anew: whether it was asked for this run, on a node start of its own; else answers may be those that an
            earlier run got of the same index, JVM flags and settings.
        answers: one an operation, in order of first use.
    """

    answers_version: int
    variant: str
    anew: bool
    answers: tuple[KeptAnswer, ...]
