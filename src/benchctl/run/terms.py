"""Terms of the index as changing values: asked once, kept beside the prepared index, and with the run."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, cycle, islice
from typing import Any, Final

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.plan import Plan
from benchctl.run.bench import Bench
from benchctl.run.session import AnySubject, Start, Subject, TargetSubject
from benchctl.run.work import default_target
from benchctl.track.model import Challenge, Track, TrackOperation
from benchctl.track.values import POOL_LIMIT, Terms

_PAGE: Final = 10_000
_MOST_TERMS: Final = 1_000_000

_Counts = dict[str, list[tuple[Any, int]]]
"""Field -> its terms and how many documents each hits, by term."""


def with_terms(bench: Bench, plan: Plan, track: Track, subjects: Sequence[AnySubject]) -> tuple[Plan, Track]:
    """The plan and its track with the terms that values of kind `terms` take, of the first variant's index.

    Raises:
        UsageError: If there is no index to be asked, or no such term in it.
        BenchctlError: If the index cannot be asked.
    """
    fields = dict.fromkeys(field for _, _, one in _unasked(track.operations) for field in one.fields)
    if not fields:
        return plan, track
    if plan.origin == "empty":
        raise UsageError(
            "values of kind 'terms' are those of an index, and the challenge makes its own",
            hint="name them in a list",
        )
    bench.observer.stage(f"terms of {', '.join(fields)}")
    counts = _counts(bench, plan, track, subjects[0], list(fields))
    drawn = {
        (operation, name): _drawn(one, counts, plan, f"{operation} {name}")
        for operation, name, one in _unasked(track.operations)
    }

    def filled(operations: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(operations)
        for (operation, name), items in drawn.items():
            if operation in found:
                one = found[operation]
                values = {**one.values, name: msgspec.structs.replace(one.values[name], items=items)}
                found[operation] = msgspec.structs.replace(one, values=values)
        return found

    def with_items(challenges: Sequence[Challenge]) -> tuple[Challenge, ...]:
        return tuple(
            msgspec.structs.replace(challenge, operations=filled(challenge.operations))
            for challenge in challenges
        )

    asked = msgspec.structs.replace(
        plan, schedules=with_items(plan.schedules), warmup_challenges=with_items(plan.warmup_challenges)
    )
    return asked, msgspec.structs.replace(track, operations=filled(track.operations))


def _unasked(operations: Mapping[str, TrackOperation]) -> Iterator[tuple[str, str, Terms]]:
    for operation, one in operations.items():
        for name, source in getattr(one, "values", {}).items():
            if isinstance(source, Terms) and not source.items:
                yield operation, name, source


def _drawn(source: Terms, counts: _Counts, plan: Plan, key: str) -> tuple[Any, ...]:
    documents = plan.corpus.documents if source.below < 1 else 1
    least, below = source.least * documents, source.below * documents
    known = [(field, term, count) for field in source.fields for term, count in counts[field]]
    orders: defaultdict[int, list[Any]] = defaultdict(list)
    for field, term, count in known:
        if least <= count < below:
            one, order = (term, 0) if isinstance(source.field, str) else ({field: term}, len(str(count)))
            orders[order].append(one)
    if not orders:
        most = max((count for _, _, count in known), default=0)
        raise UsageError(
            f"no term of {' or '.join(source.fields)} hits from {least:g} to {below:g} documents ({key}): of "
            f"{len(known):,}, none hits more than {most:,}",
            hint="change least and below, or --docs",
        )
    # By the documents, not the run: nights, and runs that are compared, ask for the same.
    draw = random.Random(f"{plan.corpus.seed} {key}")  # noqa: S311 - has to be repeatable
    size = min(source.size, POOL_LIMIT // len(orders))
    found = [draw.sample(group, min(size, len(group))) for _, group in sorted(orders.items())]
    most = max(map(len, found))
    # In turn, so that orders come equally often however values are picked.
    return tuple(chain.from_iterable(zip(*(islice(cycle(group), most) for group in found), strict=True)))


def _counts(bench: Bench, plan: Plan, track: Track, subject: AnySubject, fields: Sequence[str]) -> _Counts:
    target = default_target(plan, track)
    if isinstance(subject, TargetSubject):
        with SearchClient(subject.facts.engine, subject.address.endpoint) as client:
            return {field: _asked(client, target, field) for field in fields}
    if not isinstance(subject, Subject) or subject.index is None:
        raise UsageError("values of kind 'terms' are those of an index", hint="name them in a list")
    kept = subject.index.root / "terms.json"
    known: _Counts = {}
    with suppress(msgspec.DecodeError), disk_errors(f"read {kept}"):
        known = msgspec.json.decode(read_file(kept), type=_Counts) if kept.exists() else {}
    missing = [field for field in fields if field not in known]
    if missing:
        with (
            subject.workspace(bench.home, "terms") as workspace,
            subject.start(
                Start(workspace, workspace.root / "boot", bench.home, plan.heap_mb, target)
            ) as node,
        ):
            known |= {field: _asked(node.client, target, field) for field in missing}
            node.stop(at_once=True)
        with disk_errors(f"write {kept}"):
            kept.write_bytes(msgspec.json.encode(known))
    return known


class _Key(msgspec.Struct):
    term: Any


class _Bucket(msgspec.Struct):
    key: _Key
    doc_count: int


class _Buckets(msgspec.Struct):
    buckets: list[_Bucket]
    after_key: dict[str, Any] | None = None


class _Page(msgspec.Struct):
    aggregations: dict[str, _Buckets]


def _asked(client: SearchClient, target: str, field: str) -> list[tuple[Any, int]]:
    """Yield the terms of a field, in their order, page by page."""
    found: list[tuple[Any, int]] = []
    composite: dict[str, Any] = {"sources": [{"term": {"terms": {"field": field}}}], "size": _PAGE}
    while True:
        body = {"size": 0, "aggs": {"all": {"composite": composite}}}
        try:
            answer = client.request("POST", f"/{target}/_search", body=body)
            page = msgspec.convert(answer, _Page).aggregations["all"]
        except (msgspec.ValidationError, KeyError) as err:
            raise BenchctlError(f"the terms of {field} come in another form than an engine's: {err}") from err
        except NodeRequestError as err:
            raise BenchctlError(
                f"the terms of {field} cannot be asked for: {err.reason}",
                hint="name a field with doc values, such as a keyword or a number",
            ) from err
        found += [(bucket.key.term, bucket.doc_count) for bucket in page.buckets]
        if page.after_key is None or len(page.buckets) < _PAGE:
            return found
        if len(found) >= _MOST_TERMS:
            raise UsageError(f"{field} has more than {_MOST_TERMS:,} terms", hint="name another field")
        composite = {**composite, "after": page.after_key}
