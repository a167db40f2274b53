"""`--sweep WHAT=VALUE,...`: variants and challenges at every value of a setting."""

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from benchctl.engine.variant import VARIANT_OPTIONS, check_spec, with_newest, with_option
from benchctl.errors import UsageError, suggestion
from benchctl.quantities import COUNT, DURATION, PERCENT, SIZE
from benchctl.results.plan import HISTORIES, HISTORY, Axis, Plan, Swept, VariantSpec
from benchctl.run.documents import is_generated
from benchctl.track.load import refuse_unswept
from benchctl.track.model import Challenge, Track, TrackOperation
from benchctl.track.template import parse_params

MOST_POINTS = 64
"""More would take days."""
DOCS = "docs"
_PARAMETER = "param:"
_INDEX_SETTING = "setting:index."
_FORM = "write WHAT=VALUE,VALUE, such as clients=1,2,4,8 or docs=250k,1m"
_UNFIT = re.compile(r"[^a-z0-9._-]+")
_LONGEST_NAME = 60
# Options whose values are names, even if they look like numbers.
_NAMES = frozenset({"jdk", "version", "jar", "plugin", "warmup", "distribution", "start"})
Point = Mapping[str, str]
"""Name of an axis -> its value, as written."""
LoadAt = Callable[[Mapping[str, Any]], tuple[tuple[Challenge, ...], Track]]
"""Loads the challenges, and the track, with further parameters."""


@dataclass(frozen=True)
class Sweep:
    """The axis of `--sweep`."""

    axes: tuple[Axis, ...]  # one, or none

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Sweep":
        """Read the axis.

        Raises:
            UsageError: If there are several, or one has no name, a value again, fewer than two or too many.
        """
        if len(texts) > 1:
            raise UsageError(
                f"--sweep {texts[1]}: a run sweeps one setting",
                hint="name what else differs as variants, such as --variant a=es,heap:1g "
                "--variant b=es,heap:2g",
            )
        return cls(tuple(map(_axis, texts)))

    @property
    def documents(self) -> tuple[int, ...]:
        """Numbers of documents of the prepared indices, where these are swept."""
        return tuple(COUNT.parse(value) for axis in self.axes if axis.name == DOCS for value in axis.values)

    @property
    def _of_variants(self) -> bool:
        """Return whether it is about variants and their indices, not about challenges."""
        return any(axis.name == DOCS or _option(axis.name) is not None for axis in self.axes)

    def _points(self) -> list[Point]:
        return [{axis.name: value} for axis in self.axes for value in axis.values]

    def variants(self, families: Sequence[VariantSpec]) -> list[tuple[VariantSpec, Swept]]:
        """Return every variant at every point of an axis that is about variants, else at none.

        Raises:
            UsageError: If a variant cannot have a value, points are alike, or a cluster runs already.
        """
        if not self._of_variants:
            return [(family, Swept(family.name)) for family in families]
        axis = self.axes[0].name
        if target := next((variant.name for variant in families if variant.target is not None), None):
            raise UsageError(
                f"--sweep {axis}: '{target}' is a running cluster, and is not configured",
                hint="sweep a parameter of the challenge, such as clients",
            )
        found: list[tuple[VariantSpec, Swept]] = []
        for family in families:
            made: list[tuple[Point, object]] = []
            for point in self._points():
                spec = _with(family, axis, point[axis])
                taken = {variant.name for variant in (*families, *(one for one, _ in found))}
                name = _variant_name(family.name, point[axis], taken)
                made.append((point, spec))
                (spec,) = with_newest([check_spec(msgspec.structs.replace(spec, name=name))])
                found.append((spec, Swept(family.name, dict(point))))
            _refuse_alike(made, f"variant '{family.name}'")
        return found

    def schedules(self, load: LoadAt) -> tuple[tuple[Challenge, ...], tuple[Swept, ...]]:
        """Return every challenge at every point of an axis that is a parameter, else as it is.

        Operations that a parameter changes get a name of their own.

        Raises:
            UsageError: If a parameter changes the track's index.
        """
        if not self.axes or self._of_variants:
            return _in_order([({}, load({})[0])])
        bases, base_track = load({})
        known = [base_track.operations | base.operations for base in bases]
        loaded = []
        for point in self._points():
            values = parse_params(
                f"{name.removeprefix(_PARAMETER)}={value}" for name, value in point.items() if name != HISTORY
            )
            try:
                challenges, track = load(values)
            except UsageError as err:
                # Without its values all is well.
                where = "" if err.message.startswith("--") else f"--sweep {', '.join(point)}: "
                raise UsageError(f"{where}{err.message}", hint=err.hint) from err
            _check_data(base_track, track, point)
            own = (_own(one, base, track, point) for one, base in zip(challenges, known, strict=True))
            loaded.append((point, tuple(own)))
        return _in_order(loaded)

    def check(self, plan: Plan, known: Collection[str]) -> None:
        """Refuse what would be measured several times, and called a sweep; `known` are parameters of files.

        Raises:
            UsageError: If points are alike, or documents are swept that are not generated.
        """
        swept = plan.swept
        if swept is None:
            return
        if self.documents and not is_generated(plan):
            raise UsageError(
                "--sweep docs: only generated corpora can have any number of documents",
                hint="run a track of files once for each --docs, and compare the runs",
            )
        histories = {of.at.get(HISTORY) for of in swept.schedules}
        if {"fresh", "scheduled"} <= histories and all(len(one.steps) == 1 for one in plan.schedules):
            raise UsageError(
                "--sweep history: nothing runs before a single task, so fresh and scheduled are the same",
                hint="write history=fresh,polluted, or select more tasks",
            )
        nameless = [msgspec.structs.replace(schedule, name="") for schedule in plan.schedules]
        points = [[nameless[place] for place in round_] for round_ in swept.rounds()]
        for axis in () if self._of_variants else self.axes:
            name = axis.name.removeprefix(_PARAMETER)
            is_set = any(f"{challenge}.{name}" in plan.params for challenge in swept.challenges)
            if name != HISTORY and not is_set and all(point == points[0] for point in points):
                raise refuse_unswept(name, swept.challenges, known)
        _refuse_alike(
            (
                (
                    swept.schedules[round_[0]].at,
                    (plan.history(round_[0]), point),
                )
                for round_, point in zip(swept.rounds(), points, strict=True)
            ),
            f"challenge {' and '.join(swept.challenges)}",
        )


