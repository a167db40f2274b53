"""Options that several commands share, and their types."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from benchctl.cli.sections import under
from benchctl.cli.streams import note
from benchctl.corpus.documents import parse_documents
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.store import RunStore
from benchctl.spec import Heading

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("text", "markdown", "csv", "json", "html")

_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]*")
_HEAP = re.compile(r"(?P<number>\d+)(?P<unit>[mMgG])")
_PERCENT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) ?%", re.ASCII)
_DURATION = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>s|m|h|d)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_SECONDS = 36_500 * 86_400  # clocks and calendars end somewhere
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class DocumentsType(click.ParamType[int]):
    """A number of documents such as `300k` or `1m`."""

    name = "documents"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's type
        """Read it."""
        del ctx
        if isinstance(value, int):
            return value
        try:
            return parse_documents(value)
        except UsageError as err:
            where = "" if param is None else f"{param.opts[0]}: "
            raise UsageError(f"{where}{err.message}", hint=err.hint) from err


class HeapType(click.ParamType[int]):
    """A heap size such as `512m` or `4g`, in MiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401 - click's type
        """Read it."""
        if isinstance(value, int):
            return value
        match = _HEAP.fullmatch(value)
        if match is None or not int(match["number"]):
            return self.fail(f"'{value}' is not a heap size: write 512m or 4g", param, ctx)
        return int(match["number"]) * (1024 if match["unit"] in "gG" else 1)


class PercentType(click.ParamType[float]):
    """A share such as `3%`, as a fraction."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's type
        """Read it."""
        if isinstance(value, float):
            return value
        match = _PERCENT.fullmatch(value)
        if match is None:
            return self.fail(f"'{value}' is no percentage: write 3%", param, ctx)
        return float(match["number"]) / 100


class DurationType(click.ParamType[float]):
    """A time such as `90s`, `30m`, `1.5h` or `7d`, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 - click's type
        """Read it."""
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(value)
        if match is None:
            return self.fail(f"'{value}' is no time: write 90s, 30m, 2h or 7d", param, ctx)
        seconds = float(match["number"]) * _SECONDS[match["unit"]]
        if seconds > _MOST_SECONDS:
            return self.fail(f"'{value}' is longer than 100 years", param, ctx)
        return seconds


class TagType(click.ParamType[str]):
    """A word to find runs by: letters, digits, dots, hyphens and underscores."""

    name = "tag"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's type
        """Check it."""
        if _TAG.fullmatch(value) is None:
            return self.fail(
                f"'{value}' is no tag: up to 64 letters, digits, dots, hyphens and underscores", param, ctx
            )
        return str(value)


def format_option(command: F) -> F:
    """`--format`."""
    return under("Output", click.option(
        "--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True,
        help="How results are printed.",
    ))(command)  # fmt: skip


def verbose_option(command: F) -> F:
    """`--verbose`."""
    return under("Output", click.option(
        "-v", "--verbose", is_flag=True,
        help="Print all notes, precision and details with the result, not what fits a screen.",
    ))(command)  # fmt: skip


def style_option(command: F) -> F:
    """`--style`."""
    return click.option(
        "--style", type=click.Choice(["luceneutil", "blog"]), default=None,
        help="Print tables as luceneutil does, or as the blog did, with what these leave out said below.",
    )(command)  # fmt: skip


def runs_option(command: F) -> F:
    """`--runs`."""
    return under("Output", click.option(
        "--runs", "runs_folder", type=click.Path(path_type=Path, file_okay=False), default=None,
        help="Folder of the runs  [default: the one in benchctl's home].",
    ))(command)  # fmt: skip


def grouped(
    name: str, group: type[Any], *options: Heading | Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Several options that a command takes as one value.

    Args:
        name: of the command's parameter.
        group: a dataclass whose fields are the options' names.
        options: click's, in the order of the help; a heading is that of the options behind it.

    Returns:
        A decorator.
    """
    placed: list[Callable[[Any], Any]] = []
    heading: Heading | None = None
    for one in options:
        if isinstance(one, str):
            heading = one
        else:
            placed.append(one if heading is None else under(heading, one))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the command takes and gives
            own = {field.name: kwargs.pop(field.name) for field in dataclasses.fields(group)}
            return command(*args, **{name: group(**own)}, **kwargs)

        decorated: Callable[..., Any] = collected
        for option in reversed(placed):
            decorated = option(decorated)
        return decorated

    return decorate


def once(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str:
    """For an option of several names: what it was given, or an error where it was given twice.

    Raises:
        UsageError: it was; of two names, click itself would silently take the last.
    """
    del context
    if len(values) > 1:
        raise UsageError(
            f"{param.opts[0]} is given {len(values)} times: {', '.join(values)}",
            hint=f"{' and '.join(param.opts)} are the same option",
        )
    return values[0]


def open_store(home: Home, folder: Path | None) -> RunStore:
    """The store that `--runs` names."""
    return RunStore(folder.absolute() if folder is not None else home.runs, note)


def keyed(values: Iterable[str], option: str) -> dict[str, str]:
    """`[NAME=]VALUE` options by name; a value without a name is for all and has the key ''.

    Raises:
        UsageError: a name is given twice.
    """
    found: dict[str, str] = {}
    for text in values:
        name, equals, value = text.partition("=")
        # A URL or a path may hold an equals sign, too.
        key, value = (name, value) if equals and _NAME.fullmatch(name) else ("", text)
        if key in found:
            raise UsageError(f"{option} is given twice for {key or 'all variants'}")
        found[key] = value
    return found
