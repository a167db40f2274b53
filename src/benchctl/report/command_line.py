"""A plan as the command line that makes it again."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from benchctl.quantities import COUNT, DURATION, PERCENT, SIZE
from benchctl.results.plan import (
    DEFAULT_LENGTH,
    EvidenceSpec,
    MicroSpec,
    Plan,
    RedlineSpec,
    StopSpec,
    VariantSpec,
    cpu_list,
    is_long,
)
from benchctl.spec import (
    AS_MANY_BUILDS_AS_NEEDED,
    AS_MANY_WORKERS_AS_NEEDED,
    EvidenceEntry,
    RunForm,
    setting_words,
    settings_in,
)

_NS_PER_MS = 1e6
_SHORT_NAMES = {"elasticsearch": "es", "opensearch": "os", "jvm": "jvm"}
_ORDINARY_VARIANTS = ("es", "os")


def command(
    plan: Plan,
    *,
    forks: int | None = None,
    iterations: int | None = None,
    tags: Sequence[str] = (),
) -> str:
    """Return the command line that makes a plan again, or one like it of other sizes; None keeps the plan's.

    Every option that decides about a plan is here; the test that parses what comes out goes through all of
    them.
    """
    stop = plan.stop if forks is None or plan.stop != DEFAULT_LENGTH else None
    ending = ["--forks", str(max(forks or plan.forks, plan.index_builds))]
    if stop is not None and plan.by_time:
        ending = []
    form = RunForm(
        evidence=None if plan.evidence is None else _evidence(plan.evidence),
        tags=tuple(tags),
        **_stop_rule(stop),
    )
    if plan.micro is not None:
        words = ["benchctl", "micro", "run", *_micro_words(plan, plan.micro)]
        return shlex.join([*words, *setting_words(form), *ending])
    params = plan.params if iterations is None else {**plan.params, "iterations": iterations}
    is_short = plan.param_file and any(map(is_long, params.values()))
    given = {name: value for name, value in params.items() if not (is_short and is_long(value))}
    variants = plan.variants if plan.swept is None else plan.swept.bases
    form = msgspec.structs.replace(
        form,
        **{**settings_in(plan), **_builds(plan)},
        **_documents(plan),
        variants=_variant_texts(variants),
        **_targets(variants),
        warmup_challenges=tuple(
            plan.sources.get(warmup_challenge.name, warmup_challenge.name)
            for warmup_challenge in plan.warmup_challenges
        ),
        **_track(plan),
        seed=None if plan.seed == 1 else plan.seed,
        workers=AS_MANY_WORKERS_AS_NEEDED if plan.workers == 1 else plan.workers,
        heap=SIZE.text(plan.heap_mb),
        pin="" if plan.pin is None else f"node={cpu_list(plan.pin.node)},driver={cpu_list(plan.pin.driver)}",
        warmup="as-written" if _as_written(plan, given) else "auto",
    )
    if plan.redline is not None:
        words = ["benchctl", "redline", *_redline_words(plan.redline)]
    else:
        challenges = [plan.sources.get(name, name) for name in plan.challenges]
        words = ["benchctl", "run", *_repeated("--challenge", challenges)]
    words += setting_words(form)
    words += ["--param", f"@{plan.param_file}"] if is_short else []
    words += _repeated("--param", [f"{name}={_param(value)}" for name, value in given.items()])
    words += ["--test-mode"] if plan.test_mode else []
    words += ["--trust"] if plan.plugin is not None else []
    return shlex.join([*words, *ending])


def _builds(plan: Plan) -> dict[str, int]:
    """Return the number of index builds, where it is not what it would be without being given."""
    is_given = plan.index_builds > 1 or plan.corpus.generator == "vectors"
    return {} if is_given else {"index_builds": AS_MANY_BUILDS_AS_NEEDED}


def _track(plan: Plan) -> dict[str, Any]:
    """Return the settings of the track: of one from a repository, with the commit."""
    if (source := plan.track_source) is None:
        return {"track": plan.track}
    return {
        "track": source.track,
        "track_repository": source.repository,
        "track_revision": source.commit,
    }


def _micro_words(plan: Plan, micro: MicroSpec) -> list[str]:
    words = [micro.source, *(["--include", micro.include] if micro.include else [])]
    for spec in plan.variants:
        options = [f"jar:{jar}" for jar in spec.jars] + [f"jvm:{jvm_flag}" for jvm_flag in spec.jvm_flags]
        options += [] if spec.jdk is None else [f"jdk:{spec.jdk}"]
        words += ["--variant", f"{spec.name}={','.join(options)}" if options else spec.name]
    words += _repeated("--param", [f"{name}={','.join(values)}" for name, values in micro.params.items()])
    words += ["--threads", ",".join(map(str, micro.threads))] if micro.threads else []
    return words + (["--jmh", shlex.join(micro.arguments)] if micro.arguments else [])


def _as_written(plan: Plan, params: Mapping[str, Any]) -> bool:
    """Return whether a challenge's own counts are kept where a run would choose others by itself."""
    names = [schedule.name for schedule in plan.schedules]
    names = names if plan.swept is None else [schedule.of for schedule in plan.swept.schedules]
    shipped = [one for name, one in zip(names, plan.schedules, strict=True) if name not in plan.sources]
    choosing = plan.redline is None and not plan.test_mode and not PurePath(plan.track).is_absolute()
    return choosing and any(challenge.only_counts(params) for challenge in shipped)


