"""The renderer of a track's files: sandboxed Jinja2 with Rally's and OpenSearch Benchmark's additions."""

import contextlib
import copy
import posixpath
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import jinja2
from jinja2 import meta
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from benchctl.errors import UsageError
from benchctl.track.template_source import (
    MISSING_PART,
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_CPU_S,
    Assembled,
    BoundedEnvironment,
    Origin,
    OutOfTimeError,
    Reach,
    assemble,
    bounded,
    cut,
    read_text,
)

_INTROSPECTION = "<introspection>"  # Jinja2's name of a template when finding its variables
_BEYOND: Mapping[type[Exception], str] = {
    OutOfTimeError: f"its template takes more than {MOST_CPU_S:g} s of CPU",
    MemoryError: f"its template takes more than {MOST_BYTES >> 30} GiB of memory",
    IndentationError: "its blocks are nested too deeply",  # Jinja2 compiles them to indented Python
}
# A template's expression may fail in any way, and so may the Python that Jinja2 generates, which has the name
# `inf` for `1e999`.
_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
_GIVE_IT = "give it with --param NAME=VALUE, or a default in the file"


RESERVED = ("now", "glob")
"""Globals that parameters cannot override, as in Rally."""

GIVEN: Mapping[str, Any] = {"build_flavor": "default", "serverless_operator": False}
"""Default values of variables."""

_HELPERS = """
{%- macro collect(parts) -%}
  {%- for part in glob(parts) -%}
    {%- if not loop.first %},
{% endif -%}
    {%- include part -%}
  {%- endfor -%}
{%- endmacro -%}
{%- macro exists_set_param(setting_name, value, default_value=None, comma=True) -%}
  {%- if value is defined -%}
    {{ "," if comma }} "{{ setting_name }}": {{ value | tojson }}
  {%- elif default_value is not none -%}
    {{ "," if comma }} "{{ setting_name }}": {{ default_value | tojson }}
  {%- endif -%}
{%- endmacro -%}
"""

HELPER_TEMPLATES: Mapping[str, str] = {"rally.helpers": _HELPERS, "benchmark.helpers": _HELPERS}
"""Name of an import -> its template."""


def _moment(value: Any, date_format: str, zone: tzinfo) -> datetime:
    """A moment from a datetime, seconds since 1970, or a text in a format."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=zone)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, tz=zone)
    instant = datetime.strptime(str(value), date_format)  # noqa: DTZ007 - the next line sees to that
    return instant if instant.tzinfo else instant.replace(tzinfo=zone)


def days_ago(start: Any, end: Any, date_format: str = "%d-%m-%Y", default_tz: tzinfo = UTC) -> int:
    """Return the whole days between two moments."""
    return (_moment(end, date_format, default_tz) - _moment(start, date_format, default_tz)).days


def get_start_date(moment: Any, date_format: str = "%Y-%m-%d", default_tz: tzinfo = UTC) -> str:
    """Return a moment as a date."""
    return _moment(moment, date_format, default_tz).strftime(date_format)


def get_end_date(
    start: Any,
    duration_days: int = 1,
    date_format: str = "%Y-%m-%d",
    default_tz: tzinfo = UTC,
) -> str:
    """Return the date so many days after a moment."""
    return (_moment(start, date_format, default_tz) + timedelta(days=duration_days)).strftime(date_format)


def version_between(version: str, first: str, last: str) -> bool:
    """Return whether a version such as 2.11.0 is between two others, inclusive."""
    low, actual, high = (tuple(map(int, text.split("."))) for text in (first, version, last))
    return low <= actual <= high


FILTERS: Mapping[str, Callable[..., Any]] = {
    "days_ago": days_ago,
    "get_start_date": get_start_date,
    "get_end_date": get_end_date,
    "version_between": version_between,
}
"""In addition to Jinja2's own."""

