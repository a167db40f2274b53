"""All variants of a plan, ready to boot: running clusters, then documents, engines and indices."""

from collections.abc import Sequence
from functools import cache

import msgspec

from benchctl.results.plan import CorpusSpec, Plan
from benchctl.run.bench import Bench
from benchctl.run.documents import Parcel, is_generated, parcels
from benchctl.run.prepare import prepare_corpus, prepare_subject
from benchctl.run.session import AnySubject
from benchctl.run.targets import corpus_of_targets, prepare_target
from benchctl.track.model import Track


def prepare_subjects(bench: Bench, plan: Plan, track: Track) -> tuple[Plan, list[AnySubject]]:
    """Everything that forks need: running clusters first, since what is wrong with them is found at once."""

    @cache
    def corpus() -> tuple[CorpusSpec, Sequence[Parcel]]:
        spec = plan.corpus
        if is_generated(plan):
            made = prepare_corpus(bench.home, spec.documents, spec.seed, bench.observer)
            spec = msgspec.structs.replace(spec, digest=made.digest, generator_version=made.generator_version)
        return spec, parcels(msgspec.structs.replace(plan, corpus=spec), track, bench.home)

    targets = {
        spec.name: prepare_target(spec, bench.endpoints[spec.name], plan, track, corpus, bench.observer)
        for spec in plan.variants
        if spec.target is not None
    }
    if len(targets) == len(plan.variants) and not any(one.index_facts.key for one in targets.values()):
        return corpus_of_targets(plan, targets), list(targets.values())
    if plan.origin == "empty":
        bench.observer.note(
            f"challenge {plan.schedules[0].name} makes its own data: every fork begins on an empty node"
        )
    documents, found = corpus()
    plan = msgspec.structs.replace(plan, corpus=documents)
    subjects = [
        targets.get(spec.name) or prepare_subject(spec, plan, track, found, bench.home, bench.observer)
        for spec in plan.variants
    ]
    return plan, subjects
