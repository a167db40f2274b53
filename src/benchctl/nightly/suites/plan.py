"""A suite into the options of a night's plan: the same every night but for what moves, and the order."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchctl.engine.newest import with_newest
from benchctl.engine.provision.maven import latest_version
from benchctl.home import Home
from benchctl.nightly.suites.suite import Suite
from benchctl.plugin.consent import Consent
from benchctl.results.nightly.model import Role
from benchctl.results.plan import CorpusSpec, EngineName, PinSpec, VariantSpec
from benchctl.run.documents import GENERATED_DOCUMENTS, FileOptions
from benchctl.run.pin import allowed_cpus, cores_of, pin_of
from benchctl.run.plan import PlanOptions

_SEED_BYTES = 7  # less than 2^63, the most that a seed may be


@dataclass(frozen=True)
class Resolved:
    """A variant of a suite, as it is tonight.

    Attributes:
        role: watched, or a canary.
        asked: as the suite has it.
        spec: with a version; its name is what suite, run and pages call it.
    """

    role: Role
    asked: str
    spec: VariantSpec


def resolve(suite: Suite, newest: Callable[[EngineName], str] = latest_version) -> tuple[Resolved, ...]:
    """What a suite's variants mean tonight: watched ones first, then canaries.

    Args:
        suite: that was loaded.
        newest: says the newest version of an engine.

    Raises:
        BenchctlError: the newest version is wanted and cannot be found out.
    """
    members = [(role, variant) for role, variant, _ in suite.members()]
    specs = with_newest((variant.spec() for _, variant in members), newest)
    return tuple(
        Resolved(role, variant.asked, spec) for (role, variant), spec in zip(members, specs, strict=True)
    )


def night_seed(suite: Suite, night: int) -> int:
    """The seed of a night: the suite's own, or another one every night, the same whenever it is asked for.

    The order of variants, which is random within a block, would favour the same one every night otherwise.
    """
    if suite.seed is not None:
        return suite.seed
    digest = hashlib.sha256(f"{suite.name}/{night}".encode()).digest()
    return int.from_bytes(digest[:_SEED_BYTES])


def plan_options(suite: Suite, night: int, specs: tuple[VariantSpec, ...], home: Home) -> PlanOptions:
    """What a night asks for; `plan_run` checks it against track and challenges.

    A plug-in of the track needs a consent that was given before (`benchctl track trust`): nobody is there.

    Args:
        suite: that was loaded.
        night: its number.
        specs: resolved.
        home: where consents are remembered.

    Raises:
        UsageError: the CPUs that it pins to cannot be had.
    """
    return PlanOptions(
        variants=specs,
        challenges=suite.challenges,
        warmup_challenges=suite.warmup_challenges,
        restart=suite.restart,
        forks=suite.forks,
        seed=night_seed(suite, night),
        heap_mb=suite.heap_mb,
        track=suite.track,
        corpus=CorpusSpec(
            seed=suite.corpus_seed,
            documents=suite.documents or GENERATED_DOCUMENTS,
            generator_version=0,
            digest="",
        ),
        files=FileOptions(
            None if suite.corpus is None else Path(suite.corpus),
            suite.corpus_has_actions,
            tuple(Path(one) for one in suite.corpus_dirs),
            suite.documents,
        ),
        segments=suite.segments,
        params=suite.params,
        include_tasks=suite.include_tasks,
        exclude_tasks=suite.exclude_tasks,
        ingest_clients=suite.ingest_clients,
        on_error=suite.on_error,
        assertions=suite.assertions,
        workers=suite.workers,
        index_builds=suite.index_builds,
        pin=_pin(suite),
        consent=Consent(home),
    )


def _pin(suite: Suite) -> PinSpec | None:
    if suite.pin is None:
        return None
    allowed = allowed_cpus()
    return pin_of(suite.pin, workers=suite.workers, allowed=allowed, cores=cores_of(allowed))