_MARK = re.compile("\ue000([0-9]+)\ue001")
_DIGITS = 18
_TAG_TOKENS = 64  # enough of a tag to tell whether it captures its text
# Blocks whose text is captured as a value.
_KEEPING = frozenset({"set", "filter", "macro", "call"})

OriginOf = Callable[[str | None, int], Origin | None]
"""(name of a template, line) -> the line of a file."""


@dataclass(frozen=True)
class Marked:
    """Rendered text and its origin."""

    text: str  # without the marks
    offsets: tuple[int, ...]  # of the marks in the text, ascending
    origins: tuple[Origin, ...]  # of the marks

    def origin(self, offset: int) -> Origin | None:
        """Return the line of a file that a character of the text came from."""
        place = bisect_right(self.offsets, offset) - 1
        return self.origins[place] if place >= 0 else None


class LineMarks:
    """Marks for the lines of every template that an environment compiles from now on.

    The environment must not have compiled any yet; `origin_of` maps lines of templates.
    """

    def __init__(self, environment: jinja2.Environment, origin_of: OriginOf) -> None:
        self.origins: list[Origin] = []
        self._origin_of = origin_of
        marks = self

        class Marking(Extension):
            def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
                return marks.put_in(stream)

        environment.add_extension(Marking)

    def put_in(self, stream: TokenStream) -> Iterator[Token]:
        """Yield the tokens of a template with marks in its plain text."""
        keeping = 0
        tokens = list(stream)
        for place, token in enumerate(tokens):
            if token.type == "block_begin":
                keeping += _keeps(tokens[place + 1 : place + _TAG_TOKENS])
            if token.type == "data" and not keeping:
                yield Token(token.lineno, "data", self._marked(stream.name, token.lineno, token.value))
            else:
                yield token

    def _marked(self, name: str | None, line: int, text: str) -> str:
        return "\n".join(self._mark(name, line + number) + row for number, row in enumerate(text.split("\n")))

    def _mark(self, name: str | None, line: int) -> str:
        origin = self._origin_of(name, line)
        if origin is None:
            return ""
        self.origins.append(origin)
        return f"\ue000{len(self.origins) - 1}\ue001"


def _keeps(tag: Sequence[Token]) -> int:
    """1 if a tag, the tokens after `{%`, starts to capture its text, -1 if one ends, else 0."""
    word = tag[0].value if tag else ""
    if word.startswith("end"):
        return -int(word.removeprefix("end") in _KEEPING)
    if word == "set":
        # With the value in the tag, no captured text follows.
        ending = next((token.type for token in tag if token.type in {"assign", "pipe", "block_end"}), "")
        return int(ending != "assign")
    return int(word in _KEEPING)


def _read_marks(text: str, marks: LineMarks) -> Marked:
    """Remove the marks from rendered text."""
    parts: list[str] = []
    offsets: list[int] = []
    origins: list[Origin] = []
    done = length = 0
    for match in _MARK.finditer(text):
        number = match[1]
        if len(number) > _DIGITS or int(number) >= len(marks.origins):
            continue  # the file's own characters
        plain = text[done : match.start()]
        parts.append(plain)
        length += len(plain)
        done = match.end()
        offsets.append(length)
        origins.append(marks.origins[int(number)])
    parts.append(text[done:])
    return Marked("".join(parts), tuple(offsets), tuple(origins))


class Rendered:
    """A file's rendered text."""

    def __init__(
        self, path: Path, text: str, undefined: Mapping[str, Origin | None], mark: Callable[[], Marked | None]
    ) -> None:
        self.path = path
        self.text = text
        self.undefined = undefined  # variables without a value that were printed as nothing, and where
        self._mark = mark
        self._marked: Marked | None = None
        self._tried = False

    def origin(self, offset: int) -> Origin | None:
        """Return the line of the file that a character of the text came from; None if unknown."""
        if not self._tried:
            # Only errors need this, by rendering the file once more.
            self._tried = True
            marked = self._mark()
            self._marked = marked if marked is not None and marked.text == self.text else None
        return None if self._marked is None else self._marked.origin(offset)


