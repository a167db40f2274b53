"""The pages of the site: of nights, tasks, suites and all of them."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from markupsafe import Markup

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
from benchctl.report.html.parts import (
    PLOTLY,
    SCRIPT,
    STYLE,
    Figures,
    Group,
    PageBlock,
    Part,
    anchor,
    embedded,
    link,
    rendered,
    text_of,
)
from benchctl.report.numbers import counted, duration, figure, interval, mebibytes, p_value, signed_percent
from benchctl.report.table import Cell, Column, Drawing, Items, Table, Verdict, worded

ASSETS = "assets"
FEED = "feed.xml"


def _rendered(title: str, subtitle: Sequence[str], parts: Iterable[Part], *, depth: int) -> str:
    """Render a page that lies `depth` folders below the site's."""
    up, own = "../" * depth, "../" * (depth - 1)
    pages = {"Overview": "index.html", "Alarms": "alarms.html", "Nights": "nights.html", "Feed": FEED}
    links = [*((f"{own}{page}", name) for name, page in pages.items()), (f"{up}index.html", "All suites")]
    return rendered(
        title,
        parts,
        subtitle=subtitle,
        folder=f"{up}{ASSETS}",
        links=links if depth else (),
        feed=f"{own}{FEED}" if depth else "",
    )


def assets() -> dict[str, str]:
    """Return name -> text of every file that the pages need."""
    return {name: text_of(name) for name in (STYLE, SCRIPT, PLOTLY)}


