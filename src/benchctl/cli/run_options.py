"""The options of commands that measure, and what they ask for: a `RunSpec`."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from click.core import ParameterSource

from benchctl.cli.options import AliasedOption, AmountType, F, ParamOptions, completing, read_tags, under
from benchctl.cli.targets import read_targets
from benchctl.engine.variant import check_spec, load_variants, parse_variant, with_newest
from benchctl.errors import UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.plugin.code import Consent
from benchctl.results.plan import VariantSpec
from benchctl.run.form import TEST_MODE_DOCUMENTS, TEST_MODE_FORKS, forks_of, read_form, run_spec, stop_of
from benchctl.run.host import AUTO
from benchctl.run.plan import RunSpec
from benchctl.spec import (
    EvidenceEntry,
    RunForm,
    Setting,
    setting,
    settings,
)
from benchctl.track.library import challenge_names, track_names
from benchctl.track.load import warmup_names

BUILT_IN = ("es", "os")

PREPARING = ("segments", "ingest_clients", "ingest_client", "index_builds")
"""Options of prepared indices."""
SUBJECT = (
    *("variants", "variants_file", "docs", "corpus", "corpus_dirs", "track", "heap"),
    *("track_repository", "track_revision"),
    *("jdk", "seed", "corpus_seed", "pin"),
)
"""Options of the measurement."""
FORKS = ("forks", "until_decided", "margin", "budget")
"""Options of the number of forks."""


class NumberOrWordType(click.ParamType[int | str]):
    """A number, or a word instead."""

    def __init__(self, word: str, value: int | str) -> None:
        self.word, self.value = word, value
        self.name = f"N|{word}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read it."""
        if isinstance(value, int):
            return value
        if value.lower() == self.word:
            return self.value
        if value.isdecimal() and int(value) > 0:
            return int(value)
        return self.fail(f"'{value}' is neither a number from 1 nor '{self.word}'", param, ctx)


def _read_words(entry: Setting) -> Callable[..., tuple[str, ...]]:
    """Return a callback that reads comma-separated words of a setting, each once."""

    def read(_context: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word.strip() for text in values for word in text.split(",")))
        for word in words:
            if word not in entry.choices:
                raise UsageError(
                    f"{entry.option}: unknown kind '{word}'", hint=suggestion(word, entry.choices)
                )
        return words

    return read


_MORE: Mapping[str, Mapping[str, Any]] = {
    "challenges": {"shell_complete": completing(challenge_names)},
    "warmup_challenges": {"shell_complete": completing(warmup_names)},
    "track": {"shell_complete": completing(track_names)},
    "variants": {"shell_complete": completing(lambda: BUILT_IN)},
    "variants_file": {"type": click.Path(dir_okay=False)},
    "targets_file": {"type": click.Path(dir_okay=False)},
    "corpus_dirs": {"type": click.Path(exists=True, file_okay=False)},
    "pin": {"is_flag": False, "flag_value": AUTO},
    "tags": {"callback": read_tags},
}
"""Options of the command line alone."""


def setting_option(name: str, words: str) -> Callable[[Any], Any]:
    """Add the option of one setting, explained in words of the command; without it, the command gets None."""
    return _option(msgspec.structs.replace(setting(name), default=None), words)


def _option(entry: Setting, words: str = "") -> Callable[[Any], Any]:
    """Make a setting an option of a command."""
    default = () if entry.several else None if entry.within else entry.default
    more: dict[str, Any] = {
        "help": words or entry.meta.description,
        "metavar": entry.metavar or ("N" if entry.is_number and not entry.choices else None),
        "default": default,
        "show_default": default not in {"", (), None},
        "multiple": entry.several,
    }
    names = entry.options
    if entry.is_flag:
        names = ("/".join(names),)
        more |= {"is_flag": True, "show_default": "/" in names[0]}
    elif entry.kind is not None:
        more["type"] = AmountType(entry.kind, written=True)
    elif entry.choices and entry.is_number:
        more["type"] = NumberOrWordType(entry.choices[0], entry.choices[0])
    elif entry.choices and entry.several:
        more["callback"] = _read_words(entry)
    elif entry.choices:
        more["type"] = click.Choice(entry.choices)
    else:
        more["type"] = int if entry.is_number else str
    if entry.aliases:
        more |= {"cls": AliasedOption, "aliases": entry.aliases}
    return click.option(*names, entry.parameter, **{**more, **_MORE.get(entry.parameter, {})})


