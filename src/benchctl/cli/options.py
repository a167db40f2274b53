"""Options that several commands share: their types, help sections, and the store that they name."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

import click
import msgspec
from click.shell_completion import CompletionItem

from benchctl.cli.streams import emit, note, say, text_width
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.quantities import Kind, N
from benchctl.report.table import Table, pieces
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import RunRecord
from benchctl.results.store import LATEST, RunFolder, RunStore, reference, usual_runs
from benchctl.spec import TAG_FORM, Heading, Tag, setting
from benchctl.stats.caveat import run_doubts
from benchctl.stats.metrics import metric_names
from benchctl.track.template import parse_params, parse_rally_params, read_parameter_files

# Help in two levels, with sections: options of a command under headings that are named where the options are
# declared, and a first page of the common ones.

F = TypeVar("F", bound=Callable[..., Any])

_OWN: Final = "Options"
EVERYTHING: Final = "benchctl.help-all"
"""Key of click's `meta`: whether help shows all options."""


def under(heading: Heading, option: Callable[[F], F]) -> Callable[[F], F]:
    """Put a click option under a heading in the help of a `SectionedCommand`."""

    def decorate(command: F) -> F:
        command = option(command)
        # Click keeps the options of what is not a command yet in a list on the function, the newest last.
        vars(command)["__click_params__"][-1].heading = heading
        return command

    return decorate


def _help_all(context: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not context.resilient_parsing:
        context.meta[EVERYTHING] = True
        say(context.get_help())
        context.exit()


class SectionedCommand(click.Command):
    """A command with so many options that its help has sections, and a first page for the common ones.

    `first` names the parameters of the first page in its order; `instead` maps options that the command does
    not have to what to do instead.
    """

    def __init__(
        self,
        *args: Any,
        first: Sequence[str] = (),
        examples: Sequence[str] = (),
        instead: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.instead = instead or {}
        self.examples = examples
        self._first = first
        if first:
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_help_all,
                    help="Show all options and exit.",
                )
            )

    def _is_first_page(self, ctx: click.Context) -> bool:
        return bool(self._first) and not ctx.meta.get(EVERYTHING)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            formatter.write_paragraph()
            formatter.write("".join(f"  {example}\n" for example in self.examples))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, section by section; without --help-all those of the first page."""
        options = [param for param in self.get_params(ctx) if not isinstance(param, click.Argument)]
        params = {param.name or "": param for param in options}
        names = [name for name in self._first if name in params]
        if not self._is_first_page(ctx):
            names += [name for name in params if name not in names]
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (_OWN, *get_args(Heading))}
        for name in names:
            record = params[name].get_help_record(ctx)
            if record is not None:
                usual = get_args(Heading)[-1] if {"--help", "--help-all"} & {*params[name].opts} else _OWN
                sections[getattr(params[name], "heading", usual)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Point from the first page to everything."""
        if self._is_first_page(ctx):
            formatter.write_paragraph()
            formatter.write_text(f"All options: {ctx.command_path} --help-all    Guide: benchctl help")


NO_SWEEP: Final = {
    "--sweep": "name what differs as variants, such as --variant a=es,heap:1g --variant b=es,heap:2g; or "
    "search once for each value"
}
"""For `instead` of commands that measure one point."""


