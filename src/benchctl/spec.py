"""Settings of a run, each stated once.

Options of commands, keys of suites and experiments, their JSON Schema, the checks, what a plan keeps and the
command that repeats a run all follow from the fields of `RunSettings`: a new setting is a new field.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from benchctl.errors import UsageError

Heading = Literal["What is measured", "How much", "Load", "Nodes and indices", "Evidence", "Output"]
"""Sections of a command's help, in its order; a command's own options come before all of these."""

RestartPolicy = Literal["challenge", "task", "never"]
ErrorPolicy = Literal["continue", "abort"]
TransportName = Literal["wire", "client"]
MAX_SEED = 1 << 63
MOST_WORKERS = 64

IndexManner = Literal["usual", "deterministic"]
PageCache = Literal["as-is", "cold", "warm"]
ComparedAs = Literal["ratio", "ratio-of-sums", "difference"]
"""Of geometric means over forks, unless values may be 0; of arithmetic ones; and their difference."""


def _said(
    words: str,
    heading: Heading,
    *,
    option: str = "",
    metavar: str | None = None,
    at_least: int | None = None,
) -> Meta:
    """How a setting is explained, under which heading, and as which option where that is not its name."""
    extra = {"heading": heading, "option": option, "metavar": metavar}
    return Meta(description=words, ge=at_least, extra=extra)


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """The settings that a run, a suite and an experiment share; each field explains itself."""

    sweep: Annotated[
        tuple[str, ...],
        _said(
            "Measure at each of these values: clients=1,2,4, docs=250k,1m, heap=1g,2g, jvm=FLAG,FLAG, "
            "setting:KEY=A,B or a parameter of the challenge; repeat it for a grid.",
            "What is measured",
            metavar="WHAT=VALUE,...",
        ),
    ] = ()

    restart: Annotated[RestartPolicy, _said("When a fresh node comes in between.", "What is measured")] = (
        "challenge"
    )
    include_tasks: Annotated[
        str,
        _said(
            "Only tasks of these names, type:TYPE or tag:TAG, with commas in between.",
            "What is measured",
            metavar="FILTERS",
        ),
    ] = ""
    exclude_tasks: Annotated[
        str, _said("The same for tasks to leave out.", "What is measured", metavar="FILTERS")
    ] = ""
    segments: Annotated[int, _said("Segments of the prepared index.", "Nodes and indices", at_least=1)] = 1
    ingest_clients: Annotated[
        int,
        _said("Concurrent bulk senders that fill the prepared index.", "Nodes and indices", at_least=1),
    ] = 2
    ingest_transport: Annotated[
        TransportName,
        _said(
            "What fills the prepared index: benchctl's own wire client, or the bulk helpers of "
            "elasticsearch-py and opensearch-py, which encode every document.",
            "Nodes and indices",
        ),
    ] = "wire"
    index_builds: Annotated[
        int,
        _said(
            "Build every prepared index so often; forks take the builds in turn, and their spread counts.",
            "How much",
            metavar="K",
            at_least=1,
        ),
    ] = 1
    index: Annotated[
        IndexManner,
        _said(
            "How prepared indices are filled: fast, or by one sender so that every build is the same.",
            "Nodes and indices",
        ),
    ] = "usual"
    on_error: Annotated[
        ErrorPolicy, _said("Whether a failed request is counted, or ends its fork.", "Load")
    ] = "continue"
    assertions: Annotated[
        bool,
        _said(
            "Count answers that are not what the track's operations assert as failed.",
            "Load",
            option="--enable-assertions",
        ),
    ] = False
    on_node_loss: Annotated[
        Literal["fail", "continue"],
        _said(
            "Whether losing one of a cluster's nodes ends its fork, or is shown.",
            "Load",
        ),
    ] = "fail"
    hosts: Annotated[
        str,
        _said(
            "A file of hosts that load comes from, and nodes are on, instead of this one.",
            "Load",
            metavar="FILE",
        ),
    ] = ""
    metrics: Annotated[
        str,
        _said(
            "What variants are compared by: names of `compare --metric` with commas in between  "
            "[default: throughput,service_time,latency].",
            "Output",
            option="--metric",
            metavar="NAMES",
        ),
    ] = ""
    compared_as: Annotated[
        Literal["ratio", "difference"],
        _said(
            "Whether tables say by how many per cent variants differ, or by how much in the metric's unit.",
            "Output",
            option="--as",
        ),
    ] = "ratio"
    page_cache: Annotated[
        PageCache,
        _said(
            "What of the index is in the page cache when a node starts: whatever is, nothing, or all of it.",
            "Nodes and indices",
        ),
    ] = "as-is"


class Setting(msgspec.Struct, frozen=True):
    """A field of `RunSettings` as declared."""

    name: str
    default: str | int | bool | tuple[str, ...]
    choices: tuple[str, ...]  # all values that it may have; empty for any of the default's type
    meta: Meta  # what else is said of it

    @property
    def option(self) -> str:
        """The option on the command line."""
        return self._extra["option"] or f"--{self.name.replace('_', '-')}"

    @property
    def heading(self) -> Heading:
        """The heading of its section in the help."""
        found: Heading = self._extra["heading"]
        return found

    @property
    def metavar(self) -> str | None:
        """The metavar of its value in the help; None for the type's own."""
        found: str | None = self._extra["metavar"]
        return found

    @property
    def _extra(self) -> Mapping[str, Any]:
        return self.meta.extra or {}


@cache
def run_settings() -> tuple[Setting, ...]:
    """Return all settings, in the order of their declaration."""
    hints = get_type_hints(RunSettings, include_extras=True)
    found = []
    for field in msgspec.structs.fields(RunSettings):
        kind, meta = get_args(hints[field.name])
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        found.append(Setting(field.name, field.default, choices, meta))
    return tuple(found)


def settings_in(source: RunSettings) -> dict[str, Any]:
    """Return the settings of whatever has them, by name: arguments for another that has them."""
    return {one.name: getattr(source, one.name) for one in run_settings()}


def setting_words(source: RunSettings) -> list[str]:
    """Return the options of a command line for the settings that differ from the default."""
    words: list[str] = []
    for one in run_settings():
        value = getattr(source, one.name)
        if isinstance(value, tuple):
            words += [word for text in value for word in (one.option, text)]
        elif value != one.default:
            words += [one.option] if value is True else [one.option, str(value)]
    return words


def check_settings(source: RunSettings) -> None:
    """Refuse numbers out of range, under the names that they have on the command line.

    Raises:
        UsageError: If a number is out of range.
    """
    for one in run_settings():
        least = one.meta.ge
        if least is not None and getattr(source, one.name) < least:
            raise UsageError(f"{one.option} must be at least {least}")
