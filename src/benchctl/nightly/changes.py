"""Differences between nights: host, benchctl, variants, and results of searches."""

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from benchctl.engine.answers import SCORE_TOLERANCE, Unlike, digested, same, unlike
from benchctl.errors import BenchctlError
from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.model import AnswerChange, Change, NightRecord, NightVariant, Raised
from benchctl.report.numbers import counted
from benchctl.results.likeness import deciding
from benchctl.results.model import Environment, KeptAnswer, VariantAnswers
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Track, TrackOperation

_GIB: Final = 2**30
_HOST: Final[Mapping[str, str]] = {
    "hostname": "host name",
    "kernel": "kernel",
    "distribution": "operating system",
    "cpu_model": "CPU",
    "cpus": "number of CPUs",
    "governor": "CPU governor",
    "virtualization": "virtualisation",
    "python": "Python",
    "benchctl": "benchctl",
    "benchctl_commit": "benchctl commit",
    "libcurl": "libcurl",
}
# What is compared by its digest says little in full.
_DIGEST: Final = 12
_DIGESTS: Final = frozenset({"build", "archive", "prepared index", "contents of warm-up challenges"})
# Where either night does not know these, there is nothing to compare.
_WHERE_KNOWN: Final = frozenset({"prepared index", "contents of warm-up challenges"})
_ANY_ORDER: Final = frozenset({"modules"})
_AS_ASKED: Final = {"JVM flags": "jvm_flags", "jars": "jars", "plug-ins": "plugins"}

# Where a track lies decides nothing; that its documents and operations are the same, digests say.
_NO_MATTER: Final = frozenset({"track", "track_digest", "corpus"})


def changes(before: NightRecord, tonight: NightRecord) -> tuple[Change, ...]:
    """Return what differs between the last measured night and tonight: host, benchctl and track first."""
    differences = [*_of_host(before.environment, tonight.environment), *track_changes(before, tonight)]
    labels = dict.fromkeys(variant.label for night in (before, tonight) for variant in night.variants)
    for label in labels:
        differences += _of_variant(label, before.variant(label), tonight.variant(label))
    return tuple(differences)


def track_changes(before: NightRecord, now: NightRecord) -> Iterator[Change]:
    """Return the change of the track between two nights: of another repository, or by a commit."""
    sources = [night.track for night in (before, now)]
    places = ["" if source is None else f"{source.track} of {source.repository}" for source in sources]
    yield from _change("track", *places)
    if places[0] == places[1]:
        commits = ["" if source is None else source.changed for source in sources]
        yield from _change("commit of the track", *commits)


def era_of(
    plan: Plan,
    environment: Environment,
    track: Track | None = None,
    left_out: Collection[str] = (),
) -> str:
    """Return a digest of what has to be the same for nights to be compared, with that of the documents.

    The host, the documents, and everything of the plan that decides figures; not its variants, whose
    changes are what nightly runs are for, and not benchctl's version, which is a change like others. With
    `track`, only the indices and the operations that the plan uses count; without it, the whole track
    does, so that an added operation begins a new era. `left_out` are searches of the pollution that some
    node refuses, so that none runs them.
    """
    decisive = {name: value for name, value in deciding(plan).items() if name not in _NO_MATTER}
    decisive["corpus"] = plan.corpus.digest or msgspec.structs.replace(plan.corpus, files=())
    decisive["track"] = plan.track_digest if track is None else _meaning(plan, track)
    decisive["host"] = environment.fingerprint
    decisive["workers"] = plan.workers
    if left_out:
        decisive["left out"] = sorted(left_out)
    return _digest(decisive)