def _axis(text: str) -> Axis:
    name, equals, values = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--sweep '{text}' has no name and values", hint=_FORM)
    found = _values(name, values)
    # A parameter has to be something; an option of variants may be empty.
    if not all(found) and (name == DOCS or _option(name) is None):
        raise UsageError(f"--sweep {name}: '' is not a value", hint=_FORM)
    same = next((value for value in found if found.count(value) > 1), None)
    if same is not None:
        raise UsageError(
            f"--sweep {name}: '{same}' is a duplicate", hint="give it once: forks are repeated anyway"
        )
    if not 1 < len(found) <= MOST_POINTS:
        raise UsageError(f"--sweep {name}: a sweep has from 2 to {MOST_POINTS} values", hint=_FORM)
    if name == HISTORY and (unknown := next((one for one in found if one not in HISTORIES), None)):
        raise UsageError(
            f"--sweep history: '{unknown}' is not a history", hint=suggestion(unknown, HISTORIES)
        )
    numbers = _numbers(name, found)
    if len(set(numbers)) < len(numbers):
        raise UsageError(f"--sweep {name}: two of {', '.join(found)} are the same", hint="give it once")
    if numbers:
        found = [value for _, value in sorted(zip(numbers, found, strict=True))]
    return Axis(name, tuple(found), tuple(sorted(numbers)))


def _refuse_alike(made: Iterable[tuple[Point, object]], what: str) -> None:
    """Refuse to measure the same thing at several points, and to call it a curve.

    Raises:
        UsageError: If two points are alike.
    """
    for (first, one), (second, other) in itertools.combinations(made, 2):
        if one == other:
            raise UsageError(
                f"--sweep: {what} is the same at {_words(first)} and at {_words(second)}",
                hint="something else sets it, too: --param or the variant itself",
            )


