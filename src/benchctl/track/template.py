"""Rally's file templates: Jinja2, sandboxed, with `rally.collect` and the parameters of the command line."""

import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.sandbox import SandboxedEnvironment

from benchctl.errors import UsageError

_HELPERS = "{% macro collect(parts) %}{{ collect_parts(parts) }}{% endmacro %}"


class Renderer:
    """Renders the files of one track folder and remembers which parameters they asked for.

    Args:
        folder: what `collect` and includes are relative to; nothing outside it is read.
        params: values for the templates' variables.
    """

    def __init__(self, folder: Path, params: Mapping[str, Any]) -> None:
        self.folder = folder.resolve()
        self.used: set[str] = set()
        self._params = dict(params)
        helpers = jinja2.DictLoader({"rally.helpers": _HELPERS, "benchmark.helpers": _HELPERS})
        files = jinja2.FileSystemLoader(self.folder)
        self._environment = SandboxedEnvironment(
            loader=jinja2.ChoiceLoader([helpers, files]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # the output is JSON, not HTML
        )
        self._environment.globals["collect_parts"] = self._collect

    def render(self, path: Path) -> str:
        """The text of one file with its template parts filled in.

        Raises:
            UsageError: the file cannot be read, or its template is broken or asks for an unknown value.
        """
        try:
            source = path.read_text(encoding="utf-8")
        except OSError as err:
            raise UsageError(f"cannot read {path}: {err.strerror}") from err
        except UnicodeDecodeError as err:
            raise UsageError(f"{path} is not UTF-8 text: {err}") from err
        try:
            wanted = meta.find_undeclared_variables(self._environment.parse(source))
            self.used |= wanted & self._params.keys()
            return self._environment.from_string(source).render(self._params)
        except jinja2.TemplateSyntaxError as err:
            raise UsageError(f"{path}, line {err.lineno}: {err.message}") from err
        except jinja2.UndefinedError as err:
            raise UsageError(
                f"{path}: {err.message}", hint="give it with --param NAME=VALUE, or a default in the file"
            ) from err
        except jinja2.TemplateNotFound as err:
            raise UsageError(f"{path} includes '{err.name}', which is not in {self.folder}") from err
        except jinja2.TemplateError as err:
            raise UsageError(f"{path}: {err}") from err
        except RecursionError as err:
            raise UsageError(f"{path} includes or collects itself") from err
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:
            # An expression of the template failed: Jinja2 lets Python's own errors through.
            raise UsageError(f"{path}: its template fails: {err}") from err

    def _collect(self, parts: str | Iterable[str]) -> str:
        patterns = [parts] if isinstance(parts, str) else list(parts)
        rendered: list[str] = []
        for pattern in patterns:
            if posixpath.isabs(pattern) or ".." in pattern.split("/"):
                raise UsageError(f"collect(parts='{pattern}') in {self.folder} points outside the track")
            found = sorted(self.folder.glob(pattern))
            if not found:
                raise UsageError(f"collect(parts='{pattern}') finds no file in {self.folder}")
            rendered += [self.render(path) for path in found]
        return ",\n".join(text.strip() for text in rendered)