def own_warmups(plan: Plan, track: Track, variant: str) -> str:
    """Return a digest of one variant's own warm-ups, empty without any: a change of them begins no era."""
    own = plan.variant_warmups.get(variant, ())
    if not own:
        return ""
    alone = msgspec.structs.replace(plan, warmup_challenges=own)
    return _digest([deciding(alone)["warmup_challenges"], _operations(track, own)])


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def _operations(track: Track, challenges: Iterable[Challenge]) -> dict[str, TrackOperation]:
    challenges = tuple(challenges)
    operations = track.with_challenges(*challenges).operations
    names = {task.operation for challenge in challenges for task in challenge.schedule}
    return {name: operations[name] for name in sorted(names & operations.keys())}


def _meaning(plan: Plan, track: Track) -> dict[str, Any]:
    """Return what a track says of a plan's tasks and data."""
    return {
        "operations": _operations(track, (*plan.warmup_challenges, *plan.schedules)),
        "indices": track.indices,
        "data streams": track.data_streams,
        "templates": track.templates,
    }


def _of_host(before: Environment | None, now: Environment | None) -> Iterator[Change]:
    if before is None or now is None:
        return
    for name, words in _HOST.items():
        yield from _change(words, getattr(before, name), getattr(now, name))
    # Kernels reserve a little more or less from boot to boot.
    yield from _change("memory", _memory(before), _memory(now))


def _memory(environment: Environment) -> str:
    return f"{round(environment.memory_bytes / _GIB)} GiB"


def _of_variant(label: str, before: NightVariant | None, now: NightVariant | None) -> Iterator[Change]:
    if before is None or now is None:
        yield from _change(
            f"{label}: variant",
            None if before is None else before.asked,
            None if now is None else now.asked,
            label,
        )
        return
    by_facts = before.facts is not None and now.facts is not None
    was, became = _described(before, by_facts=by_facts), _described(now, by_facts=by_facts)
    for name, here in became.items():
        there, what = was[name], f"{label}: {name}"
        if name in _WHERE_KNOWN and not (here and there):
            continue
        if isinstance(here, list):
            yield from _difference(what, there, here, label, ordered=name not in _ANY_ORDER)
        elif here != there:
            most = _DIGEST if name in _DIGESTS else None
            yield Change(what, _words(there)[:most], _words(here)[:most], label)


def _described(variant: NightVariant, *, by_facts: bool) -> dict[str, Any]:
    """Return what a variant is, by the words for it; what the node said, or else what was asked for."""
    spec, facts = variant.spec, variant.facts
    description: dict[str, Any] = {
        "asked for": variant.asked,
        "role": variant.role,
        "version": spec.version if facts is None else facts.version,
        "engine": spec.engine,
        "distribution": spec.distribution,
        "JDK asked for": spec.jdk,
        # A change of all variants' heap begins a new era.
        "heap": "that of all" if spec.heap_mb is None else f"{spec.heap_mb} MiB",
        "settings": _pairs(spec.settings),
        "index settings": _pairs(spec.index_settings),
        "environment": _pairs(spec.environment),
        "target": "" if spec.target is None else " ".join(spec.target.hosts),
        "warm-up challenges": list(spec.warmups),
        "contents of warm-up challenges": variant.warmups,
    }
    if by_facts and facts is not None:
        description |= {
            "build": facts.build,
            "Lucene": facts.lucene,
            "archive": facts.archive_sha256,
            "JDK": facts.jdk,
            "JVM flags": list(facts.jvm_flags),
            "modules": list(facts.modules),
            "jars": _pairs({name: digest[:_DIGEST] for name, digest in facts.jars.items()}),
            "plug-ins": _pairs(facts.plugins),
        }
    else:
        description |= {name: list(getattr(spec, field)) for name, field in _AS_ASKED.items()}
    return description | {"prepared index": variant.index_key}


def _change(what: str, before: object, after: object, variant: str = "") -> Iterator[Change]:
    if before != after:
        yield Change(what, _words(before), _words(after), variant)