def _numbers(name: str, values: Sequence[str]) -> tuple[float, ...]:
    """The values as numbers, if all are more than 0 and in units that belong together; else none."""
    if name == DOCS:
        return tuple(float(COUNT.parse(value)) for value in values)
    if name.partition(":")[0] in _NAMES:
        return ()
    for kind in (COUNT, PERCENT, DURATION, SIZE):
        amounts = [kind.amount(value) for value in values]
        if all(amounts):
            return tuple(float(amount) for amount in amounts if amount is not None)
    return ()


def _values(name: str, text: str) -> list[str]:
    """Values with commas in between, or a JSON list of texts and numbers."""
    if not text.startswith("["):
        return text.split(",")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise UsageError(f"--sweep {name}: '{text}' is not a JSON list", hint=_FORM) from err
    return [value if isinstance(value, str) else json.dumps(value) for value in parsed]


def _option(name: str) -> tuple[str, str] | None:
    """The option of variants that an axis sets, and its key; None for a parameter."""
    if name.startswith(_PARAMETER):
        return None
    if name.startswith(_INDEX_SETTING):
        return "index", name.removeprefix("setting:")
    option, _, key = name.partition(":")
    return (option, key) if option in VARIANT_OPTIONS else None


def _with(spec: VariantSpec, axis: str, value: str) -> VariantSpec:
    if axis == DOCS:
        return msgspec.structs.replace(spec, documents=COUNT.parse(value))
    option, key = _option(axis) or ("", "")
    if not value and not key:
        # `jvm=,-XX:-Inline`: as the variant is, and with the flag.
        return spec
    return with_option(spec, option, f"{key}={value}" if key else value)


def _variant_name(family: str, value: str, taken: set[str]) -> str:
    """`es.250k`: fit for a file's name, and nobody else's."""
    name = f"{family}.{_UNFIT.sub('-', value.lower()).strip('-.') or 'none'}"[:_LONGEST_NAME]
    number = 1
    while name in taken:
        number += 1
        ending = f".{number}"
        name = name[: _LONGEST_NAME - len(ending)] + ending
    return name


def _check_data(base: Track, other: Track, point: Point) -> None:
    """Refuse a parameter that changes what an index is made of: all points search the same one."""
    for what in ("indices", "data_streams", "templates", "corpora"):
        if getattr(base, what) != getattr(other, what):
            raise UsageError(
                f"--sweep {', '.join(point)}: the parameter changes the track's {what.replace('_', ' ')}, "
                "and challenges of a sweep share one prepared index",
                hint="sweep an index setting with index:KEY=VALUE,..., or run the track once for each value",
            )


def _own(challenge: Challenge, base: Mapping[str, TrackOperation], track: Track, point: Point) -> Challenge:
    """A challenge with the operations that are not the base's under names of the point."""
    asked = {task.operation for task in challenge.schedule}
    changed = {
        name: operation
        for name, operation in (track.operations | challenge.operations).items()
        if name in asked and base.get(name) != operation
    }
    names = {name: f"{name}@{_words(point)}" for name in changed}
    own = {
        name: operation for name, operation in challenge.operations.items() if name in asked - changed.keys()
    }
    return msgspec.structs.replace(
        challenge,
        operations=own
        | {
            names[name]: msgspec.structs.replace(operation, name=names[name])
            for name, operation in changed.items()
        },
        schedule=tuple(
            msgspec.structs.replace(task, name=task.label, operation=names[task.operation])
            if task.operation in names
            else task
            for task in challenge.schedule
        ),
    )


def _in_order(
    loaded: Sequence[tuple[Point, tuple[Challenge, ...]]],
) -> tuple[tuple[Challenge, ...], tuple[Swept, ...]]:
    """Challenge by challenge, each at all points."""
    challenges, swept = [], []
    for place in range(len(loaded[0][1])):
        for point, found in loaded:
            one = found[place]
            challenges.append(
                msgspec.structs.replace(one, name=f"{one.name}@{_words(point)}") if point else one
            )
            swept.append(Swept(one.name, dict(point)))
    return tuple(challenges), tuple(swept)


def _words(point: Point) -> str:
    return ",".join(f"{name.removeprefix(_PARAMETER)}={value}" for name, value in point.items())
