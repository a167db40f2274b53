"""The record of a night: what was measured, on what, what was found. Written as night.json."""

from typing import Final, Literal

import msgspec

from benchctl.results.model import EngineFacts, Environment
from benchctl.results.plan import VariantSpec

NIGHT_VERSION: Final = 1

Role = Literal["watched", "canary"]
"""A watched variant is what alarms are about; a canary never changes, so that what moves it is the host."""

NightStatus = Literal["running", "done", "refused", "failed", "interrupted", "discarded"]
"""`refused`: the host was not fit to measure on. `discarded`: cut off, and the suite does not resume."""

Direction = Literal["faster", "slower"]


class SeriesKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """What is followed from night to night.

    Attributes:
        variant: its label in the suite, whatever version that means in a night.
        challenge: title of the challenge; with its number where it runs more than once.
        task: label of the task; with its number where the challenge has several of that label.
        metric: machine name.
    """

    variant: str
    challenge: str
    task: str
    metric: str


class NightVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One variant of a suite in one night.

    Attributes:
        label: its name in the suite and in the night's run.
        role: watched, or a canary.
        asked: as the suite has it, such as `es@latest`.
        spec: what that meant, versions resolved.
        pinned: the same variant with nothing left to move: distribution and Java runtime by path where a
            version does not say it; None when the night ended before that was known.
        facts: what the node said it is; None when none was started.
        index_key: digest of its prepared index; empty for none.
        warmups: digest of what it alone warms up with; empty for nothing, and in records from before it was
            kept.
    """

    label: str
    role: Role
    asked: str
    spec: VariantSpec
    pinned: VariantSpec | None = None
    facts: EngineFacts | None = None
    index_key: str = ""
    warmups: str = ""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Something that is not what it was in the night before.

    Attributes:
        what: such as `kernel`, `benchctl`, `es: version`, `es: JVM flags`.
        before, after: in words; empty where there was or is nothing.
        variant: whose it is; empty for the host and benchctl.
    """

    what: str
    before: str
    after: str
    variant: str = ""


Rule = Literal["step", "drift", "outlier"]
"""Which screen found it: a t-test against earlier nights, CUSUM, or outside the prediction interval."""

FindingStatus = Literal["confirmed", "refuted", "unconfirmed", "held", "same engine", "known"]
"""What became of a finding.

confirmed: an interleaved run of last-good against tonight shows it, so an alarm is raised.
refuted: that run does not show it.
unconfirmed: there was no time for enough forks, or that run failed.
held: the canary moved too: it was the host.
same engine: nothing of the variant has changed since last-good, so it cannot be slower by itself.
known: an alarm is about it already, and it recovers.
"""


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Last-good against tonight, interleaved on fresh nodes, on one task and metric.

    Attributes:
        run: id of the confirming run.
        forks_good, forks_tonight: with a value.
        effect_percent, low_percent, high_percent: tonight over last-good, minus one; the 95 % interval. None
            where forks were too few.
        p_adjusted: by Benjamini and Hochberg over what was to be confirmed; None without a test.
        command: what repeats it.
    """

    run: str
    forks_good: int
    forks_tonight: int
    effect_percent: float | None
    low_percent: float | None
    high_percent: float | None
    p_adjusted: float | None
    command: str


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A series that left its usual range in a night.

    Attributes:
        key: which series.
        rules: the screens that it did not pass.
        direction: which way, whatever the metric's better way is.
        effect_percent: tonight over the baseline nights, minus one; of a drift, the mean of its nights.
        low_percent, high_percent: its 95 % interval; None where the nights are too few for one.
        baseline_nights: on how many nights it rests.
        since: id of the night in which it probably began; tonight's unless it crept up.
        last_good: id of the newest night that surely had the level from before; not always the one before
            `since`.
        status: what became of it.
        reason: of the status, in a sentence.
        forks_needed: a side, to confirm it with 80 % power; None where it cannot be told.
        confirmation: None when none was run.
    """

    key: SeriesKey
    rules: tuple[Rule, ...]
    direction: Direction
    effect_percent: float
    low_percent: float | None
    high_percent: float | None
    baseline_nights: int
    since: str
    last_good: str
    status: FindingStatus
    reason: str
    forks_needed: int | None = None
    confirmation: Confirmation | None = None


class AnswerChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A search that is answered otherwise than in an earlier night, on the same documents.

    Attributes:
        variant: label of the variant.
        operation: name of the operation.
        before, after: what it was and is, such as `1,000 hits`; in words.
        since: id of the night that it is compared with.
    """

    variant: str
    operation: str
    before: str
    after: str
    since: str


class NightRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One night of a suite, whether it was measured or not. A night that never began has none.

    Attributes:
        night_version: of this format.
        id: number and start, such as `00042-20261121-0300`; ids sort in the order in which nights began,
            whatever the clock says.
        number: from 1; no two nights of a suite have the same.
        suite: name of the suite.
        started: wall clock, ISO 8601 with offset: a label, never reckoned with.
        status: see `NightStatus`.
        reason: of the status, where it is not `done`; else which variants have no figures, and why.
        era: digest of everything that must be alike for nights to be compared: host, corpus, challenges,
            sizes. Series begin anew where it changes.
        environment: the host; None when it was not looked at.
        variants: what was measured.
        run: id of the night's run; empty when there is none.
        runs: every run that belongs to it, the confirming ones included; empty where there is none.
        forks_planned, forks_done: of every variant; done is the least of any.
        noise: why the night is marked as noisy; empty when it is not.
        caveats: what else a reader should know.
        changes: since the night before.
        findings: in order of the schedule.
        answers: what was answered otherwise than before.
        canary_moved: why the canary says that the host moved; empty when it does not.
        wall_s: from start to end, on a clock that does not jump.
        budget_s: what it was to keep within.
    """

    night_version: int
    id: str
    number: int
    suite: str
    started: str
    status: NightStatus
    reason: str = ""
    era: str = ""
    environment: Environment | None = None
    variants: tuple[NightVariant, ...] = ()
    run: str = ""
    runs: tuple[str, ...] = ()
    forks_planned: int = 0
    forks_done: int = 0
    noise: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    answers: tuple[AnswerChange, ...] = ()
    canary_moved: str = ""
    wall_s: float = 0.0
    budget_s: float = 0.0

    def variant(self, label: str) -> NightVariant | None:
        """One of its variants; None when it has no such."""
        return next((one for one in self.variants if one.label == label), None)
