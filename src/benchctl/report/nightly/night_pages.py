"""The pages of nights: the list of all of them, one each, and the page of alarms."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from benchctl.report.nightly.standing import (
    Standing,
    alarm_sentence,
    change_text,
    effect_text,
    headline,
    look,
    marks,
    moment,
    night_label,
    not_watched,
    sentence,
    series_name,
)
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.nightly.templates import rendered
from benchctl.report.numbers import counted, duration, interval, mebibytes, p_value, signed_percent
from benchctl.results.nightly.model import Alarm, Confirmation, Finding, NightRecord, NightVariant, Raised

_STATES = ("open", "acknowledged", "recovered")
_SHORT_HASH = 12


class NightRow(msgspec.Struct, frozen=True):
    """A night in a list.

    Attributes:
        number: of the night.
        id: of the night; its page is called so.
        started: in words.
        standing: one word, by which it is coloured.
        headline: in words.
        marks: what else to know of it.
        changes: what was not as before, in words.
        took: in words.
        run: id of its run; empty when that has no page.
    """

    number: int
    id: str
    started: str
    standing: Standing | Literal["unwatched"]
    headline: str
    marks: tuple[str, ...]
    changes: tuple[str, ...]
    took: str
    run: str


class _Finding(msgspec.Struct, frozen=True):
    name: str
    tonight: str
    since: str
    rules: str
    status: str
    reason: str
    confirmation: str
    run: str
    command: str


class _Alarm(msgspec.Struct, frozen=True):
    number: int
    state: str
    title: str
    facts: tuple[tuple[str, str], ...]
    changes: tuple[str, ...]
    night: str
    run: str
    command: str


def night_row(suite: SuitePages, night: NightRecord, pages: Collection[str]) -> NightRow:
    """A night as lists show it."""
    events = suite.events_of(night)
    return NightRow(
        number=night.number,
        id=night.id,
        started=moment(night.started),
        standing=look(night, events),
        headline=headline(night, events),
        marks=marks(night),
        changes=tuple(map(change_text, night.changes)),
        took=duration(night.wall_s) if night.wall_s else "",
        run=night.run if night.run in pages else "",
    )


def nights_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the list of all nights, newest first."""
    return rendered(
        "nightly-nights.html.jinja",
        depth=1,
        title="Nights",
        subtitle=(f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",),
        nights=[night_row(suite, night, pages) for night in reversed(suite.nights)],
    )


def night_page(suite: SuitePages, place: int, pages: Collection[str]) -> str:
    """Write the page of one night.

    Args:
        suite: that it belongs to.
        place: of the night among the suite's.
        pages: ids of the runs that have a page.
    """
    night = suite.nights[place]
    events = suite.events_of(night)
    around = {"before": place - 1, "after": place + 1}
    return rendered(
        "nightly-night.html.jinja",
        depth=2,
        title=f"Night {night.number}",
        subtitle=(f"Suite {suite.heading}, {moment(night.started)}", night.id),
        row=night_row(suite, night, pages),
        headline=headline(night, events),
        neighbours={
            word: suite.nights[other].id for word, other in around.items() if 0 <= other < len(suite.nights)
        },
        alarms=[_alarm(alarm, pages) for alarm in suite.alarms if _is_of(alarm, night)],
        findings=[_finding(one, pages) for one in night.findings],
        answers=night.answers,
        changes=[change_text(change) for change in night.changes],
        unseen=not_watched(night),
        facts=list(_facts(night)),
        variants=[(one.label, _variant(one)) for one in night.variants],
    )


def alarms_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the page of alarms: open ones first, then acknowledged, then recovered, newest first in each."""
    ordered = sorted(suite.alarms, key=lambda one: (_STATES.index(one.state), -one.raised.alarm))
    return rendered(
        "nightly-alarms.html.jinja",
        depth=1,
        title="Alarms",
        subtitle=(f"Suite {suite.heading}, {counted(len(ordered), 'alarm')}",),
        groups=[
            (state, [_alarm(one, pages) for one in ordered if one.state == state])
            for state in _STATES
            if any(one.state == state for one in ordered)
        ],
    )


def _is_of(alarm: Alarm, night: NightRecord) -> bool:
    return alarm.raised.night == night.id or (
        alarm.recovered is not None and alarm.recovered.night == night.id
    )


def _alarm(alarm: Alarm, pages: Collection[str]) -> _Alarm:
    raised = alarm.raised
    facts = [
        ("State", alarm_sentence(alarm)),
        ("What", series_name(raised.key)),
        ("Challenge", raised.key.challenge),
        ("How much", effect_text(raised)),
        ("Direction", raised.direction or ""),
        ("Since", night_label(raised.since) if raised.since else ""),
        ("Last good", night_label(raised.last_good) if raised.last_good else ""),
        ("Raised", f"{night_label(raised.night)}, {moment(raised.at)}"),
        ("Acknowledged", moment(alarm.acknowledged.at) if alarm.acknowledged else ""),
        ("Recovered", moment(alarm.recovered.at) if alarm.recovered else ""),
        ("Confirmed", "" if raised.confirmation is None else _confirmation(raised.confirmation)),
        ("More", raised.detail),
    ]
    run = _run(raised)
    return _Alarm(
        number=raised.alarm,
        state=alarm.state,
        title=raised.title,
        facts=tuple((name, text) for name, text in facts if text),
        changes=tuple(map(change_text, raised.changes)),
        night=raised.night,
        run=run if run in pages else "",
        command=raised.command,
    )


def _run(raised: Raised) -> str:
    return "" if raised.confirmation is None else raised.confirmation.run


def _finding(one: Finding, pages: Collection[str]) -> _Finding:
    run = "" if one.confirmation is None else one.confirmation.run
    size = f"{signed_percent(one.effect_percent)} %"
    bounds = "" if one.low_percent is None else f" ({interval(one.low_percent, one.high_percent)})"
    reason = sentence(one.reason)
    if one.status == "unconfirmed" and one.forks_needed is not None:
        reason += f" It would take {counted(one.forks_needed, 'fork')} a side."
    return _Finding(
        name=series_name(one.key),
        tonight=f"{size}{bounds}, against {counted(one.baseline_nights, 'night')}",
        since=f"{night_label(one.since)}, last good {night_label(one.last_good)}",
        rules=", ".join(one.rules),
        status=one.status,
        reason=reason,
        confirmation="" if one.confirmation is None else _confirmation(one.confirmation),
        run=run if run in pages else "",
        command="" if one.confirmation is None else one.confirmation.command,
    )


def _confirmation(one: Confirmation) -> str:
    size = "" if one.effect_percent is None else f"{signed_percent(one.effect_percent)} %"
    bounds = (
        "" if one.low_percent is None else f"(95 % interval {interval(one.low_percent, one.high_percent)})"
    )
    forks = f"{one.forks_good} forks of last good against {one.forks_tonight} of tonight"
    parts = (" ".join(part for part in (size, bounds) if part), f"p {p_value(one.p_adjusted)}", forks)
    return f"{', '.join(part for part in parts if part)}, run {one.run}"


def _facts(night: NightRecord) -> Iterable[tuple[str, str]]:
    """What there is to know of a night beyond its findings."""
    yield "Status", f"{night.status}{f': {night.reason}' if night.reason else ''}"
    if night.run:
        yield "Run", night.run
    confirming = [run for run in night.runs if run != night.run]
    if confirming:
        yield "Confirming runs", ", ".join(confirming)
    if night.forks_planned:
        yield "Forks of each variant", f"{night.forks_done} of {night.forks_planned}"
    if night.wall_s:
        budget = f", budget {duration(night.budget_s)}" if night.budget_s else ""
        yield "Took", f"{duration(night.wall_s)}{budget}"
    host = night.environment
    if host is not None:
        commit = f" ({host.benchctl_commit[:_SHORT_HASH]})" if host.benchctl_commit else ""
        yield "benchctl", f"{host.benchctl}{commit}"
        yield "Host", f"{host.cpus} CPUs, {host.cpu_model}, {mebibytes(host.memory_bytes)}"
        yield "System", f"{host.distribution}, kernel {host.kernel}"
        yield "Load before", " ".join(f"{load:.2f}" for load in host.load_before)


def _variant(one: NightVariant) -> Sequence[tuple[str, str]]:
    found = [("Role", one.role), ("Asked for", one.asked), ("Version", one.spec.version)]
    if one.spec.jvm_flags:
        found.append(("JVM flags", " ".join(one.spec.jvm_flags)))
    if one.facts is not None:
        found += [
            (
                "Node",
                f"{one.facts.version}, build {one.facts.build[:_SHORT_HASH]}, Lucene {one.facts.lucene}",
            ),
            ("Java", one.facts.jdk),
        ]
    return found
