"""Options into a plan: everything is looked up and checked here, before any node starts."""

import difflib
import json
import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchctl.errors import UsageError
from benchctl.results.model import CorpusSpec, Plan, RestartPolicy, VariantSpec
from benchctl.track.library import challenge_names, track_names
from benchctl.track.load import load_challenge, load_track, reject_unused
from benchctl.track.model import Challenge, Operation, Track

MAX_DEFAULT_HEAP_MB = 4096
MIN_HEAP_MB = 256
MAX_SEED = 1 << 63

Place = tuple[int, int]
"""(schedule, task): a task's position in a fork."""


@dataclass(frozen=True)
class PlanOptions:
    """What the user asked for, checked for types only. `plan_run` says what becomes of it."""

    variants: tuple[VariantSpec, ...]
    challenges: tuple[str, ...]
    warmup_challenges: tuple[str, ...]
    restart: RestartPolicy
    forks: int
    seed: int
    heap_mb: int
    track: str
    corpus: CorpusSpec
    segments: int
    params: Mapping[str, Any]
    ingest_clients: int = 2
    paired: bool = False


def default_heap_mb(memory_bytes: int) -> int:
    """A quarter of memory, at most 4 GB: the heap of every node unless the user says otherwise."""
    return max(MIN_HEAP_MB, min(MAX_DEFAULT_HEAP_MB, memory_bytes // 4 // 2**20))


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Read `NAME=VALUE` or `CHALLENGE.NAME=VALUE`; values are JSON where they can be, else text.

    Raises:
        UsageError: no `=`, or a name given twice.
    """
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(
                f"--param {text}: expected NAME=VALUE", hint="for example --param iterations=300"
            )
        if name in params:
            raise UsageError(f"--param {name} is given twice")
        params[name] = _param_value(name, value)
    return params


def _param_value(name: str, text: str) -> Any:  # noqa: ANN401 - JSON of any type
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    # Python reads NaN, Infinity and 1e999 as JSON; JSON has no way to write them down again.
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"--param {name}: {text} is not a finite number")
    return value


def plan_run(options: PlanOptions) -> tuple[Plan, Track]:
    """Load what the options name, check that it fits together, and freeze it.

    Parameters without a challenge's name reach the track and the measured challenges; a warm-up challenge
    takes only its own (`warmup.iterations=50`), because its counts have another purpose.

    Raises:
        UsageError: something is wrong; nothing has been started.
    """
    _check_numbers(options)
    common = _common(options.params)
    track, used = load_track(options.track, common)
    sources: dict[str, str] = {}
    schedules = _load(options.challenges, track, options.params, common, used, sources)
    warmups = _load(options.warmup_challenges, track, options.params, {}, used, sources)
    if not schedules:
        raise UsageError(
            "there is no challenge to run", hint="give --challenge; see: benchctl list challenges"
        )
    reject_unused(options.params, used)
    plan = Plan(
        variants=options.variants,
        schedules=schedules,
        warmup_challenges=warmups,
        restart=options.restart,
        forks=options.forks,
        seed=options.seed,
        heap_mb=options.heap_mb,
        track=options.track if options.track in track_names() else str(Path(options.track).absolute()),
        track_digest=track.digest,
        corpus=options.corpus,
        segments=options.segments,
        params=dict(options.params),
        ingest_clients=options.ingest_clients,
        sources=sources,
        paired=options.paired,
    )
    return plan, track


def reload_track(plan: Plan) -> Track:
    """The track of a plan that was made before, with the parameters that it had then.

    Raises:
        UsageError: it is gone or broken. Whether it is still the same, its digest says.
    """
    return load_track(plan.track, _common(plan.params))[0]


def _common(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for the track and every measured challenge: those without a challenge's name."""
    return {name: value for name, value in params.items() if "." not in name}


def _load(
    names: Iterable[str],
    track: Track,
    params: Mapping[str, Any],
    common: Mapping[str, Any],
    used: set[str],
    sources: dict[str, str],
) -> tuple[Challenge, ...]:
    """Load challenges; notes the parameters that they used, and the paths of those given as files."""
    challenges = []
    for name in names:
        prefix = f"{name if name in challenge_names() else Path(name).stem}."
        own = {key.removeprefix(prefix): value for key, value in params.items() if key.startswith(prefix)}
        challenge, found = load_challenge(name, track, {**common, **own})
        used |= {key if key not in own else prefix + key for key in found}
        # A common parameter that a challenge overrides with its own is used all the same.
        used |= {key for key in found if key in own and key in common}
        if name not in challenge_names():
            _note_source(challenge.name, str(Path(name).absolute()), sources)
        challenges.append(challenge)
    return tuple(challenges)


def _note_source(name: str, path: str, sources: dict[str, str]) -> None:
    """Results are found by a challenge's name, so two challenges of one run cannot share it.

    Raises:
        UsageError: a shipped challenge or another file has the name.
    """
    if name in challenge_names() or sources.get(name, path) != path:
        other = sources.get(name, "a challenge that comes with benchctl")
        raise UsageError(
            f"{path}: $.name: '{name}' is also the name of {other}", hint="give it a name of its own"
        )
    sources[name] = path


def _check_numbers(options: PlanOptions) -> None:
    names = [variant.name for variant in options.variants]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"variant '{name}' is named twice",
                hint="give one of them a label, such as --variant es-again=es",
            )
    rules = (
        (not names, "there is no variant to run", "give --variant"),
        (options.forks < 1, "--forks must be at least 1", ""),
        (options.heap_mb < MIN_HEAP_MB, f"--heap must be at least {MIN_HEAP_MB}m", ""),
        (options.segments < 1, "--segments must be at least 1", ""),
        (not 0 <= options.seed < MAX_SEED, "--seed must be from 0 to 2^63 - 1", ""),
        (options.ingest_clients < 1, "--ingest-clients must be at least 1", ""),
    )
    for broken, text, hint in rules:
        if broken:
            raise UsageError(text, hint=hint)


def block_order(plan: Plan, block: int) -> tuple[VariantSpec, ...]:
    """The order of variants in one block: random, and the same whenever the plan is run."""
    variants = list(plan.variants)
    random.Random(f"{plan.seed}/{block}").shuffle(variants)  # noqa: S311 - reproducible, not secret
    return tuple(variants)


def boots(plan: Plan) -> tuple[tuple[Place, ...], ...]:
    """Which tasks share a node start, in order, by the restart policy."""
    places = [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]
    if plan.restart == "never":
        return (tuple(places),)
    if plan.restart == "task":
        return tuple((place,) for place in places)
    return tuple(
        tuple(place for place in places if place[0] == schedule) for schedule in range(len(plan.schedules))
    )


def operations_used(plan: Plan, track: Track) -> tuple[Operation, ...]:
    """Every operation that the plan's challenges ask, once, in order of first use."""
    tasks = [task for challenge in (*plan.warmup_challenges, *plan.schedules) for task in challenge.schedule]
    names = dict.fromkeys(task.operation for task in tasks)
    return tuple(track.operations[name] for name in names)


def nearest(name: str, known: Iterable[str]) -> str:
    """For a hint: the known name that was probably meant, or all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