class Renderer:
    """A renderer of the files of one track directory, which collects the parameters they use.

    Args:
        folder: of the track: includes are relative to it, and it limits the reach of all its files.
        params: values for the templates' variables.
        lenient: print undefined variables as nothing, as Rally does; else they are errors.
        now_s: seconds since 1970 that templates see as `now`; by default the clock's.
    """

    def __init__(
        self, folder: Path, params: Mapping[str, Any], *, lenient: bool = False, now_s: float | None = None
    ) -> None:
        self.reach = Reach(folder.resolve())
        self.known: set[str] = set()
        self._folder = folder
        self._params = dict(params)
        self._parser = BoundedEnvironment(autoescape=False)  # as everywhere here
        self._parser.filters.update(FILTERS)
        self._parser.globals.update(dict.fromkeys(RESERVED))
        self._lenient = lenient
        self._now_s = time.time() if now_s is None else now_s
        for name in RESERVED:
            if name in self._params:
                raise UsageError(f"--param {name}: templates know '{name}' as something else")

    def render(self, path: Path) -> Rendered:
        """Render one file.

        Raises:
            UsageError: If a file cannot be read, or its template is broken or needs an unknown value.
        """
        source = assemble(path, self.reach)
        undefined: dict[str, None] = {}
        text = self._render(path, source, self._environment(source, undefined))

        def mark() -> Marked | None:
            environment = self._environment(source, {})
            marks = LineMarks(environment, self._origins(path, source))
            try:
                return _read_marks(self._render(path, source, environment), marks)
            except UsageError:
                return None

        return Rendered(path, text, {name: self._printed_at(name, source) for name in undefined}, mark)

    def _printed_at(self, name: str, source: Assembled) -> Origin | None:
        """The line of the first expression that begins with a variable."""
        tokens = [token for token in self._parser.lex(source.text) if token[1] != "whitespace"]
        for (_, opens, _), (line, kind, value) in pairwise(tokens):
            if (opens, kind, value) == ("variable_begin", "name", name):
                return source.origin(line)
        return None

    def _origins(self, path: Path, source: Assembled) -> Callable[[str | None, int], Origin | None]:
        """(template's name, line) -> the line of a file."""

        def origin(name: str | None, line: int) -> Origin | None:
            if name is None or name in HELPER_TEMPLATES:
                return None
            return source.origin(line) if name == str(path) else Origin(self._folder / name, line)

        return origin

    def _environment(self, source: Assembled, undefined: dict[str, None]) -> BoundedEnvironment:
        """A sandbox for one file, which records undefined variables."""
        environment = BoundedEnvironment(
            loader=jinja2.ChoiceLoader(
                [jinja2.DictLoader(HELPER_TEMPLATES), jinja2.FunctionLoader(self._include)]
            ),
            undefined=_noting(undefined) if self._lenient else jinja2.StrictUndefined,
            autoescape=False,  # the output is JSON, not HTML
        )

        def missing(place: int) -> NoReturn:
            raise UsageError(source.missing[place])

        environment.filters.update(FILTERS)
        environment.globals.update({"now": self._now_s, "glob": self._glob, MISSING_PART: missing})
        return environment

    def _render(self, path: Path, source: Assembled, environment: BoundedEnvironment) -> str:
        """Render an assembled file; every error names the line of its file."""
        try:
            with bounded():
                text = self._rendered(path, source, environment)
        except jinja2.TemplateSyntaxError as err:
            own = err.name in (None, str(path), _INTROSPECTION)
            here = source.origin(err.lineno) if own else None
            place = str(here or Origin(path if own else self._folder / str(err.name), err.lineno))
            raise UsageError(f"{place}: {cut(str(err.message))}") from err
        except UsageError:
            raise
        except RecursionError as err:
            raise UsageError(f"{path} is nested too deeply, or includes itself") from err
        except Exception as err:
            place = str(self._failed_at(path, source, err.__traceback__))
            raise _explained(err, place, self.reach.folder, source.text) from err
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{path} renders to more than {MOST_CHARACTERS:,} characters")
        return text

    def _rendered(self, path: Path, source: Assembled, environment: BoundedEnvironment) -> str:
        tree = environment.parse(source.text, name=str(path))
        # Before setting the parameters: to Jinja2, globals are not undeclared.
        self.known |= meta.find_undeclared_variables(tree)
        # Templates may modify values, and are rendered more than once.
        environment.globals.update(copy.deepcopy({**GIVEN, **self._params}))
        code = environment.compile(tree, name=str(path), filename=str(path))
        return jinja2.Template.from_code(environment, code, environment.make_globals(None)).render()

    def _failed_at(self, path: Path, source: Assembled, trace: TracebackType | None) -> Origin | Path:
        """The innermost line of a template in a traceback, where Jinja2 puts them."""
        origin: Origin | None = None
        while trace is not None:
            names = trace.tb_frame.f_globals
            if "__jinja_exception__" in names and names["__file__"] == str(path):
                origin = source.origin(trace.tb_lineno) or origin
            elif "__jinja_exception__" in names and Path(names["__file__"]).is_file():
                origin = Origin(Path(names["__file__"]), trace.tb_lineno)
            trace = trace.tb_next
        return origin or path

    def _include(self, name: str) -> tuple[str, str, None] | None:
        """Text and path of an included file; None when there is none."""
        path = self._folder / name
        if posixpath.isabs(name) or not self.reach.holds(path):
            return None
        text = read_text(path)
        with contextlib.suppress(jinja2.TemplateError):  # including it will fail anyway
            self.known |= meta.find_undeclared_variables(self._parser.parse(text))
        return text, str(path), None

    def _glob(self, parts: object) -> list[str]:
        """The files of a `collect` without a literal pattern, relative to the track's folder."""
        patterns = (
            [parts] if isinstance(parts, str) else list(parts) if isinstance(parts, list | tuple) else []
        )
        relative_paths: list[str] = []
        for pattern in patterns:
            paths = self.reach.find(self._folder, str(pattern), str(self._folder))
            if not paths:
                raise UsageError(f"collect(parts='{cut(str(pattern))}') finds no file in {self._folder}")
            relative_paths += [posixpath.relpath(path, self._folder) for path in paths]
        return relative_paths


