"""Is it the engine? Last-good against tonight, interleaved on fresh nodes of the same night."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.nightly.detection import night_of, number_of, same_engine
from benchctl.nightly.measure import profile_shifts, task_names
from benchctl.nightly.model import Confirmation, Finding, NightRecord, NightVariant
from benchctl.nightly.screening import DEFAULT_MARGIN, judge
from benchctl.nightly.suite import ConfirmLimits
from benchctl.report.command_line import command
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench
from benchctl.run.orchestrate import Extras
from benchctl.stats.analyse import analyse_run
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metrics_in
from benchctl.track.model import Track

LAST_GOOD = "last-good"
TONIGHT = "tonight"


@dataclass(frozen=True)
class Confirmer:
    """What confirming runs need."""

    bench: Bench
    limits: ConfirmLimits
    # Metric -> relative change that nobody is to be woken for, where it is not the default.
    margins: Mapping[str, float]
    nights: Sequence[NightRecord]  # of the suite, tonight's included
    tonight: NightRecord
    record: RunRecord  # of the night's run
    track: Track
    left_s: Callable[[], float] | None  # seconds of the night's budget that are left; None without a budget
    tags: tuple[str, ...]
    start: Callable[..., tuple[RunFolder, RunRecord]]

    def confirm(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[str]]:
        """Look into `unconfirmed` findings, the largest change first, while there is time.

        Returns:
            The same findings with what became of them, and the ids of the runs that it took.
        """
        done: list[Finding] = []
        runs: list[str] = []
        for group in _by_rivals(findings):
            found, run = self._of_rivals(group)
            done += found
            runs += [run] if run else []
        return done, runs

    def _of_rivals(self, findings: list[Finding]) -> tuple[list[Finding], str]:
        variant = self.tonight.variant(findings[0].key.variant)
        good = night_of(self.nights, number_of(findings[0].last_good))
        then = None if good is None else good.variant(findings[0].key.variant)
        if variant is None or then is None:
            return _ended(findings, "unconfirmed", "there is no earlier night to run against"), ""
        if same_engine(then, variant):
            reason = (
                f"nothing about {variant.label} has changed since night {number_of(findings[0].last_good)}"
            )
            return _ended(findings, "same engine", reason), ""
        forks = self._forks(findings)
        if forks < self.limits.least_forks:
            reason = f"the budget leaves time for {forks} forks a side, {_wanted(findings)}"
            return _ended(findings, "unconfirmed", reason), ""
        plan = self._plan(findings, pinned_pair(then, variant), forks)
        self.bench.observer.note(
            f"confirming {len(findings)} findings of {variant.label}: night {findings[0].last_good} against "
            f"tonight, up to {forks} forks a side"
        )
        try:
            extras = Extras(tags=self.tags, left_s=self.left_s)
            folder, record = self.start(self.bench, plan, self.track, extras)
            return self._judged(findings, folder, record), record.id
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                raise
            return _ended(findings, "unconfirmed", f"the confirming run failed: {err.message}"), ""

    def _forks(self, findings: Sequence[Finding]) -> int:
        """Return as many forks as the findings need, and the limits and the rest of the night allow."""
        needed = max(one.forks_needed or self.limits.most_forks for one in findings)
        walls = [fork.wall_s for fork in self.record.compared(findings[0].key.variant)]
        wanted = min(max(needed, self.limits.least_forks), self.limits.most_forks)
        if self.left_s is None:
            return wanted
        possible = self.left_s() / (2 * statistics.median(walls)) if walls else 0
        return min(wanted, max(0, math.floor(possible)))

    def _plan(self, findings: Sequence[Finding], pair: tuple[VariantSpec, VariantSpec], forks: int) -> Plan:
        """Return tonight's plan with two variants, and only the challenges that the findings are about."""
        plan = self.record.plan
        names = task_names(plan)
        places = {place for place, name in names.items() for one in findings if name == _task(one)}
        wanted = {plan.schedules[schedule].name for schedule, _ in places}
        # Without a restart between them, what ran before a challenge is part of what was measured.
        kept = [one for one in plan.schedules if plan.restart == "never" or one.name in wanted]
        return msgspec.structs.replace(
            plan,
            variants=pair,
            schedules=tuple(kept),
            forks=forks,
            stop=None,
            index_builds=min(plan.index_builds, forks),
        )

    def _judged(self, findings: Sequence[Finding], folder: RunFolder, record: RunRecord) -> list[Finding]:
        compared = _comparisons(record, self.margins)
        known = [one for one in findings if (*_task(one), one.key.metric) in compared]
        pairs = [(compared[(*_task(one), one.key.metric)], one.direction) for one in known]
        verdicts = dict(zip(map(id, known), zip(pairs, judge(pairs), strict=True), strict=True))
        again = command(msgspec.structs.replace(record.plan, stop=None))
        places = {name: place for place, name in task_names(record.plan).items()}
        judged = []
        for one in findings:
            if id(one) not in verdicts:
                judged += _ended([one], "unconfirmed", f"run {record.id} has no figures for it")
                continue
            (comparison, _), verdict = verdicts[id(one)]
            confirmation = Confirmation(
                run=record.id,
                forks_good=comparison.n_baseline,
                forks_tonight=comparison.n_contender,
                effect_percent=comparison.effect_percent,
                low_percent=comparison.low_percent,
                high_percent=comparison.high_percent,
                p_adjusted=verdict.p_adjusted,
                command=again,
                shifts=profile_shifts(folder, record, places[_task(one)], LAST_GOOD, TONIGHT)
                if verdict.confirmed
                else (),
            )
            forks = min(comparison.n_baseline, comparison.n_contender)
            short = one.forks_needed is not None and forks < one.forks_needed
            reason = verdict.reason
            if short and not verdict.confirmed:
                reason = f"{reason}; {forks} forks a side ran, {_wanted([one])}"
            judged.append(
                msgspec.structs.replace(
                    one,
                    status="confirmed" if verdict.confirmed else "unconfirmed" if short else "refuted",
                    reason=reason,
                    confirmation=confirmation,
                )
            )
        return judged


