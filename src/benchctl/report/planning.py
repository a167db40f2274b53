"""What to run to see more: scale, detectable differences, and the command line."""

import math
import shlex
from collections.abc import Iterator, Sequence

import msgspec

from benchctl.report.numbers import documents, percent
from benchctl.results.cpus import cpu_list
from benchctl.results.plan import Plan, RedlineSpec, StopSpec, VariantSpec
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import Comparison
from benchctl.stats.power import forks_needed, mde, mde_paired

_NS_PER_MS = 1e6
_S_PER_MINUTE = 60
_DEFAULT_FORKS = 5
_GROWTH = 2
_WORTHWHILE_PERCENT = 5.0
_LEAST_ITERATIONS = 100
_ITERATION_GROWTH = 3
_DOCUMENT_GROWTH = 4
_MOST_DOCUMENTS = 4_000_000
_SHORT_NAMES = {"elasticsearch": "es", "opensearch": "os"}
_ORDINARY_VARIANTS = ("es", "os")


def planning_lines(analysis: Analysis, plan: Plan | None) -> list[str]:
    """Sentences for below the tables.

    Args:
        analysis: what was found.
        plan: what was run; without it there is no command to propose.
    """
    lines = [f"Scale: {text}" for text in _scale_texts(analysis)]
    forks = proposed_forks(analysis)
    noisiest = _noisiest(analysis)
    if noisiest is not None:
        lines.append(_precision_text(noisiest, forks))
    if plan is not None:
        # With the rule that ended this run, the next one would end as early.
        proposal = command(
            msgspec.structs.replace(plan, stop=None),
            forks=forks,
            corpus_documents=_proposed_documents(analysis),
            iterations=_proposed_iterations(analysis, plan),
        )
        lines.append(f"To see more: {proposal}")
    return lines


def proposed_forks(analysis: Analysis) -> int:
    """The default when there were fewer, else twice as many."""
    fewest = min(analysis.forks.values(), default=0)
    return _DEFAULT_FORKS if fewest < _DEFAULT_FORKS else _GROWTH * fewest


def command(
    plan: Plan, *, forks: int, corpus_documents: int, iterations: int | None, tags: Sequence[str] = ()
) -> str:
    """The command line that repeats a plan with other sizes.

    Args:
        plan: what to repeat.
        forks: passes of every variant.
        corpus_documents: documents of the corpus.
        iterations: measured requests of every task; None keeps them.
        tags: of the run that it describes.
    """
    if plan.redline is not None:
        words = ["benchctl", "redline", *_redline_words(plan.redline)]
    else:
        words = ["benchctl", "run"]
        words += _repeated("--challenge", [plan.sources.get(one.name, one.name) for one in plan.schedules])
    words += _variant_words(plan.variants)
    warmups = [plan.sources.get(one.name, one.name) for one in plan.warmup_challenges]
    words += _repeated("--warmup-challenge", warmups)
    words += _setting_words(plan)
    params = dict(plan.params)
    if iterations is not None:
        params["iterations"] = iterations
    words += _repeated("--param", [f"{name}={_plain(value)}" for name, value in params.items()])
    if _starts_nodes(plan):
        words += ["--docs", documents(corpus_documents)]
    words += _repeated("--tag", tags)
    return shlex.join([*words, *_stop_words(plan.stop), "--forks", str(max(forks, plan.index_builds))])


def _stop_words(stop: StopSpec | None) -> list[str]:
    """When it may end with fewer forks; the least number of them is no option."""
    if stop is None:
        return []
    words = [] if stop.precision is None else ["--precision", f"{_exact(100 * stop.precision)}%"]
    if stop.budget_s is None:
        return words
    minutes = stop.budget_s / _S_PER_MINUTE
    return [
        *words,
        "--budget",
        f"{_exact(minutes)}m" if minutes.is_integer() else f"{_exact(stop.budget_s)}s",
    ]


def _starts_nodes(plan: Plan) -> bool:
    """Whether any variant is benchctl's own: clusters that run already have their memory and documents."""
    return any(spec.target is None for spec in plan.variants)


def _redline_words(search: RedlineSpec) -> list[str]:
    """All of a search: what it found depends on each of these."""
    words = ["--operation", search.operation]
    words += ["--slo", f"p{search.percentile:g}={_exact(search.limit_ns / _NS_PER_MS)}ms"]
    words += ["--clients", str(search.clients), "--schedule", search.schedule]
    words += ["--warm-up", _exact(search.warm_up_s), "--settle", _exact(search.settle_s)]
    words += ["--step-time", _exact(search.step_s), "--tolerance", f"{_exact(100 * search.tolerance)}%"]
    return words if search.max_per_s is None else [*words, "--max-rate", _exact(search.max_per_s)]


def _exact(value: float) -> str:
    return f"{value:.12g}"