class AliasedOption(click.Option):
    """An option with further names, which its help does not have."""

    def __init__(self, names: Sequence[str], *, aliases: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__([*names, *aliases], **attributes)
        self.aliases = aliases

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help."""
        names = self.opts
        try:
            self.opts = [name for name in names if name not in self.aliases]
            return super().get_help_record(ctx)
        finally:
            self.opts = names


# Options that several commands share, and their types.

TableFormat = Literal["text", "markdown", "csv", "json", "html"]
_FORMATS: tuple[str, ...] = get_args(TableFormat)


class AmountType(click.ParamType[Any]):
    """An amount of a kind, as its value, or as it is `written`."""

    def __init__(self, kind: Kind[N], *, written: bool = False) -> None:
        self._kind: Kind[Any] = kind
        self._written = written
        self.name = kind.metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        del ctx
        if not isinstance(value, str):
            return value
        try:
            amount = self._kind.parse(value)
        except UsageError as err:
            where = "" if param is None else f"{param.opts[0]}: "
            raise UsageError(f"{where}{err.message}", hint=err.hint) from err
        return value.strip() if self._written else amount


def read_tags(_context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of comma-separated texts, each once."""
    tags = tuple(dict.fromkeys(tag for text in values for tag in text.split(",")))
    for tag in tags:
        try:
            msgspec.convert(tag, Tag)
        except msgspec.ValidationError:
            raise click.BadParameter(f"'{tag}' is not {TAG_FORM}", param=param) from None
    keys = [tag.partition(":")[0] for tag in tags if ":" in tag]
    if duplicates := [key for key in keys if keys.count(key) > 1]:
        raise click.BadParameter(f"duplicate key '{duplicates[0]}'", param=param)
    return tags


def printed_as(*formats: str, about: str = "Output format.") -> Callable[[F], F]:
    """Add `--format` of a command that prints in a few forms, of which the first is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help=about,
    )


def table_format_option(command: F) -> F:
    """Add `--format` of a command that only prints tables."""
    return printed_as(*get_args(TableFormat))(command)


def print_table(table: Table, output_format: TableFormat) -> None:
    """Print a table alone; text is folded to the width of the terminal."""
    if output_format == "html":
        # Templates take a while to load, which no other form needs.
        from benchctl.report.html import render_blocks  # noqa: PLC0415 - see above

        emit(render_blocks(table.title, [table]))
        return
    for piece in pieces(table, output_format, text_width()):
        emit(piece)


def _output_option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return under("Execution and output", click.option(*names, **attributes))


format_option = _output_option(
    "--format",
    "output_format",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    metavar="FORMAT",
    help=f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}.",
)
verbose_option = _output_option("-v", "--verbose", is_flag=True, help="Print all notes and details.")
html_option = _output_option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write an HTML report to DIR instead; open index.html there.",
)
runs_option = _output_option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of stored runs.  [default: $BENCHCTL_HOME/runs]",
)
diff_option = _output_option(
    setting("diff").option,
    type=click.Choice(setting("diff").choices),
    help=f"{setting('diff').meta.description}  [default: as requested when measured]",
)
"""The command gets None for the comparison that was measured."""


def _read_metrics(
    _context: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    if "" in values:
        raise UsageError("--metric requires a non-empty value")
    return metric_names(",".join(values))


_OF_TASKS = [figure.name for figure in METRIC_KINDS if figure.loop != "search" and not figure.built]
metric_option = _output_option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[,NAME]",
    callback=_read_metrics,
    help=f"Metrics to compare: {', '.join(_OF_TASKS)}, and index-build metrics; see `benchctl list metrics`. "
    "Repeatable.  [default: as requested when measured]",
)


def check_html(html: Path | None, output_format: str) -> None:
    """Refuse a report together with another format.

    Raises:
        UsageError: If both are given.
    """
    if html is not None and output_format != "text":
        raise UsageError("--html cannot be used with --format", hint="use only one of them")


def grouped(
    name: str, group: type[Any], *options: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add several options that a command takes as one value.

    `name` is the command's parameter, `group` a dataclass whose fields are the options' names, or have
    defaults. Options are click's, in the order of the help.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            names = [field.name for field in dataclasses.fields(group) if field.name in kwargs]
            own = {name: kwargs.pop(name) for name in names}
            return command(*args, **{name: group(**own)}, **kwargs)

        decorated: Callable[..., Any] = collected
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


# Stores of runs that `--runs` names.


def open_store(home: Home, folder: Path | None) -> RunStore:
    """Open the store that `--runs` names."""
    return RunStore(home.runs if folder is None else folder.absolute(), note)


def stored_runs(folder: Path | None) -> RunStore:
    """Return the store that `--runs` names, for reading: no directory is made."""
    return RunStore(usual_runs() if folder is None else folder.absolute(), note)


def no_runs(store: RunStore) -> UsageError:
    """Return the error about a store without runs."""
    return UsageError(f"no runs in {store.root} yet", hint="benchctl run --challenge big5rangedebug")


def require_runs(folder: Path | None, *names: str) -> RunStore:
    """Return the store that `--runs` names, for reading; names may be paths elsewhere.

    Raises:
        UsageError: If there are no runs, and no name is the path of one.
    """
    store = stored_runs(folder)
    if not store.folders() and not any("/" in name or store.names(name) for name in names):
        raise no_runs(store)
    return store


def open_run(name: str, folder: Path | None) -> tuple[RunFolder, RunRecord]:
    """Find a run in the store that `--runs` names; a trial, or one that has not ended, is noted as such."""
    run = require_runs(folder, name).find(name)
    record = run.load()
    for doubt in run_doubts(record):
        note(doubt.text)
    if record.unfinished and record.status != "running":
        note(f"resume it with: benchctl resume {reference(run)}")
    return run, record


# Values that a shell completes, by click's own completion.


def complete_runs(context: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the ids of stored runs, the newest first."""
    try:
        folders = stored_runs(context.params.get("runs_folder")).folders()
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
        params = read_parameter_files([Path(text[1:]) for text in self.params if text.startswith("@")])
        for text in self.track_params:
            params.update(parse_rally_params(text))
        return {**params, **parse_params(text for text in self.params if not text.startswith("@"))}


param_options = grouped(
    "param_options",
    ParamOptions,
    under(
        "What to measure",
        click.option(
            "--param",
            "params",
            multiple=True,
            metavar="NAME=VALUE|@FILE",
            help="Challenge parameter, e.g. clients=4, or a file of parameters. Repeatable.",
        ),
    ),
    click.option("--track-params", "--workload-params", "track_params", multiple=True, hidden=True),
)
"""The options; the command gets them as one, `param_options`."""
