"""A plan as the command line that makes it again."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from benchctl.quantities import COUNT
from benchctl.results.plan import (
    EvidenceSpec,
    MicroSpec,
    NodeSpec,
    Plan,
    RedlineSpec,
    StopSpec,
    VariantSpec,
    cpu_list,
    is_long,
)
from benchctl.spec import setting_words

_NS_PER_MS = 1e6
_S_PER_MINUTE = 60
_SHORT_NAMES = {"elasticsearch": "es", "opensearch": "os", "jvm": "jvm"}
_ORDINARY_VARIANTS = ("es", "os")
_ROLES = "node.roles"


def command(
    plan: Plan,
    *,
    forks: int | None = None,
    corpus_documents: int | None = None,
    iterations: int | None = None,
    tags: Sequence[str] = (),
    until_steady: bool = False,
) -> str:
    """Return the command line that makes a plan again, or one like it of other sizes; None keeps the plan's.

    Every option that decides about a plan is here; the test that parses what comes out goes through all of
    them. `until_steady` lets pilot forks choose for how long tasks warm up.
    """
    if plan.micro is not None:
        return _micro_line(plan, plan.micro, tags, forks or plan.forks)
    if plan.redline is not None:
        words = ["benchctl", "redline", *_redline_words(plan, plan.redline)]
    else:
        words = ["benchctl", "run"]
        words += _repeated("--challenge", [plan.sources.get(name, name) for name in plan.challenges])
    words += _variant_words(plan.variants if plan.swept is None else plan.swept.bases)
    warmups = [plan.sources.get(one.name, one.name) for one in plan.warmup_challenges]
    words += _repeated("--warmup-challenge", warmups)
    words += _setting_words(plan)
    params = dict(plan.params)
    if iterations is not None:
        params["iterations"] = iterations
    if plan.param_file and any(map(is_long, params.values())):
        words += ["--param-file", plan.param_file]
        params = {name: value for name, value in params.items() if not is_long(value)}
    words += _repeated("--param", [f"{name}={_param(value)}" for name, value in params.items()])
    words += ["--as-written"] if _as_written(plan, params) and not until_steady else []
    words += _file_words(plan)
    wanted = plan.corpus.documents if corpus_documents is None else corpus_documents
    filled = any(spec.target is None or spec.target.fill or spec.target.writes for spec in plan.variants)
    filled &= all(spec.documents is None for spec in plan.variants)
    held = sum(file.held for file in plan.corpus.files)
    # Without --docs, all documents of the files are taken.
    if filled and wanted > 0 and (not held or wanted < held):
        words += ["--docs", COUNT.text(wanted)]
    words += _evidence_words(plan.evidence)
    words += _repeated("--tag", tags)
    words += ["--until-steady"] if until_steady else []
    count = max(forks or plan.forks, plan.index_builds)
    return shlex.join([*words, *_stop_words(plan.stop), "--forks", str(count)])


def _micro_line(plan: Plan, micro: MicroSpec, tags: Sequence[str], forks: int) -> str:
    words = ["benchctl", "micro", "run", micro.source]
    words += ["--include", micro.include] if micro.include else []
    for spec in plan.variants:
        options = [f"jar:{one}" for one in spec.jars] + [f"jvm:{one}" for one in spec.jvm_flags]
        options += [] if spec.jdk is None else [f"jdk:{spec.jdk}"]
        words += ["--variant", f"{spec.name}={','.join(options)}" if options else spec.name]
    words += _repeated("--param", [f"{name}={','.join(values)}" for name, values in micro.params.items()])
    words += ["--threads", ",".join(map(str, micro.threads))] if micro.threads else []
    words += ["--jmh", shlex.join(micro.arguments)] if micro.arguments else []
    words += _evidence_words(plan.evidence)
    words += _repeated("--tag", tags)
    return shlex.join([*words, *_stop_words(plan.stop), "--forks", str(forks)])


def _as_written(plan: Plan, params: Mapping[str, Any]) -> bool:
    """Return whether a challenge's own counts are kept where a run would choose others by itself."""
    names = [one.name for one in plan.schedules]
    names = names if plan.swept is None else [one.of for one in plan.swept.schedules]
    shipped = [one for name, one in zip(names, plan.schedules, strict=True) if name not in plan.sources]
    choosing = plan.redline is None and not plan.test_mode and not PurePath(plan.track).is_absolute()
    return choosing and any(one.only_counts(params) for one in shipped)