def pinned_pair(good: NightVariant, tonight: NightVariant) -> tuple[VariantSpec, VariantSpec]:
    """Return both nights' variants as they were then, under separate names.

    A version that can be fetched stays a version; only a distribution or Java runtime that no version
    determines becomes a path, and only if the two nights differ in it.
    """
    found = []
    same_jdk = good.facts is not None and tonight.facts is not None and good.facts.jdk == tonight.facts.jdk
    for name, one in ((LAST_GOOD, good), (TONIGHT, tonight)):
        pinned = one.pinned or one.spec
        found.append(
            msgspec.structs.replace(
                one.spec,
                name=name,
                distribution=None if one.spec.distribution is None else pinned.distribution,
                jdk=one.spec.jdk if same_jdk and good.spec.jdk == tonight.spec.jdk else pinned.jdk,
            )
        )
    return found[0], found[1]


def _comparisons(record: RunRecord, margins: Mapping[str, float]) -> dict[tuple[str, str, str], Comparison]:
    """Return (challenge, task, metric) -> last-good against tonight."""
    names = task_names(record.plan)
    # Those that were screened by: the usual ones of a comparison are narrower.
    screened_by = {metric.key: margins.get(metric.key, DEFAULT_MARGIN) for metric in metrics_in(record.plan)}
    return {
        (*names[row.schedule, row.task], row.metric): row.comparisons[0]
        for row in analyse_run(record, margins=screened_by).task_rows
        if row.comparisons
    }


def _by_rivals(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings about one variant with the same last-good night; those with the largest change first."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: -abs(math.log1p(one.effect_percent / 100))):
        found.setdefault((one.key.variant, one.last_good), []).append(one)
    return list(found.values())


def _task(finding: Finding) -> tuple[str, str]:
    return finding.key.challenge, finding.key.task


def _wanted(findings: Sequence[Finding]) -> str:
    known = [one.forks_needed for one in findings if one.forks_needed is not None]
    return f"it takes {max(known)}" if known else "how many it takes is not known"


def _ended(findings: Iterable[Finding], status: str, reason: str) -> list[Finding]:
    return [msgspec.structs.replace(one, status=status, reason=reason) for one in findings]
