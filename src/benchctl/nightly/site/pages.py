"""The pages of the site: of nights, tasks, suites and all of them."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import jinja2
import msgspec
from markupsafe import Markup

import benchctl
from benchctl.nightly.model import (
    Alarm,
    Confirmation,
    Finding,
    NightRecord,
    NightVariant,
    Raised,
    SeriesKey,
)
from benchctl.nightly.site.charts import KIND_TITLES, Mark, alarm_marks, metric_figure, sparkline
from benchctl.nightly.site.history import History, SuitePages, Task
from benchctl.nightly.text import (
    Standing,
    alarm_sentence,
    change_text,
    effect_text,
    headline,
    look,
    marks,
    metric_title,
    moment,
    night_label,
    not_watched,
    sentence,
    series_name,
    shift_text,
    task_name,
)
from benchctl.report.charts import dark_palette
from benchctl.report.html.parts import (
    PLOTLY,
    SCRIPT,
    STYLE,
    anchor,
    content_policy,
    embedded,
    templates,
    text_of,
)
from benchctl.report.numbers import counted, duration, figure, interval, mebibytes, p_value, signed_percent
from benchctl.report.table import Cell, Column, Table, worded

# Templates of the site: written down once, with the frame and the macros that pages of runs have.


ASSETS = "assets"
NIGHTLY_STYLE, NIGHTLY_SCRIPT = "nightly.css", "nightly.js"


def rendered(template: str, *, depth: int, **context: object) -> str:
    """Render a template to a page that lies `depth` folders below the site's."""
    up = "../" * depth
    if depth:
        context["suite_folder"] = "../" * (depth - 1)
    return _environment().get_template(template).render(context, folder=f"{up}{ASSETS}", up=up)


def assets() -> dict[str, str]:
    """Return name -> text of every file that the pages need."""
    own = files(__package__).joinpath("templates")
    found = {name: own.joinpath(name).read_text(encoding="utf-8") for name in (NIGHTLY_STYLE, NIGHTLY_SCRIPT)}
    return found | {name: text_of(name) for name in (STYLE, SCRIPT, PLOTLY)}


@cache
def _environment() -> jinja2.Environment:
    environment = templates(("benchctl.nightly.site", "templates"))
    environment.globals |= {
        "inline": False,
        "version": benchctl.__version__,
        "policy": content_policy(inline=False),
        "palette": embedded(dark_palette()),
    }
    return environment


# The pages of nights: the list of all of them, one each, and the page of alarms.


_STATES = ("open", "acknowledged", "recovered")
_SHORT_HASH = 12


class NightRow(msgspec.Struct, frozen=True):
    """A night in a list; everything but number and ids is in words."""

    number: int
    id: str  # of the night, and of its page
    started: str
    standing: Standing | Literal["unwatched"]  # one word, by which it is coloured
    headline: str
    marks: tuple[str, ...]  # what else to know of it
    changes: tuple[str, ...]
    took: str
    run: str  # id of its run; empty when that has no page


class _Finding(msgspec.Struct, frozen=True):
    name: str
    tonight: str
    since: str
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


def _night_row(suite: SuitePages, night: NightRecord, pages: Collection[str]) -> NightRow:
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


_NIGHT_COLUMNS = (
    worded("Night"),
    Column("Started", "words", html_class="when"),
    worded("State"),
    worded("To know"),
    Column("Changed", "words", html_class="changed"),
    Column("Took", html_class="took"),
    worded("Run"),
)
_CHANGES_SHOWN = 3


def _night_table(title: str, nights: Iterable[NightRow]) -> Table:
    """Return a list of nights for a page in the suite's folder."""
    return Table.of(title, _NIGHT_COLUMNS, map(_night_line, nights))


def _night_line(night: NightRow) -> tuple[Cell | str, ...]:
    changes = [*night.changes[:_CHANGES_SHOWN]]
    if len(night.changes) > _CHANGES_SHOWN:
        changes.append(f"and {len(night.changes) - _CHANGES_SHOWN} more")
    run = Cell(("run",), link=f"runs/{night.run}.html", label=f"run of night {night.number}")
    return (
        Cell((str(night.number),), link=f"nights/{night.id}.html"),
        night.started,
        Cell((night.headline,), mark=f"dot {night.standing}"),
        ", ".join(night.marks),
        "; ".join(changes),
        night.took,
        run if night.run else "",
    )


