"""The options of commands that measure, and what they ask for: a `RunSpec`."""

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from click.core import ParameterSource

from benchctl.cli.options import (
    AliasedOption,
    AmountType,
    F,
    ParamOptions,
    TagType,
    completing,
    each_once,
    once,
    under,
)
from benchctl.cli.streams import say
from benchctl.cli.targets import unasked_targets
from benchctl.engine.variant import (
    ENGINE_WORDS,
    check_spec,
    load_variants,
    parse_variant,
    with_newest,
)
from benchctl.errors import UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.plugin.code import Code, Consent, read_code
from benchctl.quantities import Kind
from benchctl.results.plan import VariantSpec
from benchctl.run.form import TEST_MODE_DOCUMENTS, TEST_MODE_FORKS, forks_of, read_form, run_spec, stop_of
from benchctl.run.host import AUTO
from benchctl.run.plan import RunSpec
from benchctl.run.work import plugin_problems
from benchctl.spec import (
    AS_MANY_BUILDS_AS_NEEDED,
    AS_MANY_WORKERS_AS_NEEDED,
    EvidenceEntry,
    RunForm,
    Setting,
    setting,
    settings,
)
from benchctl.track.library import challenge_names, find_track, track_names
from benchctl.track.load import warmup_names
from benchctl.track.model import Challenge, Track

variants_option = click.option(
    "--variants",
    "variants_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help=setting("variants_file").meta.description,
)


def resolve_variants(
    texts: tuple[str, ...],
    jdk: str = "",
    file: Path | None = None,
) -> tuple[VariantSpec, ...]:
    """Read variants, and ask for the newest version where one says `latest`.

    Options are as written; without texts, all variants of the file are meant.

    Raises:
        UsageError: If a text is not a variant or asks for what no node can be given, or something is wrong in
            the file.
    """
    if file is not None and not file.exists() and file.name.partition(",")[0] in ENGINE_WORDS:
        names = " ".join(f"--variant {name}" for name in file.name.split(","))
        raise UsageError(f"--variants: no such file '{file}'", hint=f"repeat --variant: {names}")
    defined = {} if file is None else load_variants(file)
    specs = [parse_variant(text, jdk=jdk, defined=defined) for text in texts or defined]
    return with_newest(check_spec(spec) for spec in specs)


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


class WrittenType(click.ParamType[str]):
    """An amount of a kind that stays as it is written."""

    def __init__(self, kind: Kind[Any]) -> None:
        self.amount: AmountType[Any] = AmountType(kind)
        self.name = self.amount.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check it."""
        self.amount.convert(value, param, ctx)
        return value.strip() if isinstance(value, str) else value


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


# Other tools' names of what is collected here.
_OTHER_WORDS = {"jfr": "profile", "async-profiler": "profile"}


class WordsType(click.ParamType[tuple[str, ...]]):
    """Words of a list with commas between them."""

    name = "words"

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read them."""
        del param, ctx
        choices = self.setting.choices
        words = [word.strip() for word in value.split(",")]
        for word in words:
            if word not in choices:
                other = _OTHER_WORDS.get(word)
                hint = (
                    f"use: {self.setting.option} {other}" if other in choices else suggestion(word, choices)
                )
                raise UsageError(f"{self.setting.option}: unknown kind '{word}'", hint=hint)
        return tuple(words)


_MORE: Mapping[str, Mapping[str, Any]] = {
    "challenges": {"shell_complete": completing(challenge_names)},
    "warmup_challenges": {"shell_complete": completing(warmup_names)},
    "track": {"shell_complete": completing(track_names)},
    "variants": {"shell_complete": completing(lambda: BUILT_IN)},
    "variants_file": {"type": click.Path(dir_okay=False)},
    "targets_file": {"type": click.Path(dir_okay=False)},
    "corpus_dirs": {"type": click.Path(exists=True, file_okay=False)},
    "pin": {"is_flag": False, "flag_value": AUTO},
    "workers": {"type": NumberOrWordType("auto", AS_MANY_WORKERS_AS_NEEDED), "default": "auto"},
    "index_builds": {"type": NumberOrWordType("auto", AS_MANY_BUILDS_AS_NEEDED), "default": "auto"},
    "tags": {"type": TagType(), "callback": each_once},
}
"""Options of the command line alone."""


def setting_option(name: str, words: str) -> Callable[[Any], Any]:
    """Add the option of one setting, explained in words of the command; without it, the command gets None."""
    return _option(msgspec.structs.replace(setting(name), default=None), words)


def _option(one: Setting, words: str = "") -> Callable[[Any], Any]:
    """Make a setting an option of a command."""
    default = () if one.several else None if one.within else one.default
    more: dict[str, Any] = {
        "help": words or one.meta.description,
        "metavar": one.metavar or ("N" if one.is_number and not one.choices else None),
        "default": default,
        "show_default": default not in {"", (), None},
        "multiple": one.several,
    }
    names = one.options
    if one.is_flag:
        names = ("/".join(names),)
        more |= {"is_flag": True, "show_default": "/" in names[0]}
    elif one.kind is not None:
        more["type"] = WrittenType(one.kind)
    elif one.choices and one.is_number:
        more["type"] = NumberOrWordType(one.choices[0], one.choices[0])
    elif one.choices:
        more["type"] = WordsType(one) if one.several else click.Choice(one.choices)
    else:
        more["type"] = int if one.is_number else str
    if one.aliases and not (one.several or one.is_flag):
        # Of two names, click would silently take the last.
        more |= {"default": (default,), "multiple": True, "callback": once}
    more |= {"cls": AliasedOption, "aliases": one.aliases} if one.aliases else {}
    return click.option(*names, one.parameter, **{**more, **_MORE.get(one.parameter, {})})


