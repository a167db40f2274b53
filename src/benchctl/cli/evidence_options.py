"""Options of `run` about what is collected beside the figures, as one value."""

from dataclasses import dataclass
from typing import cast

import click

from benchctl.cli.options import grouped
from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.plan import EvidenceKind, EvidenceSpec
from benchctl.run.evidence_plan import EVIDENCE_KINDS

_ALL = "all"
DEFAULT_EXTRA_FORKS = 1


class EvidenceForksType(click.ParamType[int]):
    """How many extra forks carry evidence: a number; or `all`, which is 0: all of the plan's own carry it."""

    name = "N|all"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        text = str(value)
        if text == _ALL:
            return 0
        if not text.isdecimal() or int(text) < 1:
            self.fail(f"{text!r} is neither a number from 1 nor '{_ALL}'", param, ctx)
        return int(text)


@dataclass(frozen=True)
class EvidenceOptions:
    """What is collected.

    Attributes:
        evidence: kinds as given; empty for none.
        evidence_forks: forks of every variant behind the plan's own; 0 for these; None when not given.
    """

    evidence: tuple[str, ...]
    evidence_forks: int | None

    @property
    def spec(self) -> EvidenceSpec | None:
        """As the plan takes it; None for none.

        Raises:
            UsageError: a kind is unknown, or forks are to carry nothing.
        """
        if not self.evidence:
            if self.evidence_forks is not None:
                raise UsageError(
                    "--evidence-forks says which forks carry evidence, and none is wanted",
                    hint="add --evidence, such as --evidence jit,gc",
                )
            return None
        extra = DEFAULT_EXTRA_FORKS if self.evidence_forks is None else self.evidence_forks
        return EvidenceSpec(read_kinds(self.evidence), extra)


def read_kinds(texts: tuple[str, ...]) -> tuple[EvidenceKind, ...]:
    """The kinds of evidence that texts such as `jit,gc` name, each once, sorted.

    Raises:
        UsageError: one of them is unknown, or empty.
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    if _ALL in names:
        names += EVIDENCE_KINDS
    for name in names:
        if name not in (*EVIDENCE_KINDS, _ALL):
            raise UsageError(
                f"--evidence: there is no kind of evidence '{name}'",
                hint=suggestion(name, [*EVIDENCE_KINDS, _ALL]),
            )
    return cast("tuple[EvidenceKind, ...]", tuple(sorted(set(names) - {_ALL})))


evidence_options = grouped(
    "evidence_options",
    EvidenceOptions,
    "Evidence",
    click.option(
        "--evidence",
        multiple=True,
        metavar="KIND[,KIND]",
        help="Collect what explains the figures, in forks of their own: "
        f"{', '.join(EVIDENCE_KINDS)}, or {_ALL}; see: benchctl evidence RUN.",
    ),
    click.option(
        "--evidence-forks",
        type=EvidenceForksType(),
        default=None,
        metavar="N|all",
        help="How many extra forks of every variant carry the evidence, and enter no comparison; or all: "
        "then every fork carries it, and what it costs is in the figures of all variants  "
        f"[default: {DEFAULT_EXTRA_FORKS}]",
    ),
)
"""The options; the command gets them as one, `evidence_options`."""