def nights_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the list of all nights, newest first."""
    return rendered(
        "nightly-nights.html.jinja",
        depth=1,
        title="Nights",
        subtitle=(f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",),
        nights=_night_table(
            "All nights, newest first",
            (_night_row(suite, night, pages) for night in reversed(suite.nights)),
        ),
    )


def night_page(suite: SuitePages, place: int, pages: Collection[str]) -> str:
    """Write the page of the night at `place` among the suite's; `pages` are ids of the runs that have one."""
    night = suite.nights[place]
    events = suite.events_of(night)
    around = {"before": place - 1, "after": place + 1}
    return rendered(
        "nightly-night.html.jinja",
        depth=2,
        title=f"Night {night.number}",
        subtitle=(f"Suite {suite.heading}, {moment(night.started)}", night.id),
        row=_night_row(suite, night, pages),
        headline=headline(night, events),
        neighbours={
            word: suite.nights[other].id for word, other in around.items() if 0 <= other < len(suite.nights)
        },
        alarms=[
            _alarm(alarm, pages)
            for alarm in suite.alarms
            if alarm.raised.night == night.id
            or (alarm.recovered is not None and alarm.recovered.night == night.id)
        ],
        findings=[_finding(one, pages) for one in night.findings],
        answers=Table.of(
            "Answers that changed",
            map(worded, ("Operation", "Variant", "Before", "Tonight")),
            ((one.operation, one.variant, one.before, one.after) for one in night.answers),
        ),
        changes=[change_text(change) for change in night.changes],
        unseen=not_watched(night),
        facts=list(_facts(night)),
        variants=[(one.label, _variant(one)) for one in night.variants],
        profiles=suite.profiles(night.id),
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
        ("Profile", "" if raised.confirmation is None else _shifts(raised.confirmation)),
        ("More", raised.detail),
    ]
    run = "" if raised.confirmation is None else raised.confirmation.run
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


def _finding(one: Finding, pages: Collection[str]) -> _Finding:
    run = "" if one.confirmation is None else one.confirmation.run
    size = f"{signed_percent(one.effect_percent)}%"
    bounds = f" ({interval(one.low_percent, one.high_percent)})"
    return _Finding(
        name=series_name(one.key),
        tonight=f"{size}{bounds}, against {counted(one.baseline_nights, 'night')}",
        since=f"{night_label(one.since)}, last good {night_label(one.last_good)}",
        status=one.status,
        reason=sentence(one.reason),
        confirmation="" if one.confirmation is None else _confirmation(one.confirmation),
        run=run if run in pages else "",
        command="" if one.confirmation is None else one.confirmation.command,
    )


def _confirmation(one: Confirmation) -> str:
    size = "" if one.effect_percent is None else f"{signed_percent(one.effect_percent)}%"
    bounds = (
        "" if one.low_percent is None else f"(95% interval {interval(one.low_percent, one.high_percent)})"
    )
    forks = f"{one.forks_good} forks of last good against {one.forks_tonight} of tonight"
    parts = (" ".join(part for part in (size, bounds) if part), f"p {p_value(one.p_adjusted)}", forks)
    return f"{', '.join(part for part in parts if part)}, run {one.run}"


def _shifts(one: Confirmation) -> str:
    listed = "; ".join(map(shift_text, one.shifts))
    return f"last good to tonight: {listed}" if listed else ""


def _facts(night: NightRecord) -> Iterable[tuple[str, str]]:
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


# The page of one task: how every variant stands, a chart of its history a metric, and what happened.


_NAME_LENGTH = 60
_DIGEST_LENGTH = 8
_MOST_MARKS = 150
_SPARK_SIZE = (330, 34)

_ROW_COLUMNS = (
    worded("Variant"),
    Column("Metric", "words", html_class="unit"),
    "Newest value",
    "Range of forks",
    "Night",
    Column("All nights", "words", html_class="line"),
)

Shifts = Mapping[SeriesKey, Sequence[Mark]]
"""Change points of every series, as marks."""


