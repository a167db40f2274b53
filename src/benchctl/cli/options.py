"""Options that several commands share: their types, help sections, and which exclude each other."""

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import click
import msgspec
from click.shell_completion import CompletionItem

from benchctl.cli import help_all_option, shows_everything
from benchctl.cli.streams import emit, note, text_width
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, home_root, resolve_home
from benchctl.quantities import Kind, N
from benchctl.report.table import Table, pieces
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import RunRecord
from benchctl.results.store import LATEST, RunFolder, RunStore
from benchctl.spec import TAG_FORM, Heading, Tag, setting
from benchctl.stats.caveat import run_doubts
from benchctl.stats.metrics import metric_names
from benchctl.track.template import parse_params, parse_rally_params, read_parameter_files

# Help in sections: options of a command under headings that are named where the options are declared.


F = TypeVar("F", bound=Callable[..., Any])

_OWN: Final = "Options"
_HEADINGS: Final = "__headings__"


def under(heading: Heading, option: Callable[[F], F]) -> Callable[[F], F]:
    """Put a click option under a heading in the help of a `SectionedCommand`."""

    def decorate(command: F) -> F:
        command = option(command)
        # Click keeps the options of what is not a command yet in a list on the function, the newest last.
        attributes = vars(command)
        attributes.setdefault(_HEADINGS, {})[attributes["__click_params__"][-1].name] = heading
        return command

    return decorate


