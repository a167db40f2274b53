"""A search from its check to its end: question after question, each on disk before the next, resumable."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.report.numbers import counted, duration, percent, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.run.bench import Observer
from benchctl.run.questions import Inquiry, Measurer, all_begun, ask, failure
from benchctl.search.candidates import (
    Candidates,
    Subset,
    candidates_of,
    most_questions,
    smallest,
    usual_questions,
)
from benchctl.search.record import (
    Decision,
    MinimizeFolder,
    MinimizeRecord,
    MinimizeSpec,
    Phase,
    require_values,
    rule_of,
    signed,
    values_of,
)
from benchctl.stats.answers import MIN_PAIRS, Answer, Values, answer
from benchctl.stats.forecast import Rule, Spread, least_effect
from benchctl.stats.history import History
from benchctl.stats.inference import cv_of
from benchctl.stats.metrics import metric_of
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.schedule import challenge_text

# A new search, checked against the challenge.


_LEAST_FORKS = 5


def default_metric(target: Task) -> str:
    """The figure that shows an effect by default: not the throughput of an offered rate."""
    return "service_time_p50" if target.throttled else "throughput"


def check_search(plan: Plan, track: Track, spec: MinimizeSpec) -> Candidates:
    """Check that a search makes sense, and return what it can try.

    The plan is of a run of the whole schedule; an empty metric means the usual one.

    Raises:
        UsageError: If the search makes no sense; nothing has been started.
    """
    if len(plan.schedules) != 1:
        raise UsageError(
            f"tasks are removed from one challenge, and {len(plan.schedules)} are given",
            hint="name one with --challenge",
        )
    challenge = plan.schedules[0]
    if plan.origin == "empty":
        raise UsageError(
            f"challenge '{challenge.name}' makes its own data, which its tasks cannot be without",
            hint="give a challenge that runs on data that benchctl prepares",
        )
    if spec.most_forks < _LEAST_FORKS:
        raise UsageError(
            f"--forks must be at least {_LEAST_FORKS}", hint="fewer pairs confirm no effect, however large"
        )
    if spec.prefix_iterations is not None and spec.prefix_iterations < 1:
        raise UsageError("--prefix-iterations must be at least 1", hint="0 leaves counts as they are")
    if spec.by is not None and spec.by <= 0:
        raise UsageError("--by must be more than 0 %")
    if spec.budget_s is not None and spec.budget_s <= 0:
        raise UsageError("--budget must be more than no time")
    operations = track.with_challenges(challenge).operations
    candidates = candidates_of(challenge, spec.effect.task, operations, spec.prefix_iterations)
    target = operations[candidates.target.operation]
    if not target.reported:
        raise UsageError(
            f"--effect: '{spec.effect.task}' is a {target.type_name}, which has no figures to show it",
            hint="name a task that asks or indexes something",
        )
    if spec.metric and metric_of(spec.metric).figure.loop == "closed" and candidates.target.throttled:
        raise UsageError(
            f"--metric {spec.metric}: that of '{spec.effect.task}' is asked for, and shows no effect",
            hint="use --metric service_time_p50, or --param target_throughput=0",
        )
    # What comes out has to be a file.
    challenge_text(challenge)
    return candidates


def new_search(folder_of: MinimizeFolder, plan: Plan, spec: MinimizeSpec) -> MinimizeRecord:
    """The record of a search that is about to start; the plan is of a run of the whole schedule."""
    return MinimizeRecord(
        id=folder_of.path.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        spec=spec,
        plan=msgspec.structs.replace(plan, restart="never", forks=spec.most_forks, stop=None),
    )


# What it is going to take.


def start_forecast(spec: MinimizeSpec, candidates: Candidates, plan: Plan, history: History) -> Iterator[str]:
    """Lines before the first fork: number of questions, duration of a block, precision of the first one."""
    count = len(candidates.front)
    needs_some = not spec.effect.against
    usual = 2 + usual_questions(count, needs_some=needs_some)
    yield (
        f"{counted(count, 'step')} before {candidates.target.label}: about {usual} questions where two of "
        f"them matter, at most {2 + most_questions(count)}; each takes from {MIN_PAIRS} to "
        f"{spec.most_forks} pairs of forks"
    )
    known = history.block_s(plan)
    least = candidates.least_s(candidates.every)
    if known is not None:
        yield f"forks of the whole schedule took {duration(known)} here"
    if least:
        yield (
            f"the schedule's own rates make a fork of the whole last at least {duration(least)}: cut counts "
            "(--prefix-iterations, or --param target_throughput=0) if that is too long"
        )
    task = candidates.challenge.schedule.index(candidates.target)
    noise = history.noise((0, task), metric_of(spec.metric), plan.variants[0])
    if noise is not None:
        spread = Spread(noise.sd * 2**0.5, noise.df).of_coming_run
        rule = Rule(math.log1p(spec.by or 0.0), paired=True, sequential=True)
        seen = math.expm1(least_effect(spread, rule, spec.most_forks))
        yield (
            f"forks of {candidates.target.label} had a CV of {percent(100 * cv_of(noise.sd))} here: "
            f"effects from {percent(100 * seen)} would probably be confirmed"
        )


_MOST_OF_NAME = 60
"""Of each name in that of a file; file systems take 255 bytes in all."""


# Questions and answers in words, for whoever watches.


def _title(decision: Decision, target: str) -> str:
    tasks = " > ".join((*decision.tasks, target))
    cut = ", counts cut" if decision.short else ""
    without = f", without {', '.join(decision.removed)}" if decision.removed else ""
    return f"question {decision.number}{cut}{without}: is it there in {tasks}?"


def _outcome(decision: Decision) -> str:
    because = f" ({decision.reason})" if decision.reason else ""
    effect = ""
    if decision.effect_percent is not None:
        effect = f", {signed_percent(decision.effect_percent)} %"
    return (
        f"question {decision.number}: {decision.verdict}{because}{effect} after "
        f"{counted(len(decision.contender), 'pair')}, {duration(decision.seconds)}"
    )


# The search as it is carried out.


@dataclass(frozen=True)
class SearchContext:
    """Surroundings of a search."""

    folder: MinimizeFolder
    candidates: Candidates
    measurer: Measurer
    observer: Observer
    budget_s: float | None = None  # for this session, from its first fork; None for no limit
    clock: Callable[[], float] = field(default=time.monotonic)  # seconds, monotonic


class _OutOfTimeError(Exception):
    """The budget is spent; what is known stays."""


def conduct(context: SearchContext, record: MinimizeRecord) -> MinimizeRecord:
    """Search, or continue, until the schedule is minimal, the time is up, or there is no effect.

    Returns:
        The final record, which is on disk as well.

    Raises:
        BenchctlError: If interrupted, or the target cannot be measured; the record says how far it came.
    """
    return _Search(context, record).go()


class _Search:
    def __init__(self, context: SearchContext, record: MinimizeRecord) -> None:
        self._context = context
        self._record = msgspec.structs.replace(record, status="running", stopped="", minimal=False)
        self._spec = record.spec
        self._effect = record.spec.effect
        self._metric = metric_of(record.spec.metric)
        self._began: float | None = None

    def go(self) -> MinimizeRecord:
        self._save()
        try:
            self._all()
        except _OutOfTimeError:
            self._save(status="interrupted", stopped="the time was up")
        except KeyboardInterrupt as err:
            raise self._interrupted() from err
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                raise self._interrupted() from err
            self._save(status="failed", stopped=err.message)
            raise
        return self._record

    def _interrupted(self) -> BenchctlError:
        self._save(status="interrupted", stopped="it was interrupted")
        return BenchctlError(
            f"interrupted; {counted(len(self._decided()), 'answer')} kept in {self._context.folder.path}",
            hint=f"go on with: benchctl minimize --resume {self._record.id}",
            exit_code=ExitCode.INTERRUPTED,
        )

    def _all(self) -> None:
        begun = self._first()
        if begun is None:
            self._save(status="complete", stopped="the effect is not confirmed: there is nothing to keep")
            return
        self._adopt(begun.steps, short=begun.short)
        count = len(self._context.candidates.front)
        needs_some = not self._effect.against
        kept = smallest(count, lambda subset: self._removed(subset, begun), needs_some=needs_some)
        self._adopt(kept, short=begun.short)
        self._save(status="complete", minimal=True)

    def _first(self) -> Decision | None:
        """Return the decision that found the effect; counts are cut first, which saves hours."""
        every = self._context.candidates.every
        if self._context.candidates.can_shorten:
            short = self._asked("shorten", every, (), short=True)
            if short.verdict == "present":
                return short
        whole = self._asked("whole", every, (), short=False)
        return whole if whole.verdict == "present" else None

    def _removed(self, subset: Subset, begun: Decision) -> Answer:
        """The judge's answer; a schedule that shows the effect is the smallest so far."""
        present = [one for one in self._decided() if one.verdict == "present"]
        removed = tuple(step for step in present[-1].steps if step not in subset)
        decision = self._asked("remove", subset, removed, short=begun.short)
        if decision.verdict == "present":
            self._adopt(subset, short=begun.short)
        return "undecided" if decision.verdict == "measuring" else decision.verdict

    def _asked(self, phase: Phase, steps: Subset, removed: Subset, *, short: bool) -> Decision:
        """The answer to a question: a kept one, or measured."""
        known = [
            one
            for one in self._record.decisions
            if (one.phase, one.steps, one.short) == (phase, steps, short)
        ]
        if known and known[0].verdict != "measuring":
            return known[0]
        candidates = self._context.candidates
        decision = (
            known[0]
            if known
            else Decision(
                number=len(self._record.decisions) + 1,
                phase=phase,
                short=short,
                steps=steps,
                tasks=candidates.labels(steps),
                removed=candidates.labels(removed),
            )
        )
        self._require_time(candidates.least_s(steps, short=short))
        self._context.observer.note(_title(decision, candidates.target.label))
        decision = self._measured(decision)
        self._context.observer.note(_outcome(decision))
        return decision

    def _measured(self, decision: Decision) -> Decision:
        before = [one for one in self._record.decisions if one.number < decision.number]
        rule = rule_of(self._spec, before, decision.phase)
        others = [one.pairs for one in before]

        def values(records: Sequence[RunRecord]) -> Values:
            self._require_same_documents(records[0].plan)
            return values_of(records, self._effect, self._metric)

        inquiry = Inquiry(
            plans=self._plans(decision),
            values=values,
            answer=lambda pairs: answer(signed(pairs, self._effect, self._metric), others, rule),
            others=others,
            left_s=None if self._context.budget_s is None else self._left_s,
        )
        decision = msgspec.structs.replace(decision, alpha=rule.alpha)
        decision, records = ask(self._context.measurer, inquiry, decision, self._keep)
        if decision.verdict == "measuring":
            reason = failure(records) or ("too few values" if all_begun(records) else "")
            if not reason:
                raise _OutOfTimeError
            decision = self._keep(msgspec.structs.replace(decision, verdict="undecided", reason=reason))
        if decision.phase != "remove":
            require_values(decision, self._effect.task)
        return decision

    def _require_same_documents(self, plan: Plan) -> None:
        """The documents are known once the first run is prepared; they are the same for all."""
        known = self._record.plan.corpus.digest
        if not known:
            self._save(plan=msgspec.structs.replace(self._record.plan, corpus=plan.corpus))
        elif plan.corpus.digest != known:
            raise UsageError(
                f"these are not the documents of the search: {plan.corpus.digest[:12]}, not {known[:12]}",
                hint="name the same --corpus, --corpus-dir and --docs, or start a new search",
            )

    def _plans(self, decision: Decision) -> tuple[Plan, ...]:
        candidates, base = self._context.candidates, self._record.plan
        name = f"{candidates.challenge.name}-{decision.number}"
        plan = msgspec.structs.replace(
            base, schedules=(candidates.build(decision.steps, name, short=decision.short),)
        )
        if self._effect.against:
            return (plan,)
        alone = candidates.build(
            (), f"{candidates.challenge.name}-{decision.number}-fresh", short=decision.short
        )
        return plan, msgspec.structs.replace(base, schedules=(alone,))

    def _adopt(self, steps: Subset, *, short: bool) -> None:
        candidates = self._context.candidates
        name = f"{_safe(candidates.challenge.name)}-minimal-{_safe(self._effect.task)}"
        whole = len(steps) == len(candidates.front) and not short
        about = f"'{self._effect}': {'the whole of' if whole else 'reduced from'} {candidates.challenge.name}"
        found: Challenge = msgspec.structs.replace(
            candidates.build(steps, name, short=short), description=about
        )
        self._save(found=found)

    def _require_time(self, least_s: float) -> None:
        """Do not begin a question whose first block will not fit; a fork takes `least_s` by its own rates."""
        if self._context.budget_s is None or self._began is None:
            return
        blocks = [one.seconds / len(one.contender) for one in self._decided() if one.contender]
        if self._left_s() < max(least_s, min(blocks, default=0.0)):
            raise _OutOfTimeError

    def _left_s(self) -> float:
        spent = 0.0 if self._began is None else self._context.clock() - self._began
        return (self._context.budget_s or 0.0) - spent

    def _decided(self) -> list[Decision]:
        return [one for one in self._record.decisions if one.verdict != "measuring"]

    def _keep(self, decision: Decision) -> Decision:
        if self._began is None:
            self._began = self._context.clock()
        others = [one for one in self._record.decisions if one.number != decision.number]
        self._save(decisions=(*others, decision))
        return decision

    def _save(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._context.folder.save(self._record)


def _safe(name: str) -> str:
    """A challenge's name or a task's label as part of a file's name."""
    plain = (char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in name)
    return "".join(plain)[:_MOST_OF_NAME]