def page_name(challenge: str, task: str) -> str:
    """Return the file name of a task's page: readable, and unique among tasks."""
    digest = hashlib.sha256(f"{challenge}\0{task}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{anchor(task)[:_NAME_LENGTH].strip('-') or 'task'}-{digest}.html"


def task_page(
    suite: SuitePages, task: Task, *, common: Sequence[Mark], shifts: Shifts, nights: dict[str, Any]
) -> str:
    """Write the page of a task; `common` marks are those of every task, `nights` are from `night_data`."""
    own: list[Mark] = []
    figures = []
    for number, (metric, histories) in enumerate(task.metrics.items(), 1):
        marks = [
            *alarm_marks(suite.alarms, suite.numbers, _of_chart(histories)),
            *(mark for history in histories for mark in shifts.get(history.key, ())),
        ]
        figures.append(metric_figure(suite, metric, histories, (*common, *marks), number))
        own += [msgspec.structs.replace(mark, text=f"{metric_title(metric)}, {mark.text}") for mark in marks]
    key = SeriesKey("", task.challenge, task.task, "")
    return rendered(
        "nightly-task.html.jinja",
        depth=2,
        title=task_name(key, challenges=suite.challenges),
        subtitle=(
            f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",
            f"Challenge {task.challenge}",
        ),
        rows=Table.of(
            "The newest value of every variant, and all nights as a line",
            _ROW_COLUMNS,
            (_row(suite, one) for histories in task.metrics.values() for one in histories),
        ),
        figures=figures,
        nights=embedded(nights),
        listed=_listed(suite, [*own, *common]),
        left_out=max(0, len(own) + len(common) - _MOST_MARKS),
    )


def alarmed(suite: SuitePages, key: SeriesKey) -> set[int]:
    """Return numbers of the nights in which alarms about a series begin."""
    marks = alarm_marks(suite.alarms, suite.numbers, lambda alarm: alarm.concerns(key))
    return {mark.number for mark in marks}


def _of_chart(histories: Sequence[History]) -> Callable[[Raised], bool]:
    """Return whether an alarm is about any of a chart's series."""
    return lambda alarm: any(alarm.concerns(history.key) for history in histories)


def _row(suite: SuitePages, history: History) -> tuple[Cell | str, ...]:
    label = suite.named(history.key.variant)
    empty = history.numbers.size == 0
    spark = sparkline(
        history.numbers,
        history.means,
        span=(suite.nights[0].number, suite.nights[-1].number) if suite.nights else (0, 0),
        label=f"{label}, {metric_title(history.key.metric)}, all nights",
        position=suite.styles[history.key.variant],
        marked=alarmed(suite, history.key),
        size=_SPARK_SIZE,
    )
    return (
        label,
        metric_title(history.key.metric),
        "n/a" if empty else f"{figure(float(history.means[-1]))} {history.unit}",
        "" if empty else f"{figure(float(history.lows[-1]))} to {figure(float(history.highs[-1]))}",
        "" if empty else str(int(history.numbers[-1])),
        Cell((), drawing=spark),
    )


def _listed(suite: SuitePages, marks: Sequence[Mark]) -> Table:
    pages = {night.number: f"nights/{night.id}.html" for night in suite.nights}
    newest = sorted(marks, key=lambda mark: -mark.number)[:_MOST_MARKS]
    lines = ((str(one.number), _kind(one, one.page or pages.get(one.number, "")), one.text) for one in newest)
    columns = (
        worded("Night"),
        Column("What", "words", html_class="kind"),
        Column("Details", "words", html_class="details"),
    )
    return Table.of("What happened, newest first", columns, lines)


def _kind(mark: Mark, page: str) -> Cell:
    return Cell((KIND_TITLES[mark.kind],), mark=f"mark {mark.kind}", link=page and f"../{page}")


# The page of a suite: its last night, what is open, every task at a glance; and the page of all suites.


_CARD_VERSION = 1

_LAST_NIGHTS = 14
_STRIP_NIGHTS = 60
_SPARK_NIGHTS = 90


class Card(msgspec.Struct, frozen=True, rename="kebab"):
    """A suite on the page of all suites; it stands as `suite.json` beside the suite's pages."""

    card_version: int
    name: str  # of the suite and its folder
    title: str  # what people call it
    standing: str  # of its last night; empty when there was none
    headline: str  # the same in words
    night: int  # number of that night; 0 when there was none
    started: str
    open: int  # alarms that nobody has acknowledged
    nights: int  # how many there are


def card_of(suite: SuitePages) -> Card:
    """Return a suite's state."""
    last = suite.nights[-1] if suite.nights else None
    return Card(
        card_version=_CARD_VERSION,
        name=suite.name,
        title=suite.heading,
        standing="" if last is None else look(last, suite.events_of(last)),
        headline="no night yet" if last is None else headline(last, suite.events_of(last)),
        night=0 if last is None else last.number,
        started="" if last is None else moment(last.started),
        open=len(_open(suite)),
        nights=len(suite.nights),
    )


def suite_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the page of a suite; `pages` are ids of the runs that have one."""
    rows = [_night_row(suite, night, pages) for night in suite.nights[-_STRIP_NIGHTS:]]
    last = suite.nights[-1] if suite.nights else None
    return rendered(
        "nightly-suite.html.jinja",
        depth=1,
        title=suite.heading,
        subtitle=_subtitle(suite),
        card=card_of(suite),
        last=rows[-1] if rows else None,
        unseen=[] if last is None else not_watched(last),
        strip=rows,
        alarms=_open(suite),
        known=[alarm for alarm in suite.alarms if alarm.state == "acknowledged"],
        tasks=_task_table(suite),
        spark_nights=min(_SPARK_NIGHTS, len(suite.nights)),
        nights=_night_table("The last nights", rows[-_LAST_NIGHTS:][::-1]),
        more=max(0, len(suite.nights) - _LAST_NIGHTS),
    )


def suites_page(cards: Sequence[Card], unreadable: Sequence[str]) -> str:
    """Write the page of all suites, with a sentence for each that cannot be read."""
    return rendered(
        "nightly-suites.html.jinja",
        depth=0,
        title="Nightly benchmarks",
        subtitle=(counted(len(cards), "suite"),),
        cards=sorted(cards, key=lambda card: card.name),
        unreadable=unreadable,
    )


def _open(suite: SuitePages) -> list[Alarm]:
    return [alarm for alarm in suite.alarms if alarm.state == "open"]


def _subtitle(suite: SuitePages) -> tuple[str, ...]:
    if not suite.nights:
        return ("Nothing has been measured yet.",)
    first, last = suite.nights[0], suite.nights[-1]
    days = dict.fromkeys((moment(first.started)[:10], moment(last.started)[:10]))
    when = f"{counted(len(suite.nights), 'night')}, {' to '.join(days)}"
    variants = ", ".join(suite.named(label) for label in suite.roles)
    return (when, f"{counted(len(suite.tasks), 'task')} on {variants}") if suite.tasks else (when,)


def _task_table(suite: SuitePages) -> Table:
    variants = (
        Column(suite.named(label), "words", swatch=style, html_class="line")
        for label, style in suite.styles.items()
    )
    columns = (worded("Task"), Column("Metric", "words", html_class="unit"), *variants)
    title = "Tasks: last value and last nights of every variant"
    return Table.of(title, columns, (_line(suite, task) for task in suite.tasks))


def _line(suite: SuitePages, task: Task) -> tuple[Cell | str, ...]:
    metric, histories = next(iter(task.metrics.items()))
    found = {history.key.variant: history for history in histories}
    key = SeriesKey("", task.challenge, task.task, metric)
    about = sum(_is_about(alarm, task) for alarm in _open(suite))
    name = Cell(
        (task_name(key, challenges=suite.challenges),),
        link=f"tasks/{page_name(task.challenge, task.task)}",
        badge=f"{about} open" if about else "",
    )
    cells = (_cell(suite, label, found.get(label), metric) for label in suite.roles)
    return (name, f"{metric_title(metric)}, {histories[0].unit}", *cells)


def _is_about(alarm: Alarm, task: Task) -> bool:
    """Return whether it is about a figure or answer of a task, not about all of them alike."""
    raised = alarm.raised
    if raised.operations:
        return task.task in raised.operations
    return raised.key.task == task.task and raised.key.challenge in ("", task.challenge)


def _cell(suite: SuitePages, label: str, history: History | None, metric: str) -> Cell:
    if history is None or history.numbers.size == 0:
        return Cell((), drawing=Markup('<span class="nothing">no value</span>'))
    last = suite.nights[-1].number if suite.nights else int(history.numbers[-1])
    stale = int(history.numbers[-1]) != last
    value = figure(float(history.means[-1]))
    spark = sparkline(
        history.numbers,
        history.means,
        span=(max(1, last - _SPARK_NIGHTS + 1), last),
        label=f"{suite.named(label)}, {metric_title(metric)}, last {counted(_SPARK_NIGHTS, 'night')}",
        position=suite.styles[label],
        marked=alarmed(suite, history.key),
    )
    return Cell((f"{value} (night {int(history.numbers[-1])})" if stale else value,), drawing=spark)