def _difference(
    what: str, before: Iterable[str], after: Iterable[str], variant: str, *, ordered: bool = True
) -> Iterator[Change]:
    """Return what came and went; a change of order alone matters if the last of a kind counts."""
    old, new = list(before), list(after)
    gone, come = (
        [*(Counter(these) - Counter(those)).elements()] for these, those in ((old, new), (new, old))
    )
    if gone or come:
        # An empty text means that there was, or is, nothing at all.
        lacking = "without it" if len(gone or come) == 1 else "without them"
        was = " ".join(gone) or (old and lacking) or ""
        became = " ".join(come) or (new and lacking) or ""
        yield Change(what, was, became, variant)
    elif ordered and old != new:
        moved = [place for place, (was, now) in enumerate(zip(old, new, strict=True)) if was != now]
        there = slice(moved[0], moved[-1] + 1)
        yield Change(f"{what} in another order", " ".join(old[there]), " ".join(new[there]), variant)


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(values.items())]


def _words(value: object) -> str:
    return "" if value is None else str(value)


_MOST_CHARACTERS = 100

_BeforeAfter = tuple[str, str]
"""Old and new value, in words."""


def changed(before: VariantAnswers, now: VariantAnswers, since: str) -> tuple[AnswerChange, ...]:
    """Return what a variant answers differently than `since`, of every operation the first difference.

    Compared are operations that ask the same in both nights, and whose answers are stable while nothing
    changes, on the same documents. Numbers may differ by rounding; documents that sort alike may come in
    any order. The result is in the order in which they were asked tonight.
    """
    earlier = {answer.question: answer for answer in before.answers}
    differences = []
    for new in now.answers:
        old = earlier.get(new.question)
        parts = None if old is None else _unlike_answer(old, new)
        if parts is not None:
            differences.append(
                AnswerChange(now.variant, new.operation, _short(parts[0]), _short(parts[1]), since)
            )
    return tuple(differences)


def comparable(before: VariantAnswers, now: VariantAnswers) -> set[str]:
    """Return the operations that ask the same in both nights, and whose answers are stable."""
    earlier = {answer.question: answer for answer in before.answers}
    return {
        new.operation
        for new in now.answers
        if (old := earlier.get(new.question)) is not None and not (old.unsteady or new.unsteady)
    }


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def _unlike_answer(old: KeptAnswer, new: KeptAnswer) -> _BeforeAfter | None:
    """Return how two answers to one question differ, in words; None when they agree, or it is unknown."""
    if old.unsteady or new.unsteady:
        return None
    if _refusal(old) or _refusal(new):
        # Whether it is answered counts: reasons may name nodes and addresses.
        return None if _refusal(old) == _refusal(new) else (_outcome(old), _outcome(new))
    counts = [(_hits(answer.total), f"{counted(answer.returned, 'hit')} returned") for answer in (old, new)]
    unlike_counts = (pair for pair in zip(*counts, strict=True) if pair[0] != pair[1])
    return next(unlike_counts, None) or _parts(old, new) or _scores(old, new) or _top(old, new)


def _parts(old: KeptAnswer, new: KeptAnswer) -> _BeforeAfter | None:
    for what, cuts, (one, other) in (
        (
            "aggregations",
            (old.aggregations_cut, new.aggregations_cut),
            (old.aggregations, new.aggregations),
        ),
        ("sort values", (old.sort_values_cut, new.sort_values_cut), (old.sort_values, new.sort_values)),
    ):
        if any(cuts):
            # Too large to keep: of what is left, the number of parts and a digest are compared.
            first, second = cuts[0] or digested(one), cuts[1] or digested(other)
            if first.digest != second.digest:
                texts = [f"{cut.entries:,} in {what} with digest {cut.digest}" for cut in (first, second)]
                return texts[0], texts[1]
        elif (part := unlike(one, other, what)) is not None:
            return _parting(part)
    return None


def _refusal(answer: KeptAnswer) -> str:
    """Return why it was not answered; empty when it was."""
    if answer.unsupported is not None:
        return "unsupported"
    return "failed" if answer.failed is not None else ""


def _outcome(answer: KeptAnswer) -> str:
    refusal = _refusal(answer)
    return f"{refusal}: {answer.unsupported or answer.failed}" if refusal else "answered"


