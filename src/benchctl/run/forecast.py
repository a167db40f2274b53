"""What a run announces before it starts: how it will end, and what to expect from earlier runs."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from benchctl.corpus.generated import corpus_name, needed_bytes
from benchctl.engine.prepared_index import BYTES_PER_DOCUMENT, BYTES_PER_DOCUMENT_AT_REST
from benchctl.home import Home
from benchctl.report.numbers import counted, duration
from benchctl.results.plan import Plan
from benchctl.results.store import RunStore
from benchctl.run.bench import Observer
from benchctl.run.documents import is_generated
from benchctl.run.plan import boots
from benchctl.run.stopping import stop_text
from benchctl.stats.history import History, collect_history

# Reading them delays the start, by about 2 ms each.
_MOST_RECORDS = 100


# Bytes: an archive from Maven Central, unpacked with its class-data-sharing archive, and a Java runtime.
_ARCHIVE_BYTES = {"elasticsearch": 81e6, "opensearch": 46e6}
_UNPACKED_BYTES = {"elasticsearch": 175e6, "opensearch": 125e6}
_RUNTIME_BYTES = 120e6
# Seconds, measured on two cores: fetching and unpacking; an index without its documents, with its answers.
_ENGINE_S = 20.0
_INDEX_S = 20.0
_DOCUMENTS_PER_S = 12_000.0
# Without earlier runs: a node's start and stop, and a request.
_START_S = 5.0
_REQUEST_S = 0.003
_REQUEST_S_PER_DOCUMENT = 1e-8


def preparation(plans: Sequence[tuple[Plan, float | None]], home: Home) -> list[str]:
    """The steps of runs and roughly what they take, as lines for readers; nothing is done.

    `plans` come with the seconds of one fork of every variant, None without earlier runs; what `home` has
    already is
    looked up by name.
    """
    steps: list[str] = []
    download = disk = seconds = 0.0
    engines = dict.fromkeys(engine for plan, _ in plans for engine in _engines(plan))
    for engine, version in engines:
        if not (home.artifacts / f"{engine}-{version}.zip").exists():
            steps.append(f"fetch {engine} {version}")
            download += _ARCHIVE_BYTES[engine]
            disk += _ARCHIVE_BYTES[engine] + _UNPACKED_BYTES[engine]
            seconds += _ENGINE_S
    if engines and not any(home.jdks.iterdir()):
        disk += _RUNTIME_BYTES
    for documents, seed in dict.fromkeys(
        (plan.of(spec).corpus.documents, plan.corpus.seed)
        for plan, _ in plans
        for spec in plan.variants
        if is_generated(plan) and (plan.origin == "empty" or _engines(plan))
    ):
        if not (home.corpora / corpus_name(documents, seed)).exists():
            steps.append(f"generate {documents:,} documents")
            disk += needed_bytes(documents)
    builds = _builds(plan for plan, _ in plans)
    for (engine, version, track, documents), wanted in builds.items():
        missing = wanted - len(list(home.indices.glob(f"{engine}-{version}-{track}-{documents}-*")))
        if missing > 0:
            steps.append(f"index on {engine} {version}{f', {missing} times' if missing > 1 else ''}")
            disk += documents * (BYTES_PER_DOCUMENT + (missing - 1) * BYTES_PER_DOCUMENT_AT_REST)
            seconds += missing * (_INDEX_S + documents / _DOCUMENTS_PER_S)
    measured = 0
    for plan, block_s in plans:
        forks = plan.forks + (0 if plan.evidence is None else plan.evidence.extra_forks)
        measured += forks * len(plan.variants)
        seconds += forks * (block_s or len(plan.variants) * _fork_s(plan))
    steps.append(f"measure {counted(measured, 'fork')}")
    sizes = ((download, "to download"), (disk, "of disk"))
    size = "".join(f"{amount / 1e9:.1f} GB {what}, " for amount, what in sizes if amount)
    return [f"steps: {'; '.join(steps)}", f"in all about {size}{duration(seconds)}"]


def _engines(plan: Plan) -> list[tuple[str, str]]:
    """(engine, version) of the nodes that benchctl starts, each once."""
    return list(dict.fromkeys((spec.engine, spec.version) for spec in plan.variants if spec.target is None))


def _builds(plans: Iterable[Plan]) -> dict[tuple[str, str, str, int], int]:
    """(engine, version, track, documents) of each prepared index -> number of builds."""
    found: dict[tuple[str, str, str, int], int] = {}
    for plan in plans:
        for spec in plan.variants if plan.origin == "prepared" else ():
            if spec.target is None:
                count = plan.of(spec).corpus.documents
                index = (spec.engine, spec.version, PurePath(plan.track).stem, count)
                found[index] = max(plan.index_builds, found.get(index, 0))
    return found


def _fork_s(plan: Plan) -> float:
    """Estimate for one fork."""
    request_s = _REQUEST_S + _REQUEST_S_PER_DOCUMENT * plan.corpus.documents
    tasks = [task for challenge in (*plan.warmup_challenges, *plan.schedules) for task in challenge.schedule]
    asking = sum(
        task.planned_s or request_s * task.clients * ((task.warmup_iterations or 0) + (task.iterations or 1))
        for task in tasks
    )
    return asking + _START_S * len(boots(plan))


def earlier_runs(store: RunStore, plan: Plan, fingerprint: str, *, most: int | None = None) -> History:
    """The history of a plan on a host, from the newest `most` runs of a store."""
    return collect_history(itertools.islice(store.newest(), most), plan, fingerprint)


def announce(store: RunStore, plan: Plan, fingerprint: str, observer: Observer) -> float:
    """Announce a run; returns the expected seconds of a fork, on average over the variants."""
    # Imports scipy for a sixth of a second, too long for `benchctl run --help`.
    from benchctl.report.forecast import forecast_lines  # noqa: PLC0415 - see above

    rule = stop_text(plan)
    if rule:
        observer.note(rule)
    history = earlier_runs(store, plan, fingerprint, most=_MOST_RECORDS)
    for line in forecast_lines(history, plan):
        observer.note(line)
    block_s = history.block_s(plan)
    return _fork_s(plan) if block_s is None else block_s / len(plan.variants)