def _stop_rule(stop: StopSpec | None) -> dict[str, Any]:
    """Return the stop rule's settings; the least number of forks is not one."""
    if stop is None or stop == DEFAULT_LENGTH:
        return {}
    margin = None if stop.margin is None else PERCENT.text(stop.margin)
    budget = None if stop.budget_s is None else DURATION.text(stop.budget_s)
    return {"until_decided": stop.decided, "margin": margin, "budget": budget}


def _evidence(evidence: EvidenceSpec) -> EvidenceEntry:
    return EvidenceEntry(evidence.kinds, evidence.extra_forks or "all")


def _documents(plan: Plan) -> dict[str, Any]:
    """Return the settings of documents: a file that is not a track's, the folders of those that are."""
    files = plan.corpus.files
    held = sum(file.held for file in files)
    wanted = plan.corpus.documents
    filled = any(spec.target is None or spec.target.fill or spec.target.writes for spec in plan.variants)
    filled &= all(spec.documents is None for spec in plan.variants)
    # Without --docs, all documents of the files are taken.
    is_said = filled and wanted > 0 and (not held or wanted < held)
    options: dict[str, Any] = {
        "docs": COUNT.text(wanted) if is_said else None,
        "corpus_seed": plan.corpus.seed or 1,
    }
    tracks = [file for file in files if file.corpus]
    for file in files:
        if not file.corpus:
            named = f"{file.index or file.data_stream}=" if tracks else ""
            options["corpus"] = f"{named}{file.path}"
    track = PurePath(plan.track)
    # Without being told, benchctl looks in the track's folder.
    path = track.parent if track.suffix == ".json" else track
    folders = dict.fromkeys(PurePath(file.path).parent for file in tracks)
    return options | {"corpus_dirs": tuple(str(folder) for folder in folders if folder != path)}


def _redline_words(search: RedlineSpec) -> list[str]:
    """Options of a search, each of which its result depends on."""
    words = ["--operation", search.operation]
    words += ["--slo", f"p{search.percentile:g}={_exact(search.limit_ns / _NS_PER_MS)}ms"]
    words += ["--clients", str(search.clients), "--schedule", search.schedule]
    words += ["--warm-up", _exact(search.warm_up_s), "--settle", _exact(search.settle_s)]
    words += ["--step-time", _exact(search.step_s), "--tolerance", PERCENT.text(search.tolerance)]
    return words if search.max_per_s is None else [*words, "--max-rate", _exact(search.max_per_s)]


def _exact(value: float) -> str:
    return f"{value:.12g}"


def _variant_texts(variants: Sequence[VariantSpec]) -> tuple[str, ...]:
    own = [spec for spec in variants if spec.target is None]
    texts = tuple(map(_variant_text, own))
    return () if texts == _ORDINARY_VARIANTS and len(own) == len(variants) else texts


def _targets(variants: Sequence[VariantSpec]) -> dict[str, Any]:
    """Return the settings of running clusters; how to connect to those of a file is in the file."""
    targets = {spec.name: spec.target for spec in variants if spec.target is not None}
    return {
        "targets": tuple(
            f"{name}={','.join(target.hosts)}" if target.file is None else name
            for name, target in targets.items()
        ),
        "targets_file": next((target.file for target in targets.values() if target.file is not None), ""),
        "allow_writes": any(target.writes for target in targets.values()),
    }


def _variant_text(spec: VariantSpec) -> str:
    """Return a variant as the command line takes it: a sufficient name, or a label with its meaning."""
    base = f"{_SHORT_NAMES[spec.engine]}@{spec.version}"
    options = list(_variant_options(spec))
    # An engine by its own name is a plain one, wherever it comes from.
    if spec.name in (_SHORT_NAMES[spec.engine], base):
        return ",".join([spec.name, *options])
    return f"{spec.name}={','.join([base, *options])}"


def _variant_options(spec: VariantSpec) -> Iterator[str]:
    """Yield what a variant adds to its engine, except what has an option of its own."""
    lists = (("jvm", spec.jvm_flags), ("jar", spec.jars), ("plugin", spec.plugins), ("warmup", spec.warmups))
    mappings = (("setting", spec.settings), ("index", spec.index_settings), ("env", spec.environment))
    if spec.heap_mb is not None:
        yield f"heap:{SIZE.text(spec.heap_mb)}"
    if spec.jdk is not None:
        yield f"jdk:{spec.jdk}"
    if spec.distribution is not None:
        yield f"distribution:{spec.distribution}"
    if spec.start != "direct":
        yield f"start:{spec.start}"
    if spec.index_from is not None:
        yield f"index-from:{spec.index_from}"
    for option, values in lists:
        yield from (f"{option}:{value}" for value in values)
    for option, mapping in mappings:
        yield from (f"{option}:{key}={_plain(value)}" for key, value in mapping.items())


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _param(value: object) -> str:
    """A value that the command line reads again as what it is: a text that could be JSON is quoted."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return msgspec.json.encode(value).decode()


def _plain(value: object) -> str:
    """A setting's value; engines read lists with commas, too."""
    if isinstance(value, list | tuple):
        return ",".join(map(_plain, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