def _stop_words(stop: StopSpec | None) -> list[str]:
    """The stop rule's options; the least number of forks is not one."""
    if stop is None:
        return []
    words = [] if stop.precision is None else ["--precision", f"{_exact(100 * stop.precision)}%"]
    words += ["--until-decided"] if stop.decided else []
    words += [] if stop.margin is None else ["--margin", f"{_exact(100 * stop.margin)}%"]
    if stop.budget_s is None:
        return words
    minutes = stop.budget_s / _S_PER_MINUTE
    return [
        *words,
        "--budget",
        f"{_exact(minutes)}m" if minutes.is_integer() else f"{_exact(stop.budget_s)}s",
    ]


def _file_words(plan: Plan) -> list[str]:
    """A single file that is not a track's, or the folders of those that are."""
    files = plan.corpus.files
    own = [file for file in files if not file.corpus]
    files = tuple(file for file in files if file.corpus)
    words = []
    for file in own:
        named = f"{file.index or file.data_stream}=" if files else ""
        words += ["--corpus", f"{named}{file.path}", *(["--corpus-has-actions"] if file.has_actions else [])]
    if own and not files:
        return words
    track = PurePath(plan.track)
    # Without being told, benchctl looks in the track's folder.
    known = track.parent if track.suffix == ".json" else track
    folders = dict.fromkeys(PurePath(file.path).parent for file in files)
    return words + _repeated("--corpus-dir", [str(one) for one in folders if one != known])


def _redline_words(plan: Plan, search: RedlineSpec) -> list[str]:
    """All options of a search: what it found depends on each."""
    if search.by == "factor":
        words = ["--challenge", plan.sources.get(search.operation, search.operation)]
        words += _repeated("--task", search.tasks)
    else:
        words = ["--operation", search.operation]
    words += ["--slo", f"p{search.percentile:g}={_exact(search.limit_ns / _NS_PER_MS)}ms"]
    if search.by == "rate":
        words += ["--clients", str(search.clients), "--schedule", search.schedule]
    elif search.by == "clients":
        words += ["--clients", f"{search.least_clients}..{search.clients}"]
    words += ["--warm-up", _exact(search.warm_up_s), "--settle", _exact(search.settle_s)]
    words += ["--step-time", _exact(search.step_s), "--tolerance", f"{_exact(100 * search.tolerance)}%"]
    most = "--max-factor" if search.by == "factor" else "--max-rate"
    return words if search.max_per_s is None else [*words, most, _exact(search.max_per_s)]


def _exact(value: float) -> str:
    return f"{value:.12g}"


def _setting_words(plan: Plan) -> list[str]:
    """Options whose values differ from the defaults."""
    options = (
        ("--track-path" if PurePath(plan.track).is_absolute() else "--track", plan.track, "big5"),
        ("--seed", plan.seed, 1),
        ("--corpus-seed", plan.corpus.seed or 1, 1),
        ("--workers", plan.workers, 1),
    )
    words = [word for name, value, ordinary in options if value != ordinary for word in (name, str(value))]
    words += setting_words(plan)
    # Running clusters have their memory already.
    if any(spec.target is None for spec in plan.variants):
        words += ["--heap", f"{plan.heap_mb}m"]
    if plan.pin is not None:
        words += ["--pin", f"node={cpu_list(plan.pin.node)},driver={cpu_list(plan.pin.driver)}"]
    flags = (
        ("--unpaired", not plan.paired),
        ("--test-mode", plan.test_mode),
        ("--trust", plan.plugin is not None),
    )
    return [*words, *(name for name, given in flags if given)]