class SectionedCommand(click.Command):
    """A command with so many options that its help has sections, and a first page for the common ones."""

    def __init__(
        self,
        *args: Any,
        first: Sequence[str] = (),
        examples: Sequence[str] = (),
        instead: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.instead = instead or {}  # an option that it does not have -> what to do instead
        self.examples = examples
        # Parameters of the first page -> their places in it.
        self._first = {name: place for place, name in enumerate(first)}
        if first:
            self.params.append(help_all_option())

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            formatter.write_paragraph()
            formatter.write("".join(f"  {example}\n" for example in self.examples))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, section by section; without --help-all those of the first page."""
        headings = getattr(self.callback, _HEADINGS, {})
        sections: dict[str, list[tuple[str, str]]] = {arg: [] for arg in (_OWN, *get_args(Heading))}
        shown = [param for param in self.get_params(ctx) if not isinstance(param, click.Argument)]
        if self._first and not shows_everything(ctx):
            shown = [param for param in shown if param.name in self._first]
        for param in sorted(
            shown, key=lambda parameter: self._first.get(parameter.name or "", len(self._first))
        ):
            record = param.get_help_record(ctx)
            if record is not None:
                usual = get_args(Heading)[-1] if {"--help", "--help-all"} & {*param.opts} else _OWN
                sections[headings.get(param.name, usual)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Point from the first page to everything."""
        if self._first and not shows_everything(ctx):
            formatter.write_paragraph()
            formatter.write_text(f"All options: {ctx.command_path} --help-all    Guide: benchctl help")


NO_SWEEP: Final = {
    "--sweep": "name what differs as variants, such as --variant a=es,heap:1g --variant b=es,heap:2g; or "
    "search once for each value",
}
"""For `instead` of commands that measure one point."""


class AliasedOption(click.Option):
    """An option with further names, which its help does not have."""

    def __init__(self, names: Sequence[str], *, aliases: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__([*names, *aliases], **attributes)
        self.aliases = aliases

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help."""
        shown = copy.copy(self)
        shown.opts = [name for name in self.opts if name not in self.aliases]
        return click.Option.get_help_record(shown, ctx)


# Options that several commands share, and their types.


FORMATS = ("text", "markdown", "csv", "json", "html")


class AmountType(click.ParamType[N]):
    """An amount of a kind, as its value."""

    def __init__(self, kind: Kind[N]) -> None:
        self.kind: Kind[N] = kind
        self.name = kind.metavar

    def convert(self, value: str | N, param: click.Parameter | None, ctx: click.Context | None) -> N:
        """Read it."""
        del ctx
        if not isinstance(value, str):
            return value
        try:
            return self.kind.parse(value)
        except UsageError as err:
            where = "" if param is None else f"{param.opts[0]}: "
            raise UsageError(f"{where}{err.message}", hint=err.hint) from err


class TagType(click.ParamType[tuple[str, ...]]):
    """Words to find runs by, `NAME` or `KEY:VALUE`: letters, digits, dots, hyphens and underscores."""

    name = "tag"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Check them."""
        tags = tuple(value.split(","))
        for tag in tags:
            try:
                msgspec.convert(tag, Tag)
            except msgspec.ValidationError:
                return self.fail(f"'{tag}' is not {TAG_FORM}", param, ctx)
        return tags


def each_once(
    _ctx: click.Context, param: click.Parameter, value: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Return all tags, each once."""
    tags = tuple(dict.fromkeys(tag for tags in value for tag in tags))
    keys = [tag.partition(":")[0] for tag in tags if ":" in tag]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise click.BadParameter(f"duplicate key '{twice[0]}'", param=param)
    return tags


def printed_as(*formats: str, about: str = "How the result is printed.") -> Callable[[F], F]:
    """Add `--format` of a command that prints in a few forms, of which the first is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=about,
    )


TableFormat = Literal["text", "markdown", "csv", "json", "html"]


def table_format_option(command: F) -> F:
    """Add `--format` of a command that only prints tables."""
    return printed_as(*FORMATS, about="Output format.")(command)


def print_table(table: Table, output_format: TableFormat) -> None:
    """Print a table alone; text is folded to the width of the terminal."""
    if output_format == "html":
        # Templates take a while to load, which no other form needs.
        from benchctl.report.html import render_blocks  # noqa: PLC0415 - see above

        emit(render_blocks(table.title, [table]))
        return
    for piece in pieces(table, output_format, text_width()):
        emit(piece)


def format_option(command: F) -> F:
    """Add `--format`."""
    return under("Execution and output", click.option(
        "--format", "output_format", cls=AliasedOption,
        aliases=("--report-format", "--results-format"), type=click.Choice(FORMATS),
        default="text", show_default=True, metavar="FORMAT",
        help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
    ))(command)  # fmt: skip


def verbose_option(command: F) -> F:
    """Add `--verbose`."""
    return under("Execution and output", click.option(
        "-v", "--verbose", is_flag=True,
        help="Print all notes and details.",
    ))(command)  # fmt: skip


_OF_TASKS = [figure.name for figure in METRIC_KINDS if figure.loop != "search" and not figure.built]


def metric_option(command: F) -> F:
    """Add `--metric`; the command gets names of figures as `metrics`."""
    return under(
        "Execution and output",
        click.option(
            "--metric",
            "metrics",
            multiple=True,
            metavar="NAME[,NAME]",
            callback=_figures,
            help=f"Metrics to compare: {', '.join(_OF_TASKS)}, and index-build metrics; see "
            "`benchctl list metrics`. Repeatable.  [default: as requested when measured]",
        ),
    )(command)


def diff_option(command: F) -> F:
    """Add `--diff`; the command gets None for the comparison that was measured."""
    diff = setting("diff")
    return under(
        "Execution and output",
        click.option(
            diff.option,
            diff.name,
            type=click.Choice(diff.choices),
            default=None,
            help=f"{diff.meta.description}  [default: as requested when measured]",
        ),
    )(command)


def _figures(_context: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if "" in values:
        raise UsageError("--metric requires a non-empty value")
    return metric_names(",".join(values))


def html_option(command: F) -> F:
    """Add `--html` of a command that writes a report."""
    return under("Execution and output", click.option(
        "--html", "html", type=click.Path(path_type=Path), metavar="DIR",
        help="Write an HTML report to DIR instead; open index.html there.",
    ))(command)  # fmt: skip


def check_html(html: Path | None, output_format: str) -> None:
    """Refuse a report together with another format.

    Raises:
        UsageError: If both are given.
    """
    if html is not None and output_format != "text":
        raise UsageError("--html cannot be used with --format", hint="use only one of them")


def runs_option(command: F) -> F:
    """Add `--runs`."""
    return under("Execution and output", click.option(
        "--runs", "runs_folder", type=click.Path(path_type=Path, file_okay=False), default=None,
        help="Directory of stored runs.  [default: $BENCHCTL_HOME/runs]",
    ))(command)  # fmt: skip


def grouped(
    name: str, group: type[Any], *options: Heading | Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add several options that a command takes as one value.

    `name` is the command's parameter, `group` a dataclass whose fields are the options' names,
    or have defaults. Options
    are click's, in the order of the help; a heading is that of the options after it.
    """
    placed: list[Callable[[Any], Any]] = []
    heading: Heading | None = None
    for item in options:
        if isinstance(item, str):
            heading = item
        else:
            placed.append(item if heading is None else under(heading, item))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            names = [field.name for field in dataclasses.fields(group) if field.name in kwargs]
            own = {name: kwargs.pop(name) for name in names}
            return command(*args, **{name: group(**own)}, **kwargs)

        decorated: Callable[..., Any] = collected
        for option in reversed(placed):
            decorated = option(decorated)
        return decorated

    return decorate


def once(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str:
    """Return the only value of an option that has several names: click would silently take the last of two.

    Raises:
        UsageError: If more than one value is given.
    """
    del context
    if len(values) > 1:
        raise UsageError(
            f"{param.opts[0]} is given {len(values)} times: {', '.join(values)}",
            hint=f"{' and '.join(param.opts)} are the same option",
        )
    return values[0]


def open_store(home: Home, folder: Path | None) -> RunStore:
    """Open the store that `--runs` names."""
    return RunStore(folder.absolute() if folder is not None else home.runs, note)


def stored_runs(folder: Path | None) -> RunStore:
    """Return the store that `--runs` names, for reading: no directory is made."""
    return RunStore(folder.absolute() if folder is not None else home_root() / "runs", note)


def no_runs(store: RunStore) -> UsageError:
    """Return the error about a store without runs."""
    return UsageError(f"no runs in {store.root} yet", hint="benchctl run --challenge big5rangedebug")


def require_runs(folder: Path | None, *names: str) -> None:
    """Refuse to read from a store without runs, before a home is made; names may be paths elsewhere.

    Raises:
        UsageError: If there are no runs, and no name is the path of one.
    """
    store = stored_runs(folder)
    if not store.folders() and not any("/" in name or store.names(name) for name in names):
        raise no_runs(store)


def open_run(name: str, folder: Path | None) -> tuple[RunFolder, RunRecord]:
    """Find a run in the store that `--runs` names; a trial, or one that has not ended, is noted as such."""
    require_runs(folder, name)
    run = open_store(resolve_home(), folder).find(name)
    record = run.load()
    for doubt in run_doubts(record):
        note(doubt.text)
    return run, record


# Values that a shell completes, by click's own completion.


def complete_runs(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of stored runs, the newest first; nothing is created, not even a home."""
    folder: Path | None = context.params.get("runs_folder")
    try:
        folders = RunStore(folder or home_root() / "runs").folders()
    except BenchctlError:
        return []  # a shell that waits for names has no use for a message
    ids = (LATEST, *(folder.path.name for folder in reversed(folders)))
    return [run_id for run_id in ids if run_id.startswith(incomplete)]


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Return a completer of these names, or else of a path."""

    def complete(_context: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        items = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        return items or [CompletionItem(incomplete, type="file")]

    return complete


# Options that set the parameters of templates: benchctl's, and Rally's spelling of the same.


@dataclass(frozen=True)
class ParamOptions:
    """Parameters; later kinds override earlier ones."""

    track_params: tuple[str, ...]  # `NAME:VALUE,...`, JSON, or the path of a file
    params: tuple[str, ...]  # `@FILE` or `NAME=VALUE`

    def read(self) -> dict[str, Any]:
        """Return all parameters by name.

        Raises:
            UsageError: If a text or file is malformed.
        """
        files = [Path(text[1:]) for text in self.params if text.startswith("@")]
        params = read_parameter_files(files)
        for text in self.track_params:
            params.update(parse_rally_params(text))
        return {**params, **parse_params(text for text in self.params if not text.startswith("@"))}


param_options = grouped(
    "param_options",
    ParamOptions,
    "What to measure",
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE|@FILE",
        help="Challenge parameter, e.g. clients=4, or a file of parameters. Repeatable.",
    ),
    click.option(
        "--track-params",
        "--workload-params",
        "track_params",
        multiple=True,
        hidden=True,
        metavar="NAME:VALUE,...|FILE",
        help="Track parameters in Rally's syntax. --param takes precedence.",
    ),
)
"""The options; the command gets them as one, `param_options`."""