def form_options(*names: str) -> Callable[[F], F]:
    """Add the options of some settings of the form, or all; the command gets its values as `form`.

    A command that has `--config` gets those of the file where the command line has none.
    """
    chosen = [entry for entry in settings(RunForm) if not names or (entry.within or entry.name) in names]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            context = click.get_current_context()
            file: Path | None = kwargs.pop("config", None)
            values = {}
            for entry in chosen:
                value = kwargs.pop(entry.parameter)
                source = context.get_parameter_source(entry.parameter)
                if value == "" and source is ParameterSource.COMMANDLINE:
                    raise UsageError(f"{entry.option} requires a non-empty value")
                if file is None or source is not ParameterSource.DEFAULT:
                    values[entry.parameter] = value
            return command(
                *args, form=_filled(RunForm() if file is None else read_form(file), values), **kwargs
            )

        decorated: Callable[..., Any] = collected
        for entry in reversed(chosen):
            decorated = under(entry.heading, _option(entry))(decorated)
        return decorated

    return cast("Callable[[F], F]", decorate)


def _filled(form: RunForm, values: dict[str, Any]) -> RunForm:
    """Return a form with values of the command line, by parameter."""
    kinds, forks = values.pop("evidence_kinds", ()), values.pop("evidence_forks", None)
    evidence = form.evidence
    if kinds:
        evidence = EvidenceEntry(kinds, 1 if evidence is None else evidence.forks)
    if forks is not None:
        if evidence is None:
            raise UsageError(
                "--evidence-forks requires --evidence", hint="add --evidence, such as --evidence inlining"
            )
        evidence = EvidenceEntry(evidence.kinds, forks)
    return msgspec.structs.replace(form, **values, evidence=evidence)


config_option = under(
    "What to measure",
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="YAML file of options, with the keys of suites. Options take precedence.",
    ),
)
"""Of commands with `form_options`."""


def specs_of(form: RunForm, default: tuple[str, ...] = BUILT_IN) -> tuple[VariantSpec, ...]:
    """Return the variants of a form; when none was named, all of the file, or the default.

    Where one says `latest`, the newest version is asked for.

    Raises:
        UsageError: If a text is not a variant or asks for what no node can be given, or something is wrong in
            the file.
    """
    defined = load_variants(Path(form.variants_file)) if form.variants_file else {}
    texts = form.variants or (defined if form.variants_file else default)
    specs = [parse_variant(text, jdk=form.jdk, defined=defined) for text in texts]
    # What is named again is A/A.
    counts = [specs[:place].count(spec) for place, spec in enumerate(specs)]
    numbered = (
        msgspec.structs.replace(spec, name=f"{spec.name}-{count + 1}") if count else spec
        for spec, count in zip(specs, counts, strict=True)
    )
    return with_newest(check_spec(spec) for spec in numbered)


def asked_run(form: RunForm, params: ParamOptions, *, consent: Consent | None = None) -> RunSpec:
    """Return the run that a command asks for; what it has no options for has its default.

    Raises:
        UsageError: If an option cannot be understood, or not be satisfied here.
    """
    targets = read_targets(form)
    return run_spec(
        msgspec.structs.replace(form, params={**form.params, **params.read()}, forks=forks_of(form)),
        (*specs_of(form, () if targets else BUILT_IN), *targets),
        home=resolve_home(),
        consent=consent,
        stop=stop_of(form),
        at_most=has_trial_documents(),
    )


# `--test-mode`, and the defaults that it changes.


def _other_defaults(context: click.Context, _option: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - click's type
    """Replace defaults; eager, so that later options see them and explicit ones still win."""
    if given:
        context.default_map = {
            **(context.default_map or {}),
            "docs": TEST_MODE_DOCUMENTS,
            "forks": TEST_MODE_FORKS,
        }
    return given


def has_trial_documents() -> bool:
    """Return whether the number of documents is that of a trial, which was not asked for."""
    return click.get_current_context().get_parameter_source("docs") is ParameterSource.DEFAULT_MAP


test_mode_option = under(
    "How long",
    click.option(
        "--test-mode",
        is_flag=True,
        is_eager=True,
        callback=_other_defaults,
        help="Smoke test; timings are meaningless.",
    ),
)
trust_option = under(
    "What to measure",
    click.option(
        "--trust",
        is_flag=True,
        help="Run the track's Python plug-in for this command; see `benchctl track trust`.",
    ),
)
"""The option; the command gets it as `trust`."""