def form_options(*names: str) -> Callable[[F], F]:
    """Add the options of some settings of the form, or all; the command gets its values as `form`.

    A command that has `--config` gets those of the file where the command line has none.
    """
    chosen = [entry for entry in settings(RunForm) if not names or (entry.within or entry.name) in names]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def collected(*args: Any, **kwargs: Any) -> Any:
            context = click.get_current_context()
            values = {entry: kwargs.pop(entry.parameter) for entry in chosen}
            file: Path | None = kwargs.pop("config", None)
            form = RunForm() if file is None else read_form(file)
            explicit = {}
            for entry, value in values.items():
                source = context.get_parameter_source(entry.parameter)
                if value == "" and source is ParameterSource.COMMANDLINE:
                    raise UsageError(f"{entry.option} requires a non-empty value")
                if file is None or source is not ParameterSource.DEFAULT:
                    explicit[entry] = value
            return command(*args, form=_filled(form, explicit), **kwargs)

        decorated: Callable[..., Any] = collected
        for entry in reversed(chosen):
            decorated = under(entry.heading, _option(entry))(decorated)
        return decorated

    return cast("Callable[[F], F]", decorate)


def _filled(form: RunForm, values: Mapping[Setting, Any]) -> RunForm:
    """Return a form with values of the command line."""
    own = {entry.name: value for entry, value in values.items() if not entry.within}
    kinds, forks = (
        next((value for entry, value in values.items() if entry.parameter == f"evidence_{name}"), None)
        for name in ("kinds", "forks")
    )
    evidence = form.evidence
    if kinds:
        named = tuple(dict.fromkeys(kind for some in kinds for kind in some))
        evidence = EvidenceEntry(named, 1 if evidence is None else evidence.forks)
    if forks is not None and evidence is None:
        raise UsageError(
            "--evidence-forks requires --evidence", hint="add --evidence, such as --evidence inlining"
        )
    if forks is not None and evidence is not None:
        evidence = EvidenceEntry(evidence.kinds, forks)
    return msgspec.structs.replace(form, **own, evidence=evidence)


config_option = under(
    "What to measure",
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="YAML file of options, with the keys of suites. Options take precedence.",
    ),
)
"""Of commands with `form_options`."""


def specs_of(form: RunForm, default: tuple[str, ...] = BUILT_IN) -> tuple[VariantSpec, ...]:
    """Return the variants of a form; when none was named, all of the file, or the default.

    Raises:
        UsageError: If a variant cannot be understood.
    """
    texts = form.variants if form.variants_file else form.variants or default
    return resolve_variants(texts, form.jdk, Path(form.variants_file) if form.variants_file else None)


def asked_run(
    form: RunForm,
    params: ParamOptions,
    *,
    usual: tuple[str, ...] = BUILT_IN,
    consent: Consent | None = None,
) -> RunSpec:
    """Return the run that a command asks for; what it has no options for has its default.

    `usual` is measured when neither variants nor running clusters are named.

    Raises:
        UsageError: If an option cannot be understood, or not be satisfied here.
    """
    targets = unasked_targets(form)
    return run_spec(
        msgspec.structs.replace(form, params={**form.params, **params.read()}, forks=forks_of(form)),
        (*specs_of(form, () if targets else usual), *targets),
        home=resolve_home(),
        consent=consent,
        stop=stop_of(form),
        # Nobody asked for the number of documents that another option brings.
        at_most=click.get_current_context().get_parameter_source("docs") is ParameterSource.DEFAULT_MAP,
    )


# `--test-mode`, and the defaults that it changes.


def test_mode_option(command: F) -> F:
    """Add `--test-mode`."""
    return under("How long", click.option(
        "--test-mode", is_flag=True, is_eager=True, callback=_other_defaults,
        help="Smoke test; timings are meaningless.",
    ))(command)  # fmt: skip


def _other_defaults(context: click.Context, _option: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - click's type
    """Replace defaults; eager, so that later options see them and explicit ones still win."""
    if given:
        context.default_map = {
            **(context.default_map or {}),
            "docs": TEST_MODE_DOCUMENTS,
            "forks": TEST_MODE_FORKS,
        }
    return given


trust_option = under(
    "What to measure",
    click.option(
        "--trust",
        is_flag=True,
        help="Run the track's Python plug-in for this command; see `benchctl track trust`.",
    ),
)
"""The option; the command gets it as `trust`."""


def code_of(path: str) -> Code | None:
    """Return the plug-in of a track, given by path or a shipped track's name; nothing of it is executed."""
    return read_code(find_track(path).parent)


def echo_plugin(path: str, track: Track, challenges: Iterable[Challenge], *, trust: bool) -> None:
    """Print the state of the plug-in that challenges need; execute it only if trusted.

    Raises:
        UsageError: If the plug-in failed, or lacks something that all challenges need.
    """
    challenges = tuple(challenges)
    needing = [challenge for challenge in challenges if track.lacking(challenge)]
    code = code_of(path) if needing else None
    if code is None:
        return
    say(f"plug-in {code.digest[:12]}: {code.describe()}")
    if trust:
        problems = plugin_problems(code, track, needing)
        if problems and len(problems) == len(challenges):
            raise problems[0]
        say("it was executed" if problems else "it was executed, and registers all that is needed")
        for problem in problems:
            say(problem.message)
    elif Consent(resolve_home()).is_remembered(code):
        say("you trust it: `benchctl run` executes it")
    else:
        say(
            "nothing of it was executed; `benchctl run` does so with --trust, or after `benchctl track trust`"
        )
