"""What is unusual tonight: every series screened, and the canary asked whether it was the host."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchctl.nightly.baseline import Baselines, night_of
from benchctl.results.nightly.model import Finding, NightRecord, NightVariant, Role, Series, SeriesKey
from benchctl.stats.nightly.canary import CanaryReport, canary_moved
from benchctl.stats.nightly.confirm import forks_to_confirm
from benchctl.stats.nightly.screen import DEFAULT_MARGIN, Screened, screen


@dataclass(frozen=True)
class Detected:
    """What the screens say of a night, before anything is confirmed.

    Attributes:
        findings: series that left their usual range; those that the canary clears are `held`, all others
            `unconfirmed` until somebody looks into them.
        canary: what moved of it.
        watched: how many series were held against earlier nights.
        young: how many have no earlier night to be held against.
        gone: how many of tonight's variants had a value when last measured, and have none tonight.
        levels: of series with a finding, the mean of ln over the nights before.
    """

    findings: tuple[Finding, ...]
    canary: CanaryReport
    watched: int
    young: int
    gone: int
    levels: Mapping[SeriesKey, float]


@dataclass(frozen=True)
class Detector:
    """The screens, with everything that they look at.

    Attributes:
        nights: of the suite, tonight's included.
        tonight: the night that is looked at.
        baselines: which nights are usual.
        margins: metric -> relative change that matters, where it is not the default.
    """

    nights: Sequence[NightRecord]
    tonight: NightRecord
    baselines: Baselines
    margins: Mapping[str, float]

    def detect(self, series: Iterable[Series]) -> Detected:
        """Screen every series of tonight's variants.

        Args:
            series: of all nights; those of variants that tonight had not are passed over.
        """
        by_role: dict[Role, list[Series]] = {"watched": [], "canary": []}
        last = max(self.baselines.comparable, default=0)
        gone = 0
        for one in series:
            variant = self.tonight.variant(one.key.variant)
            if variant is not None and self.tonight.number in one.nights:
                by_role[variant.role].append(one)
            elif variant is not None:
                gone += last in one.nights
        canary = canary_moved(
            by_role["canary"],
            self.tonight.number,
            candidates=lambda one: self.baselines.candidates(one.key),
            margin=DEFAULT_MARGIN,
        )
        findings = []
        levels = {}
        young = 0
        for one in by_role["watched"]:
            candidates = self.baselines.candidates(one.key)
            young += not any(number in one.nights for number in candidates)
            found = screen(
                one,
                self.tonight.number,
                candidates=candidates,
                margin=self.margin(one.key),
                resets=self.baselines.resets(one.key),
            )
            if found is not None:
                findings.append(self._finding(one, found, canary))
                levels[one.key] = found.baseline_log
        watched = len(by_role["watched"])
        return Detected(tuple(findings), canary, watched - young, young, gone, levels)

    def margin(self, key: SeriesKey) -> float:
        """Relative change of a series that somebody should be told of."""
        return self.margins.get(key.metric, DEFAULT_MARGIN)

    def _finding(self, series: Series, found: Screened, canary: CanaryReport) -> Finding:
        held = canary.holds(series.key, found.direction)
        since = night_of(self.nights, found.since) or self.tonight
        good = self.last_good(series.key, found)
        return Finding(
            key=series.key,
            rules=found.rules,
            direction=found.direction,
            effect_percent=found.effect_percent,
            low_percent=found.low_percent,
            high_percent=found.high_percent,
            baseline_nights=found.baseline_nights,
            since=since.id,
            last_good="" if good is None else good.id,
            status="held" if held else "unconfirmed",
            reason=held or "nothing was run to confirm it",
            forks_needed=forks_to_confirm(series, found.effect_log),
        )

    def last_good(self, key: SeriesKey, found: Screened) -> NightRecord | None:
        """The newest night before a change whose engine was another than tonight's; else the newest before.

        When a change began is known only within a few nights: a night just before that had tonight's engine
        already cannot tell whether the engine did it.
        """
        tonight = self.tonight.variant(key.variant)
        usual = [
            night
            for number in sorted(self.baselines.candidates(key), reverse=True)
            if number < found.since and (night := night_of(self.nights, number)) is not None
        ]
        if tonight is None or not usual:
            return night_of(self.nights, found.last_good)
        another = (
            night
            for night in usual
            if (then := night.variant(key.variant)) is not None and not same_engine(then, tonight)
        )
        return next(another, usual[0])


def same_engine(one: NightVariant, other: NightVariant) -> bool:
    """Whether two nights measured the very same thing under a label: it cannot have got slower by itself."""
    return _identity(one) == _identity(other)


def _identity(variant: NightVariant) -> object:
    facts = variant.facts
    resolved = None if facts is None else (facts.version, facts.build, facts.archive_sha256, facts.jdk)
    spec = variant.spec
    return spec.engine, spec.version, spec.jvm_flags, spec.settings, resolved
