"""What `--format json` prints: the analysis, and beside it where its forks come from."""

from collections.abc import Iterable
from typing import Any

import msgspec

from benchctl.results.model import EngineFacts, Environment, Imported, IndexFacts, RunRecord, RunStatus
from benchctl.results.plan import CorpusSpec, VariantSpec
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run that forks come from: where it was measured, and on what. Its parts are those of run.json.

    Attributes:
        run: its id.
        created: wall clock, ISO 8601.
        status: how far it got.
        tags: words that its user gave it.
        track: name of the track.
        corpus: which documents; 0 of them where that is unknown.
        heap_mb: of every node, MiB; 0 where unknown.
        seed: of the order of variants, of arrivals and values.
        params: values that were set on the command line.
        variants: as they were asked for.
        environment: the host, and benchctl itself.
        engines: what the variants resolved to.
        indices: variant -> the builds of its prepared index.
        imported: the tool and the files, when benchctl did not measure it.
    """

    run: str
    created: str
    status: RunStatus
    tags: tuple[str, ...]
    track: str
    corpus: CorpusSpec
    heap_mb: int
    seed: int
    params: dict[str, Any]
    variants: tuple[VariantSpec, ...]
    environment: Environment
    engines: tuple[EngineFacts, ...]
    indices: dict[str, tuple[IndexFacts, ...]]
    imported: Imported | None = None


class Document(Analysis, frozen=True, forbid_unknown_fields=True):
    """An analysis with its sources.

    Attributes:
        sources: the runs that the forks come from, in the order of `runs`.
        gate: what a gate made of it; None where none was asked for.
    """

    sources: tuple[Source, ...] = ()
    gate: GateResult | None = None


def document(analysis: Analysis, records: Iterable[RunRecord], gate: GateResult | None = None) -> Document:
    """Put the sources beside an analysis.

    Args:
        analysis: what was found.
        records: the runs that its forks come from; named twice, they are there once.
        gate: its decision, where there is one.
    """
    sources = {record.id: _source(record) for record in records}
    # Nested structs stay as they are: this is no copy in depth.
    return Document(**msgspec.structs.asdict(analysis), sources=tuple(sources.values()), gate=gate)


def _source(record: RunRecord) -> Source:
    plan = record.plan
    return Source(
        run=record.id,
        created=record.created,
        status=record.status,
        tags=record.tags,
        track=plan.track,
        corpus=plan.corpus,
        heap_mb=plan.heap_mb,
        seed=plan.seed,
        params=plan.params,
        variants=plan.variants,
        environment=record.environment,
        engines=record.engines,
        indices={name: record.builds.get(name, (first,)) for name, first in record.indices.items()},
        imported=record.imported,
    )