def _setting_words(plan: Plan) -> list[str]:
    """Options that are not what the command line would take by itself."""
    options = (
        ("--track", plan.track, "big5"),
        ("--restart", plan.restart, "challenge"),
        ("--segments", plan.segments, 1),
        ("--index-builds", plan.index_builds, 1),
        ("--ingest-clients", plan.ingest_clients, 2),
        ("--corpus-seed", plan.corpus.seed, 1),
        ("--transport", plan.transport, "wire"),
        ("--workers", plan.workers, 1),
        ("--on-error", plan.on_error, "continue"),
    )
    words = [word for name, value, ordinary in options if value != ordinary for word in (name, str(value))]
    if _starts_nodes(plan):
        words += ["--heap", f"{plan.heap_mb}m"]
    if plan.pin is not None:
        words += ["--pin", f"node={cpu_list(plan.pin.node)},driver={cpu_list(plan.pin.driver)}"]
    return [*words, "--paired"] if plan.paired else words


def _variant_words(variants: Sequence[VariantSpec]) -> list[str]:
    words = []
    if tuple(spec.name for spec in variants) != _ORDINARY_VARIANTS:
        words += _repeated("--variant", [_variant_text(spec) for spec in variants if spec.target is None])
    for spec in variants:
        words += _target_words(spec)
    words += _repeated(
        "--distribution", [f"{one.name}={one.distribution}" for one in variants if one.distribution]
    )
    return words + _repeated("--jdk", [f"{one.name}={one.jdk}" for one in variants if one.jdk])


def _target_words(spec: VariantSpec) -> list[str]:
    """What names a cluster that runs already; nothing for other variants."""
    target = spec.target
    if target is None:
        return []
    options = (
        ("--target", ",".join(target.hosts)),
        ("--target-ca", target.ca),
        ("--target-auth", target.auth_file),
        ("--restart-command", shlex.join(target.restart_command)),
    )
    words = [word for option, value in options if value for word in (option, f"{spec.name}={value}")]
    return words if target.verify else [*words, "--insecure", spec.name]


def _variant_text(spec: VariantSpec) -> str:
    """As the command line takes it: a name that says all, or a label with what it stands for."""
    base = f"{_SHORT_NAMES[spec.engine]}@{spec.version}"
    if spec.name in (_SHORT_NAMES[spec.engine], base) and not spec.jvm_flags and not spec.settings:
        return spec.name
    flags = [f"jvm:{flag}" for flag in spec.jvm_flags]
    settings = [f"setting:{key}={_plain(value)}" for key, value in spec.settings.items()]
    return f"{spec.name}={','.join([base, *flags, *settings])}"


def _proposed_iterations(analysis: Analysis, plan: Plan) -> int | None:
    """More where a task had not settled or rests on few requests; None to keep them."""
    counts = [task.iterations for one in plan.schedules for task in one.schedule if task.iterations]
    if counts and _codes(analysis) & {"few-samples", "not-steady"}:
        return max(_LEAST_ITERATIONS, _ITERATION_GROWTH * max(counts))
    return None


def _proposed_documents(analysis: Analysis) -> int:
    """More where the corpus is small, up to what a desktop builds in minutes."""
    size = analysis.documents
    if "small-scale" in _codes(analysis) and size < _MOST_DOCUMENTS:
        return min(_MOST_DOCUMENTS, _DOCUMENT_GROWTH * size)
    return size


def _codes(analysis: Analysis) -> set[str]:
    in_rows = {doubt.code for row in analysis.rows for doubt in row.caveats}
    return in_rows | {doubt.code for doubt in analysis.caveats}


def _scale_texts(analysis: Analysis) -> Iterator[str]:
    """One sentence a task, however many metrics it has."""
    seen = {}
    for row in analysis.rows:
        if row.scale is not None:
            challenge = analysis.sections[row.schedule].challenge
            seen[row.schedule, row.task] = f"{challenge}, {row.label}: {row.scale.text}"
    yield from seen.values()


def _noisiest(analysis: Analysis) -> Comparison | None:
    known = [one for row in analysis.rows for one in row.comparisons if one.judged and one.mde_percent]
    return max(known, key=lambda one: one.mde_percent or 0.0, default=None)


def _precision_text(noisiest: Comparison, forks: int) -> str:
    """From the noisiest row: what was visible, what more forks would show, and what a small effect takes."""
    fewest, unit = min(noisiest.replicates), "forks"
    if noisiest.replicate == "build":
        forks, unit = _GROWTH * fewest, "index builds"
    visible = math.log1p((noisiest.mde_percent or 0.0) / 100)
    if noisiest.paired:
        spread = visible / mde_paired(fewest, 1.0)
        then = mde_paired(forks, spread)
    else:
        spread = visible / mde(*noisiest.replicates, 1.0)
        then = mde(forks, forks, spread)
    needed = forks_needed(math.log1p(_WORTHWHILE_PERCENT / 100), spread, paired=noisiest.paired)
    return (
        f"Precision of the noisiest row: {fewest} {unit} see differences from "
        f"{percent(noisiest.mde_percent)}, {forks} would see {percent(100 * math.expm1(then))}; "
        f"{_WORTHWHILE_PERCENT:g} % takes {needed:,} {unit} a side (80 % power)"
    )


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