def _hits(total: int | None) -> str:
    return "hits not counted" if total is None else counted(total, "hit")


def _parting(part: Unlike) -> _BeforeAfter:
    before, after = part.expected, part.found
    match part.how:
        case "values":
            return f"{part.where} is {before}", f"{part.where} is {after}"
        case "keys":
            return f"{before or f'no {after}'} in {part.where}", f"{after or f'no {before}'} in {part.where}"
        case "entries":
            return f"{before} entries in {part.where}", f"{after} entries in {part.where}"


def _scores(old: KeptAnswer, new: KeptAnswer) -> _BeforeAfter | None:
    if len(old.scores) != len(new.scores):
        return f"{counted(len(old.scores), 'hit')} scored", f"{counted(len(new.scores), 'hit')} scored"
    for place, (one, other) in enumerate(zip(old.scores, new.scores, strict=True), 1):
        if not same(one, other, SCORE_TOLERANCE):
            return f"hit {place} scores {one:.7g}", f"hit {place} scores {other:.7g}"
    return None


def _top(old: KeptAnswer, new: KeptAnswer) -> _BeforeAfter | None:
    groups = {group.first: group for group in new.top}
    for hits in old.top:
        other = groups.get(hits.first)
        # Scores within rounding may put another document into the group; nothing is to be told then.
        if other is not None and other.documents == hits.documents and other.digest != hits.digest:
            places = f"hit {hits.first}" if hits.documents == 1 else f"hits {hits.first} to "
            places += "" if hits.documents == 1 else f"{hits.first + hits.documents - 1}"
            texts = [_short(hits.begins), _short(other.begins)]
            if not all(texts) or texts[0] == texts[1]:
                texts = [f"with digest {hits.digest}", f"with digest {other.digest}"]
            return f"{places}: {texts[0]}", f"{places}: {texts[1]}"
    return None


def keep_answers(folder: SuiteFolder, night: NightRecord, run: RunFolder) -> None:
    """Copy the answers of the night's run: a run may be deleted, a night is kept for ever.

    Raises:
        BenchctlError: If the disk is full or cannot be written, or the answers cannot be read.
    """
    by_label = {variant.label: run.read_answers(variant.label) for variant in night.variants}
    kept = {label: answers for label, answers in by_label.items() if answers is not None}
    if kept:
        folder.write_answers(night.id, kept)


def answer_changes(
    folder: SuiteFolder, nights: Iterable[NightRecord], tonight: NightRecord
) -> tuple[AnswerChange, ...]:
    """Return answers that differ from the newest earlier night that asked the same of the same documents.

    Tonight's answers are kept already.
    """
    now = _answers(folder, tonight.id)
    earlier = sorted(
        (
            night
            for night in nights
            if night.status == "done" and night.era == tonight.era and night.number < tonight.number
        ),
        key=lambda night: night.number,
        reverse=True,
    )
    differences: list[AnswerChange] = []
    for label, answers in now.items():
        for night in earlier:
            before = _answers(folder, night.id).get(label)
            if before is not None:
                differences += changed(before, answers, night.id)
                break
    return tuple(differences)


def answered_again(folder: SuiteFolder, tonight: NightRecord) -> Callable[[Raised], bool]:
    """Return whether the searches of an alarm are answered as before it; tonight's answers are kept."""
    answers = _answers(folder, tonight.id)

    def again(raised: Raised) -> bool:
        now = answers.get(raised.key.variant)
        before = _answers(folder, raised.last_good).get(raised.key.variant)
        if now is None or before is None:
            return False
        still = {change.operation for change in changed(before, now, raised.last_good)}
        return set(raised.operations) <= comparable(before, now) - still

    return again


def _answers(folder: SuiteFolder, night: str) -> dict[str, VariantAnswers]:
    """Return label -> its answers of a night; a damaged file counts as never asked."""
    with contextlib.suppress(BenchctlError):
        return folder.answers(night) if night else {}
    return {}
