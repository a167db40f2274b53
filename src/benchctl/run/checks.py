"""Checks of what is asked for: what can be refused before anything is prepared."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from benchctl.engine.declared import places, whole_settings
from benchctl.errors import UsageError
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.results.plan import (
    HISTORY,
    DataOrigin,
    EngineName,
    EvidenceSpec,
    Plan,
    StopSpec,
    VariantSpec,
)
from benchctl.spec import (
    EvidenceKind,
    check_settings,
)
from benchctl.stats.metrics import check_told_by_clusters, metric, metric_names
from benchctl.track.model import Challenge, Track
from benchctl.track.operations.admin import CreateIndex

if TYPE_CHECKING:
    from benchctl.run.plan import RunSpec

EVIDENCE_KINDS: tuple[EvidenceKind, ...] = get_args(EvidenceKind)


def check_evidence(evidence: EvidenceSpec, variants: Sequence[VariantSpec]) -> None:
    """Check evidence options; evidence comes from the JVM, so benchctl must be the one to start it.

    Raises:
        UsageError: If there is no kind, no fork, or a node that benchctl does not start.
    """
    if not evidence.kinds:
        kinds = ", ".join(EVIDENCE_KINDS)
        raise UsageError("--evidence names no kind of evidence", hint=f"known: {kinds}")
    if evidence.extra_forks < 0:
        raise UsageError("--evidence-forks must be at least 1, or all")
    target = next((variant.name for variant in variants if variant.target is not None), None)
    if target is not None:
        raise UsageError(
            f"--evidence: '{target}' is a cluster that runs already (--target), and benchctl cannot give its "
            "JVM any flags",
            hint="remove --evidence, or measure nodes that benchctl starts (--variant)",
        )


def check_index_settings(
    variants: Iterable[VariantSpec], track: Track, origin: DataOrigin, schedules: Iterable[Challenge]
) -> None:
    """Refuse settings that would have no effect.

    Raises:
        UsageError: If a variant has index settings, and no index is made of the track's body that could get
            them, or its settings make it the same as another variant.
    """
    variants = tuple(variants)
    name = next((spec.name for spec in variants if spec.index_settings), None)
    if name is None:
        return
    operations = (track.operations[task.operation] for schedule in schedules for task in schedule.schedule)
    made = any(isinstance(operation, CreateIndex) and operation.body is None for operation in operations)
    # Data streams have theirs in templates, and no track has both.
    if (origin == "empty" and not made) or not places(track).indices:
        raise UsageError(
            f"variant '{name}' has index settings, but no index is made of the track's body to have them",
            hint="set them where the data are made: in the challenge, or in the track's templates",
        )
    for first, second in itertools.combinations(variants, 2):
        if first.index_settings != second.index_settings and _whole(first, track) == _whole(second, track):
            own = second.index_settings or first.index_settings
            settings = ", ".join(f"{key}={value}" for key, value in own.items())
            raise UsageError(
                f"variants '{first.name}' and '{second.name}' are the same: the track has {settings}, too",
                hint="choose another value",
            )


_OWN_TYPE: Mapping[EngineName, str] = {"elasticsearch": "dense_vector", "opensearch": "knn_vector"}
_KNN = "org.opensearch.plugin:opensearch-knn"
_WITH_KNN = f"write, for instance, --variant os@2.19.1,plugin:{_KNN}:2.19.1.0"


def check_vectors(variants: Iterable[VariantSpec], track: Track) -> None:
    """Refuse nodes that cannot have the fields of vectors in a track's mappings.

    Raises:
        UsageError: If a field is of a type of the other engine, or OpenSearch lacks its plug-in for vectors,
            or native libraries that the field needs, which come with full distributions only.
    """
    for spec in variants:
        if spec.target is not None or spec.place is not None:
            continue
        for index in places(track.of(spec.engine)).indices:
            for name, field in _vector_fields(index.body.mappings):
                where = f"variant '{spec.name}': field '{name}' of track '{track.name}'"
                if field["type"] != _OWN_TYPE[spec.engine]:
                    raise UsageError(
                        f"{where} is a {field['type']}, which {spec.engine} does not have",
                        hint="remove the variant, or give the track's index a body for each engine",
                    )
                if spec.engine != "opensearch" or spec.distribution == "official":
                    continue
                if not any("opensearch-knn" in plugin for plugin in spec.plugins):
                    raise UsageError(f"{where} requires the plug-in opensearch-knn", hint=_WITH_KNN)
                engine = (field.get("method") or {}).get("engine", "faiss, the default,")
                if engine != "lucene" and str(whole_settings(index).get("index.knn")).lower() == "true":
                    raise UsageError(
                        f"{where}: engine {engine} requires native libraries, which opensearch-knn lacks",
                        hint='set "engine": "lucene" in the mapping, or use distribution:official',
                    )


def _vector_fields(mapped: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, field in (mapped.get("properties") or {}).items():
        if isinstance(field, dict):
            if field.get("type") in _OWN_TYPE.values():
                yield name, field
            yield from _vector_fields(field)


def _whole(spec: VariantSpec, track: Track) -> tuple[VariantSpec, list[dict[str, str]]]:
    """Return a variant without name and index settings, and all settings of its indices."""
    settings = [
        {**whole_settings(index), **spec.index_settings} for index in places(track.of(spec.engine)).indices
    ]
    texts = [{key: str(value) for key, value in of_index.items()} for of_index in settings]
    return msgspec.structs.replace(spec, name="", index_settings={}), texts


def checked_hosts(plan: "RunSpec | Plan") -> Hosts:
    """The hosts of a plan, if they reach what is measured.

    Raises:
        UsageError: If the hosts do not, or are not those that the plan was made for.
    """
    hosts = load_hosts(Path(plan.hosts))
    hosts.check_nodes(plan.variants)
    if isinstance(plan, Plan) and hosts.load != plan.load_hosts:
        raise UsageError(
            f"the load came from {', '.join(plan.load_hosts) or 'this host'}, and by {hosts.path} it would "
            f"come from {', '.join(hosts.load) or 'this host'}",
            hint="what more is measured must have the same load: put the old names back",
        )
    return hosts


def check_metrics(plan: Plan, track: Track) -> None:
    """Refuse a requested metric that no task that is shown, or index, has."""
    tasks = [task for schedule in plan.schedules for task in schedule.schedule]
    shown = [task for task in tasks if track.operations[task.operation].reported] or tasks
    for figure in map(metric, metric_names(plan.metrics)):
        if figure.kind.built and plan.origin == "prepared":
            continue
        reasons = [figure.lacking(task, track.operations[task.operation]) for task in shown]
        if all(reasons):
            # Of tasks that lack it for several reasons, the longest is the most specific.
            reason, task = max(zip(reasons, shown, strict=True), key=lambda told: len(told[0]))
            raise UsageError(
                f"--metric {figure.kind.name}: no task reports it; '{task.label}': {reason}",
                hint="list metrics with: benchctl list metrics",
            )


def check_options(options: "RunSpec") -> None:
    """Check what can be checked without files.

    Raises:
        UsageError: If a number is out of range, or variants share a name.
    """
    names = [variant.name for variant in options.variants]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"duplicate variant '{name}'",
                hint=f"label one of them, e.g. --variant again={name}",
            )
    on_target = any(variant.target is not None for variant in options.variants)
    histories = any(axis.startswith(f"{HISTORY}=") for axis in options.sweep)
    rules = (
        (
            histories and on_target,
            "--sweep history: benchctl does not start the nodes of a cluster that runs already",
            "measure nodes that benchctl starts (--variant)",
        ),
        (
            histories and options.restart != "challenge",
            f"--sweep history and --restart {options.restart} both decide what a node ran before",
            "use only one of them",
        ),
        (
            histories and (options.warmup_challenges or any(spec.warmups for spec in options.variants)),
            "--sweep history and warm-up challenges both decide what a node ran before",
            "use only one of them",
        ),
        (not names, "no variant to run", "give --variant"),
        (
            options.index_builds > max(options.forks, 1),
            f"--index-builds {options.index_builds} needs at least {options.index_builds} forks",
            "raise --forks: forks take the builds in turn",
        ),
        (
            options.index_builds > 1 and on_target,
            "--index-builds: a cluster that runs already has the one index that it has",
            "remove --index-builds, or measure nodes that benchctl starts (--variant)",
        ),
        (
            options.page_cache != "as-is" and on_target,
            "--page-cache: benchctl does not start the node, and may not be where it is",
            "remove --page-cache, or measure nodes that benchctl starts (--variant)",
        ),
        (
            options.pin is not None and on_target,
            "--pin: benchctl has no say in the CPUs of a cluster that runs already",
            "remove --pin, or measure nodes that benchctl starts (--variant)",
        ),
    )
    check_settings(options)
    figures = metric_names(options.metrics)
    if on_target:
        check_told_by_clusters(figures)
    for broken, text, hint in rules:
        if broken:
            raise UsageError(text, hint=hint)
    if options.stop is not None:
        _check_stop(options, options.stop)
    if options.evidence is not None:
        check_evidence(options.evidence, options.variants)


def _check_stop(options: "RunSpec", stop: StopSpec) -> None:
    """Refuse a stop rule that cannot be met."""
    rules = (
        (stop.budget_s is not None and stop.budget_s <= 0, "--budget must be more than 0s", ""),
        (
            stop.margin is not None and not (stop.decided and stop.margin > 0),
            "--margin requires --until-decided and must be more than 0%",
            "for a finished run: benchctl compare RUN --margin 5%",
        ),
        (
            stop.decided and options.index_builds > 1,
            "--until-decided cannot be used with --index-builds: it counts forks, not builds",
            "",
        ),
        (
            stop.decided and len(options.variants) == 1,
            "--until-decided requires at least two variants",
            "add another --variant",
        ),
        (
            stop.decided and options.forks < stop.least_forks,
            f"--until-decided needs at least {stop.least_forks} forks, not --forks {options.forks}",
            "raise or remove --forks",
        ),
    )
    for broken, text, hint in rules:
        if broken:
            raise UsageError(text, hint=hint)
