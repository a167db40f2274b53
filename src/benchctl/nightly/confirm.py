"""Is it the engine? Last-good against tonight, interleaved on fresh nodes of the same night."""

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.nightly.changes import track_changes
from benchctl.nightly.detection import night_of, number_of, same_engine
from benchctl.nightly.measure import only_about, task_names
from benchctl.nightly.model import Confirmation, Finding, FindingStatus, NightRecord, NightVariant
from benchctl.nightly.screening import DEFAULT_MARGIN
from benchctl.nightly.suite import ConfirmLimits
from benchctl.nightly.text import change_text
from benchctl.report.command_line import command
from benchctl.report.numbers import interval, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import BUNDLED, FIRST_LOOK, Plan, StopSpec, VariantSpec
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench
from benchctl.run.orchestrate import Extras
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import BUSY_HOST, Row, reservations
from benchctl.stats.compare import VERDICT_WORDS, Comparison
from benchctl.stats.metrics import metrics_in
from benchctl.stats.outlook import further_forks
from benchctl.track.model import Track

LAST_GOOD = "last-good"
TONIGHT = "tonight"


@dataclass(frozen=True)
class Confirmer:
    """Inputs of confirming runs."""

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
            confirmed, run = self._of_rivals(group)
            done += confirmed
            runs += [run] if run else []
        return done, runs

    def _of_rivals(self, findings: list[Finding]) -> tuple[list[Finding], str]:
        variant = self.tonight.variant(findings[0].key.variant)
        good = night_of(self.nights, number_of(findings[0].last_good))
        then = None if good is None else good.variant(findings[0].key.variant)
        if variant is None or then is None:
            return _ended(findings, "unconfirmed", "no earlier night to compare with"), ""
        if same_engine(then, variant):
            since = number_of(findings[0].last_good)
            reason = f"nothing about {variant.label} has changed since night {since}"
            if good is not None and (changes := [*track_changes(good, self.tonight)]):
                reason = f"{reason}, but the track has: {'; '.join(map(change_text, changes))}"
            return _ended(findings, "same engine", reason), ""
        affordable = self._affordable(variant.label)
        if affordable < FIRST_LOOK:
            reason = (
                f"the budget leaves time for {affordable} forks per variant, and a verdict takes at "
                f"least {FIRST_LOOK}"
            )
            return _ended(findings, "unconfirmed", reason), ""
        plan = self._plan(findings, pinned_pair(then, variant))
        self.bench.observer.note(
            f"confirming {len(findings)} findings of {variant.label}: night {findings[0].last_good} against "
            f"tonight, up to {min(affordable, plan.forks)} forks per variant"
        )
        try:
            extras = Extras(tags=self.tags, left_s=self.left_s)
            _, record = self.start(self.bench, plan, self.track, extras)
            return self._judged(findings, record), record.id
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                raise
            return _ended(findings, "unconfirmed", f"the confirming run failed: {err.message}"), ""

    def _affordable(self, label: str) -> int:
        """Return the forks per variant that the limits and the rest of the night allow."""
        if self.left_s is None:
            return self.limits.most_forks
        walls = [fork.wall_s for fork in self.record.compared(label)]
        affordable = self.left_s() / (2 * statistics.median(walls)) if walls else 0
        return min(self.limits.most_forks, max(0, math.floor(affordable)))

    def _plan(self, findings: Sequence[Finding], pair: tuple[VariantSpec, VariantSpec]) -> Plan:
        """Return tonight's plan with two variants until what the findings are about is decided."""
        plan = self.record.plan
        plan = msgspec.structs.replace(
            plan,
            variants=pair,
            schedules=only_about(plan, {_task(finding) for finding in findings}),
            forks=self.limits.most_forks,
            index_builds=min(plan.index_builds, self.limits.most_forks),
        )
        places = {name: place for place, name in task_names(plan).items()}
        stop = StopSpec(
            decided=True,
            margin=min(self._margin(finding.key.metric) for finding in findings),
            only=tuple((*places[_task(finding)], finding.key.metric) for finding in findings),
        )
        return msgspec.structs.replace(plan, stop=stop)

    def _judged(self, findings: Sequence[Finding], record: RunRecord) -> list[Finding]:
        compared = self._comparisons(record)
        stop = record.plan.stop and msgspec.structs.replace(record.plan.stop, budget_s=None)
        again = command(msgspec.structs.replace(record.plan, stop=stop))
        judged = []
        for finding in findings:
            row = compared.get((*_task(finding), finding.key.metric))
            if row is None:
                judged += _ended([finding], "unconfirmed", f"run {record.id} has no figures for it")
                continue
            (comparison,) = row.comparisons
            doubts = reservations(comparison, row.figures)
            status = status_of(comparison, doubts)
            confirmation = Confirmation(
                run=record.id,
                forks_good=comparison.n_baseline,
                forks_tonight=comparison.n_contender,
                effect_percent=comparison.effect_percent,
                low_percent=comparison.low_percent,
                high_percent=comparison.high_percent,
                p_adjusted=comparison.p_adjusted,
                command=again,
            )
            judged.append(
                msgspec.structs.replace(
                    finding,
                    status=status,
                    direction=comparison.verdict if status == "confirmed" else finding.direction,
                    reason=_reason(comparison, doubts),
                    confirmation=confirmation,
                )
            )
        return judged

    def _comparisons(self, record: RunRecord) -> dict[tuple[str, str, str], Row]:
        """Return (challenge, task, metric) -> last-good against tonight."""
        names = task_names(record.plan)
        margins = {metric.key: self._margin(metric.key) for metric in metrics_in(record.plan)}
        return {
            (*names[row.schedule, row.task], row.metric): row
            for row in analyse_run(record, margins=margins).task_rows
            if row.comparisons
        }

    def _margin(self, metric: str) -> float:
        return self.margins.get(metric, DEFAULT_MARGIN)