def _variant_words(variants: Sequence[VariantSpec]) -> list[str]:
    words = []
    own = [spec for spec in variants if spec.target is None]
    texts = [_variant_text(spec) for spec in own]
    if texts != [*_ORDINARY_VARIANTS] or len(own) < len(variants):
        words += _repeated("--variant", texts)
    for spec in variants:
        words += _target_words(spec)
    words += ["--fill-target"] if any(spec.target and spec.target.fill for spec in variants) else []
    kinds = {spec.target.writes for spec in variants if spec.target}
    words += ["--allow-writes"] if kinds - {None} else []
    words += ["--keep"] if "kept" in kinds else []
    return words + _repeated("--jdk", [f"{one.name}={one.jdk}" for one in variants if one.jdk])


def _target_words(spec: VariantSpec) -> list[str]:
    """Options of a running cluster; none for other variants."""
    target = spec.target
    if target is None:
        return []
    options = (
        ("--target", ",".join(target.hosts)),
        ("--target-ca", target.ca),
        ("--proxy", target.proxy),
        ("--target-auth", target.auth_file),
        ("--restart-command", shlex.join(target.restart_command)),
    )
    words = [word for option, value in options if value for word in (option, f"{spec.name}={value}")]
    return words if target.verify else [*words, "--insecure", spec.name]


def _evidence_words(evidence: EvidenceSpec | None) -> list[str]:
    if evidence is None:
        return []
    extra = evidence.extra_forks
    forks = [] if extra == 1 else ["--evidence-forks", str(extra or "all")]
    return ["--evidence", ",".join(evidence.kinds), *forks]


def _variant_text(spec: VariantSpec) -> str:
    """As the command line takes it: a name that says all, or a label with what it stands for."""
    base = f"{_SHORT_NAMES[spec.engine]}@{spec.version}"
    options = list(_variant_options(spec))
    # An engine by its own name is a plain one, wherever it comes from.
    if spec.name in (_SHORT_NAMES[spec.engine], base):
        return ",".join([spec.name, *options])
    return f"{spec.name}={','.join([base, *options])}"


def _node_entry(node: NodeSpec) -> dict[str, Any]:
    """A node as a file of variants has it."""
    settings = dict(node.settings)
    # No roles at all are not the same as none said.
    entry = {"roles": settings.pop(_ROLES)} if _ROLES in settings else {}
    return entry | {key: value for key, value in (("settings", settings), ("host", node.host)) if value}


def _variant_options(spec: VariantSpec) -> Iterator[str]:
    """Yield what a variant adds to its engine, except what has an option of its own."""
    lists = (("jvm", spec.jvm_flags), ("jar", spec.jars), ("plugin", spec.plugins), ("warmup", spec.warmups))
    mappings = (("setting", spec.settings), ("index", spec.index_settings), ("env", spec.environment))
    if spec.heap_mb is not None:
        yield f"heap:{spec.heap_mb}m"
    if spec.nodes:
        plain = [f"node-{number}" for number in range(1, len(spec.nodes) + 1)]
        told = {node.name: _node_entry(node) for node in spec.nodes}
        same = len(plain) > 1 and told == {name: {} for name in plain}
        yield f"nodes:{len(plain) if same else msgspec.json.encode(told).decode()}"
    if spec.distribution is not None:
        yield f"distribution:{spec.distribution}"
    if spec.start != "direct":
        yield f"start:{spec.start}"
    if spec.index_from is not None:
        yield f"index-from:{spec.index_from}"
    for option, values in lists:
        yield from (f"{option}:{value}" for value in values)
    short = {"index:index.number_of_shards=": "shards:", "index:index.number_of_replicas=": "replicas:"}
    for option, mapping in mappings:
        for key, value in mapping.items():
            words = f"{option}:{key}="
            yield f"{short.get(words, words)}{_plain(value)}"


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
