"""The measurements of an experiment as plans of ordinary runs, all made before anything is started."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from benchctl.home import Home
from benchctl.plugin.code import Consent
from benchctl.results.experiment import ExperimentSpec, Measurement
from benchctl.results.plan import CorpusSpec, Plan, StopSpec
from benchctl.run.documents import FileOptions
from benchctl.run.plan import RunSpec, plan_run
from benchctl.spec import settings_in
from benchctl.track.load import UnusedParameter
from benchctl.track.model import Track

CORPUS_SEED = 1
"""Of generated documents, as `--corpus-seed` has it by default."""

DECIDED = StopSpec(decided=True, least_forks=1)
"""Of runs that are looked at after every block; whoever looks decides when they end."""


@dataclass(frozen=True)
class Planned:
    """A measurement, ready to be opened as a run.

    Attributes:
        plan: of the run; its corpus digest may still be empty.
        track: with the operations of its challenges.
        files: which documents are to come from files.
        unused: parameters of the experiment that its challenges do not know.
    """

    plan: Plan
    track: Track
    files: FileOptions
    unused: frozenset[str]


Plans = Mapping[str, Planned]
"""By the measurement's name, in the order of the experiment."""


def plan_measurement(spec: ExperimentSpec, measurement: Measurement, home: Home) -> Planned:
    """Load what a measurement names, check that it fits together, and freeze it.

    It takes those parameters of the experiment that its challenges know, and all of its own.

    Args:
        spec: that it belongs to.
        measurement: one of its.
        home: where consents to execute tracks' plug-ins are remembered.

    Raises:
        UsageError: something is wrong; nothing has been started.
    """
    options = _options(spec, measurement, home)
    unused: set[str] = set()
    while True:
        try:
            plan, track = plan_run(options)
        except UnusedParameter as err:
            if err.name in measurement.params or err.name not in spec.params:
                raise
            unused.add(err.name)
            left = {name: value for name, value in options.params.items() if name != err.name}
            options = msgspec.structs.replace(options, params=left)
        else:
            if spec.until_decided:
                plan = msgspec.structs.replace(plan, stop=DECIDED)
            return Planned(plan, track, options.files, frozenset(unused))


def digest_of(plan: Plan) -> str:
    """SHA-256 over all that a plan says: its track and challenges as rendered, and what they are run with."""
    return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()


def _options(spec: ExperimentSpec, measurement: Measurement, home: Home) -> RunSpec:
    known = {variant.name: variant for variant in spec.variants}
    own = {name: getattr(measurement, name) for name in ("restart", "include_tasks", "exclude_tasks")}
    return RunSpec(
        **(settings_in(spec) | own),
        variants=tuple(known[name] for name in measurement.variants),
        challenges=measurement.challenges,
        warmup_challenges=measurement.warmup_challenges,
        forks=spec.forks_of(measurement),
        seed=spec.seed,
        heap_mb=spec.heap_mb,
        track=spec.track,
        corpus=CorpusSpec(seed=CORPUS_SEED, documents=spec.docs, generator_version=0, digest=""),
        params={**spec.params, **measurement.params},
        files=FileOptions(docs=spec.docs),
        evidence=measurement.evidence,
        consent=Consent(home),
    )