def _listed(heading: str, lines: Iterable[str], otherwise: str = "") -> list[PageBlock]:
    """Return a list, or what stands for an empty one."""
    items = tuple(lines)
    return [Items(heading, items)] if items else [otherwise] if otherwise else []


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
    rows = [_night_row(suite, night, pages) for night in reversed(suite.nights)]
    table: PageBlock = _night_table("All nights, newest first", rows) if rows else "There was none yet."
    subtitle = (f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",)
    return _rendered("Nights", subtitle, [Part("", "", [table])], depth=1)


def night_page(suite: SuitePages, place: int, pages: Collection[str]) -> str:
    """Write the page of the night at `place` among the suite's; `pages` are ids of the runs that have one."""
    night = suite.nights[place]
    row = _night_row(suite, night, pages)
    around = {"The night before": place - 1, "The night after": place + 1}
    links = [link(f"../runs/{row.run}.html", "The run of this night")] if row.run else []
    links += [
        link(f"{suite.nights[other].id}.html", word)
        for word, other in around.items()
        if 0 <= other < len(suite.nights)
    ]
    alarms = [
        alarm
        for alarm in suite.alarms
        if night.id in (alarm.raised.night, alarm.recovered and alarm.recovered.night)
    ]
    answers = Table.of(
        "Answers that changed",
        map(worded, ("Operation", "Variant", "Before", "Tonight")),
        ((answer.operation, answer.variant, answer.before, answer.after) for answer in night.answers),
    )
    profiles = [
        Group(
            f"{profile.variant}: {profile.task} of {profile.challenge}, {profile.samples:,} samples",
            (Items("", tuple(f"{100 * share:.1f}% {method}" for method, share in profile.methods)),),
            folded=True,
        )
        for profile in suite.profiles(night.id)
    ]
    how = "Methods that ran when threads were sampled, in separate forks; shares of the samples of a task."
    variants = [block for variant in night.variants for block in _listed(variant.label, _variant(variant))]
    parts = [
        Part("", "", [Verdict(sentence(row.headline), row.standing), *_listed("", links)]),
        Part("alarms", "Alarms", [_alarm(alarm, pages, "../") for alarm in alarms]),
        Part("unseen", "To know", _listed("", not_watched(night))),
        Part(
            "findings",
            "Findings",
            [_finding(finding, pages) for finding in night.findings] or ["No series left its usual range."],
        ),
        Part("answers", "Answers that changed", [answers] if answers.lines else []),
        Part(
            "changes",
            "Changed since the night before",
            _listed("", map(change_text, night.changes), "Nothing that benchctl knows of."),
        ),
        Part("profiles", "Where time went", [how, *profiles] if profiles else []),
        Part("setting", "What was measured, and on what", [*_listed("", _facts(night)), *variants]),
    ]
    subtitle = (f"Suite {suite.heading}, {moment(night.started)}", night.id)
    return _rendered(f"Night {night.number}", subtitle, parts, depth=2)


def alarms_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the page of alarms: open ones first, then acknowledged, then recovered, newest first in each."""
    newest = sorted(suite.alarms, key=lambda alarm: -alarm.raised.alarm)
    parts = [
        Part(
            state, state.capitalize(), [_alarm(alarm, pages, "") for alarm in newest if alarm.state == state]
        )
        for state in _STATES
    ]
    none = [] if newest else [Part("", "", ["No alarm has been raised."])]
    subtitle = (f"Suite {suite.heading}, {counted(len(newest), 'alarm')}",)
    return _rendered("Alarms", subtitle, [*none, *parts], depth=1)


def _alarm(alarm: Alarm, pages: Collection[str], own: str) -> Group:
    """Return an alarm for a page from which the suite's folder is at `own`."""
    raised, confirmed = alarm.raised, alarm.raised.confirmation
    facts = {
        "State": alarm_sentence(alarm),
        "What": series_name(raised.key),
        "Challenge": raised.key.challenge,
        "How much": effect_text(raised),
        "Direction": raised.direction or "",
        "Since": night_label(raised.since) if raised.since else "",
        "Last good": night_label(raised.last_good) if raised.last_good else "",
        "Raised": f"{night_label(raised.night)}, {moment(raised.at)}",
        "Acknowledged": moment(alarm.acknowledged.at) if alarm.acknowledged else "",
        "Recovered": moment(alarm.recovered.at) if alarm.recovered else "",
        "Confirmed": "" if confirmed is None else _confirmation(confirmed),
        "Profile": "" if confirmed is None else _shifts(confirmed),
        "More": raised.detail,
        "Changed then": "; ".join(map(change_text, raised.changes)) or "nothing that benchctl knows of",
    }
    links = [link(f"{own}nights/{raised.night}.html", "The night that raised it")]
    if confirmed is not None and confirmed.run in pages:
        links.append(link(f"{own}runs/{confirmed.run}.html", "The confirming run"))
    lines = (*(f"{name}: {text}" for name, text in facts.items() if text), *links)
    return Group(
        f"#{raised.alarm} {raised.title}",
        (Items("", lines), *_command(raised.command)),
        key=f"alarm-{raised.alarm}",
        look=f"alarm {alarm.state}",
    )


def _command(line: str) -> list[PageBlock]:
    return [Drawing((line,))] if line else []


def _finding(one: Finding, pages: Collection[str]) -> Group:
    bounds = f" ({interval(one.low_percent, one.high_percent)})"
    against = counted(one.baseline_nights, "night")
    lines = [
        f"Tonight: {signed_percent(one.effect_percent)}%{bounds}, against {against}",
        f"Since: {night_label(one.since)}, last good {night_label(one.last_good)}",
    ]
    confirmed = one.confirmation
    if confirmed is not None:
        lines.append(f"Confirmation: {_confirmation(confirmed)}")
        if confirmed.run in pages:
            lines.append(link(f"../runs/{confirmed.run}.html", "The confirming run"))
    return Group(
        f"{series_name(one.key)}: {one.status}",
        (
            sentence(one.reason),
            Items("", tuple(lines)),
            *_command("" if confirmed is None else confirmed.command),
        ),
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


def _facts(night: NightRecord) -> Iterator[str]:
    yield f"Status: {night.status}{f': {night.reason}' if night.reason else ''}"
    if night.run:
        yield f"Run: {night.run}"
    confirming = [run for run in night.runs if run != night.run]
    if confirming:
        yield f"Confirming runs: {', '.join(confirming)}"
    if night.forks_planned:
        yield f"Forks of each variant: {night.forks_done} of {night.forks_planned}"
    if night.wall_s:
        budget = f", budget {duration(night.budget_s)}" if night.budget_s else ""
        yield f"Took: {duration(night.wall_s)}{budget}"
    host = night.environment
    if host is not None:
        commit = f" ({host.benchctl_commit[:_SHORT_HASH]})" if host.benchctl_commit else ""
        yield f"benchctl: {host.benchctl}{commit}"
        yield f"Host: {host.cpus} CPUs, {host.cpu_model}, {mebibytes(host.memory_bytes)}"
        yield f"System: {host.distribution}, kernel {host.kernel}"
        yield f"Load before: {' '.join(f'{load:.2f}' for load in host.load_before)}"


def _variant(one: NightVariant) -> Iterator[str]:
    yield from (f"Role: {one.role}", f"Asked for: {one.asked}", f"Version: {one.spec.version}")
    if one.spec.jvm_flags:
        yield f"JVM flags: {' '.join(one.spec.jvm_flags)}"
    if one.facts is not None:
        build = one.facts.build[:_SHORT_HASH]
        yield f"Node: {one.facts.version}, build {build}, Lucene {one.facts.lucene}"
        yield f"Java: {one.facts.jdk}"


# The page of one task: how every variant stands, a chart of its history a metric, and what happened.


_NAME_LENGTH = 60
_DIGEST_LENGTH = 8
_MOST_MARKS = 150
_SPARK_SIZE = (330, 34)
_SPANS = Markup('<p class="spans" role="group" aria-label="Nights that are shown"></p>')

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
    table = Table.of(
        "The newest value of every variant, and all nights as a line",
        _ROW_COLUMNS,
        (_row(suite, one) for histories in task.metrics.values() for one in histories),
    )
    happened = _mark_table(suite, [*own, *common])
    left_out = max(0, len(own) + len(common) - _MOST_MARKS)
    more = Markup("<p>{} more are on the pages of {} and {}.</p>").format(
        left_out, link("../nights.html", "nights"), link("../alarms.html", "alarms")
    )
    data = Markup('<script type="application/json" id="nights">{}</script>').format(embedded(nights))
    parts = [
        Part("state", "How it stands", [table]),
        Part("history", "History", [_SPANS, *(Figures((figure,)) for figure in figures)]),
        Part(
            "happened",
            "What happened",
            [
                happened if happened.lines else "Nothing that benchctl knows of.",
                *([more] if left_out else []),
                data,
            ],
        ),
    ]
    return _rendered(
        task_name(SeriesKey("", task.challenge, task.task, ""), challenges=suite.challenges),
        (
            f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",
            f"Challenge {task.challenge}",
        ),
        parts,
        depth=2,
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


def _mark_table(suite: SuitePages, marks: Sequence[Mark]) -> Table:
    pages = {night.number: f"nights/{night.id}.html" for night in suite.nights}
    newest = sorted(marks, key=lambda mark: -mark.number)[:_MOST_MARKS]
    lines = (
        (
            str(entry.number),
            _kind(entry, entry.page or pages.get(entry.number, "")),
            entry.text,
        )
        for entry in newest
    )
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
    acknowledged = sum(alarm.state == "acknowledged" for alarm in suite.alarms)
    alarms = Markup("None. {} acknowledged: {}.").format(acknowledged, link("alarms.html", "all alarms"))
    more = max(0, len(suite.nights) - _LAST_NIGHTS)
    spark_nights = min(_SPARK_NIGHTS, len(suite.nights))
    how = (
        f"The last {spark_nights} nights of each series, on its own scale of at least 10%; the number "
        "is the last value."
        if spark_nights > 1
        else "After more nights there is a line for each."
    )
    parts = [
        Part("", "", [*_last_night(rows), *_strip(rows)]),
        Part("unseen", "To know", _listed("", not_watched(suite.nights[-1])) if rows else []),
        Part(
            "open",
            "Open alarms",
            _listed(
                "",
                (
                    link(f"alarms.html#alarm-{one.raised.alarm}", f"#{one.raised.alarm} {one.raised.title}")
                    for one in _open(suite)
                ),
            )
            or ["None." if not acknowledged else Markup("<p>{}</p>").format(alarms)],
        ),
        Part(
            "tasks",
            "Tasks",
            [how, _task_table(suite)] if suite.tasks else ["No figure has been measured yet."],
        ),
        Part(
            "nights",
            "Last nights",
            [
                _night_table("The last nights", rows[-_LAST_NIGHTS:][::-1]),
                *_listed(
                    "", [Markup("{}: {} more").format(link("nights.html", "All nights"), more)] * bool(more)
                ),
            ]
            if rows
            else ["There was none yet."],
        ),
    ]
    return _rendered(suite.heading, _subtitle(suite), parts, depth=1)


def _last_night(rows: Sequence[NightRow]) -> list[PageBlock]:
    if not rows:
        return [Verdict("No night yet.")]
    last = rows[-1]
    name = link(f"nights/{last.id}.html", f"Night {last.number}")
    took = f", took {last.took}" if last.took else ""
    run = [link(f"runs/{last.run}.html", "Its run")] if last.run else []
    return [
        Verdict(Markup("{}: {}").format(name, last.headline), last.standing),
        f"{last.started}{took}",
        *_listed("", run),
    ]


_LOOKS: Mapping[str, str] = {
    "quiet": "quiet",
    "unwatched": "quiet, but the host moved or was noisy",
    "alarm": "alarm",
    "broken": "no figures",
}


def _strip(rows: Sequence[NightRow]) -> list[PageBlock]:
    """Return a mark for each night, the newest at the end; one alone shows nothing."""
    if not rows[1:]:
        return []
    key = Markup(" ").join(
        Markup('<span class="dot {}" aria-hidden="true"></span>{}').format(*look) for look in _LOOKS.items()
    )
    mark = Markup(
        '<li><a class="{}" href="nights/{}.html" title="{}"><span class="hidden">{}</span></a></li>'
    )
    marks = Markup().join(
        mark.format(
            night.standing,
            night.id,
            f"night {night.number}, {night.started}: {night.headline}",
            f"night {night.number}: {night.headline}",
        )
        for night in rows
    )
    about = Markup('<p class="about">The last {} nights, the newest at the end: {}</p>').format(
        len(rows), key
    )
    return [about, Markup('<ol class="strip">{}</ol>').format(marks)]


def suites_page(cards: Sequence[Card], unreadable: Sequence[str]) -> str:
    """Write the page of all suites, with a sentence for each that cannot be read."""
    groups = [
        Group(
            link(f"{card.name}/index.html", card.title),
            (
                Verdict(
                    f"Night {card.night}: {card.headline}" if card.night else card.headline, card.standing
                ),
                ", ".join(
                    [
                        *filter(None, [card.started]),
                        counted(card.nights, "night"),
                        *([f"{counted(card.open, 'alarm')} open"] if card.open else []),
                    ]
                ),
            ),
        )
        for card in sorted(cards, key=lambda card: card.name)
    ]
    blocks: list[PageBlock] = [*groups, *unreadable] if groups else ["No suite yet.", *unreadable]
    subtitle = (counted(len(cards), "suite"),)
    return _rendered("Nightly benchmarks", subtitle, [Part("", "", blocks)], depth=0)


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
    by_variant = {history.key.variant: history for history in histories}
    key = SeriesKey("", task.challenge, task.task, metric)
    about = sum(_is_about(alarm, task) for alarm in _open(suite))
    name = Cell(
        (task_name(key, challenges=suite.challenges),),
        link=f"tasks/{page_name(task.challenge, task.task)}",
        badge=f"{about} open" if about else "",
    )
    cells = (_cell(suite, label, by_variant.get(label), metric) for label in suite.roles)
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
