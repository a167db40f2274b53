"""The call sites of an experiment file, and what is expected of them."""

from benchctl.errors import UsageError
from benchctl.experiment.form import CallSiteEntry, ExpectationEntry, ExperimentFile, FateEntry
from benchctl.experiment.refs import parse_ref
from benchctl.nearest import suggestion
from benchctl.results.experiment.model import CallSite, FateExpectation
from benchctl.yaml_file import Document, Step

Steps = tuple[Step, ...]


class FateReader:
    """One file's call sites and their fates, as far as they can be checked without its challenges.

    Args:
        file: as written.
        document: of it, for errors that name its lines.
    """

    def __init__(self, file: ExperimentFile, document: Document) -> None:
        self._file = file
        self._document = document

    def call_sites(self) -> tuple[CallSite, ...]:
        """The call sites, in order.

        Raises:
            UsageError: two share a name, a measurement or variant is unknown, or no log will tell of one.
        """
        found: dict[str, CallSite] = {}
        for place, entry in enumerate(self._file.call_sites):
            steps = ("call-sites", place)
            if entry.name in found:
                raise self._document.refuse((*steps, "name"), f"there are two call sites '{entry.name}'")
            found[entry.name] = self._call_site(entry, steps)
        return tuple(found.values())

    def fates(self, sites: tuple[CallSite, ...]) -> tuple[FateExpectation, ...]:
        """The expectations that are about call sites, in order.

        Raises:
            UsageError: one is about a call site or variant that there is not, or about comparisons as well.
        """
        known = {one.name: one for one in sites}
        return tuple(
            self._fate(entry, entry.fate, place, known)
            for place, entry in enumerate(self._file.expectations)
            if entry.fate is not None
        )

    def _call_site(self, entry: CallSiteEntry, steps: Steps) -> CallSite:
        self._check_measurement(entry, steps)
        if "::" not in entry.method.strip(":"):
            raise self._document.refuse(
                (*steps, "method"), f"'{entry.method}' is no method", hint="write it as Class::method"
            )
        if "::" in entry.callee:
            raise self._document.refuse(
                (*steps, "callee"),
                f"'{entry.callee}' has a class, which differs with how the call is made",
                hint=f"write {entry.callee.rpartition('::')[2]}",
            )
        try:
            ref = parse_ref(f"{entry.measurement}/{entry.variants[0]}/{entry.task}")
        except UsageError as err:
            raise self._document.refuse(
                (*steps, "task"), f"'{entry.task}' is no task", hint="write TASK, or CHALLENGE/TASK"
            ) from err
        return CallSite(
            name=entry.name,
            label=entry.label or entry.name,
            measurement=entry.measurement,
            variants=entry.variants,
            method=entry.method,
            callee=entry.callee,
            task=ref.task,
            challenge=ref.challenge,
            about=entry.about.strip(),
        )

    def _check_measurement(self, entry: CallSiteEntry, steps: Steps) -> None:
        """It is there, keeps inlining logs, and has these variants."""
        known = self._file.measurements
        measurement = known.get(entry.measurement)
        if measurement is None:
            raise self._document.refuse(
                (*steps, "measurement"),
                f"there is no measurement '{entry.measurement}'",
                hint=suggestion(entry.measurement, known),
            )
        if measurement.evidence is None or "inlining" not in measurement.evidence.kinds:
            raise self._document.refuse(
                (*steps, "measurement"),
                f"measurement '{entry.measurement}' keeps no inlining logs",
                hint="give it `evidence: {kinds: [inlining]}`",
            )
        for place, variant in enumerate(entry.variants):
            where = (*steps, "variants", place)
            if variant not in measurement.variants:
                raise self._document.refuse(
                    where,
                    f"measurement '{entry.measurement}' has no variant '{variant}'",
                    hint=suggestion(variant, measurement.variants),
                )
            if variant in entry.variants[:place]:
                raise self._document.refuse(where, f"variant '{variant}' is there twice")

    def _fate(
        self, entry: ExpectationEntry, fate: FateEntry, place: int, known: dict[str, CallSite]
    ) -> FateExpectation:
        steps = ("expectations", place)
        others = {
            "comparisons": entry.comparisons,
            "is": entry.is_,
            "margin": entry.margin,
            "than": entry.than,
        }
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise self._document.refuse(
                (*steps, given[0]),
                f"an expectation has a 'fate' or '{given[0]}', not both",
                hint="write two expectations",
            )
        inside = (*steps, "fate")
        if fate.call_site not in known:
            raise self._document.refuse(
                (*inside, "call-site"),
                f"there is no call site '{fate.call_site}'",
                hint=suggestion(fate.call_site, known),
            )
        variants = known[fate.call_site].variants
        if fate.variant not in variants:
            raise self._document.refuse(
                (*inside, "variant"),
                f"call site '{fate.call_site}' has no variant '{fate.variant}'",
                hint=suggestion(fate.variant, variants),
            )
        return FateExpectation(
            statement=entry.statement,
            call_site=fate.call_site,
            variant=fate.variant,
            is_=fate.is_,
            needs=entry.needs.strip(),
            place=place,
        )