def _noting(undefined: dict[str, None]) -> type[jinja2.Undefined]:
    """Jinja2's lenient undefined value, recording the printed names."""

    class Noted(jinja2.Undefined):
        def __str__(self) -> str:
            if self._undefined_name is not None:
                undefined[str(self._undefined_name)] = None
            return ""

    return Noted


def _explained(err: Exception, place: str, folder: Path, text: str) -> UsageError:
    """The error for an exception of a template with this text.

    Raises:
        Exception: If it is not the template's fault.
    """
    if isinstance(err, jinja2.UndefinedError):
        name = str(err.message).removesuffix(" is undefined").strip("'")
        hyphened = re.search(rf"\b{re.escape(name)}-\w[\w-]*", text)
        hint = _GIVE_IT if hyphened is None else f"'{hyphened[0]}' is a subtraction: names have no hyphens"
        return UsageError(f"{place}: {cut(str(err.message))}", hint=hint)
    if isinstance(err, jinja2.TemplateNotFound):
        return UsageError(f"{place}: includes '{cut(str(err.name))}', which is not in {folder}")
    if isinstance(err, jinja2.TemplateError):
        return UsageError(f"{place}: {cut(str(err))}")
    for kind, words in _BEYOND.items():
        if isinstance(err, kind):
            return UsageError(f"{place}: {words}")
    if isinstance(err, _FAILURES):
        return UsageError(f"{place}: its template fails: {cut(str(err))}")
    raise err