def status_of(comparison: Comparison, doubts: Collection[str] = ()) -> FindingStatus:
    """Return what a verdict on last-good against tonight makes of a finding.

    `doubts` are its reservations. A busy host alone does not hold a finding back: pairs in turn bear the same
    load, and where others always use a tenth of the CPUs no alarm would ever be raised.
    """
    if comparison.provisional and set(doubts) != {BUSY_HOST}:
        return "unconfirmed"
    match comparison.verdict:
        case "faster" | "slower":
            return "confirmed"
        case "equivalent":
            return "refuted"
        case _:
            return "unconfirmed"


def _reason(comparison: Comparison, doubts: Iterable[str]) -> str:
    further = further_forks(comparison)
    forks = f"over {comparison.n_baseline} + {comparison.n_contender} forks"
    effect, low, high = comparison.effect_percent, comparison.low_percent, comparison.high_percent
    size = "no ratio" if effect is None else f"{signed_percent(effect)}%"
    bounds = "" if low is None else f" ({interval(low, high)})"
    verdict = VERDICT_WORDS.get(comparison.verdict, comparison.verdict)
    if comparison.provisional:
        verdict = f"{verdict}, provisional ({', '.join(doubts)})"
    lack = "" if further is None else f"; {further.text} more forks per variant would probably decide it"
    return f"last-good against tonight: {verdict}, {size}{bounds} {forks}{lack}"


def pinned_pair(good: NightVariant, tonight: NightVariant) -> tuple[VariantSpec, VariantSpec]:
    """Return both nights' variants as they were then, under separate names.

    What can be fetched by its version stays so, a distribution of the makers with its runtime included; only
    another distribution or Java runtime becomes a path, the runtime only if the two nights differ in it.
    """
    pair = []
    same_jdk = good.facts is not None and tonight.facts is not None and good.facts.jdk == tonight.facts.jdk
    for name, variant in ((LAST_GOOD, good), (TONIGHT, tonight)):
        spec, pinned = variant.spec, variant.pinned or variant.spec
        by_version = spec.place is None
        stays = (by_version and spec.java == BUNDLED) or (same_jdk and good.spec.jdk == tonight.spec.jdk)
        pair.append(
            msgspec.structs.replace(
                spec,
                name=name,
                distribution=spec.distribution if by_version else pinned.distribution,
                jdk=spec.jdk if stays else pinned.jdk,
            )
        )
    return pair[0], pair[1]


def _by_rivals(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings about one variant with the same last-good night; those with the largest change first."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: -abs(math.log1p(finding.effect_percent / 100))):
        groups.setdefault((finding.key.variant, finding.last_good), []).append(finding)
    return list(groups.values())


def _task(finding: Finding) -> tuple[str, str]:
    return finding.key.challenge, finding.key.task


def _ended(findings: Iterable[Finding], status: str, reason: str) -> list[Finding]:
    return [msgspec.structs.replace(finding, status=status, reason=reason) for finding in findings]
