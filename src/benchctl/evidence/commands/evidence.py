"""`benchctl evidence`: what a run collected beside its figures, counted task by task."""

from pathlib import Path
from typing import Literal

import click

from benchctl.cli.options import check_node, complete_runs, open_run, printed_as, runs_option
from benchctl.cli.streams import emit, say, text_width
from benchctl.errors import UsageError
from benchctl.evidence.report import COUNTED, evidence_lines, evidence_tables, read_run_evidence
from benchctl.report.blocks import page_of, plain
from benchctl.report.numbers import json_text
from benchctl.results.model import RunRecord
from benchctl.results.plan import EVIDENCE_READERS
from benchctl.results.store import RunFolder
from benchctl.spec import EvidenceKind


@click.command("evidence")
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(COUNTED),
    multiple=True,
    help="Only this kind; repeatable.  [default: all that were collected]",
)
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant; repeatable.")
@click.option(
    "--block",
    type=int,
    default=None,
    metavar="N",
    help="Only the fork of this block.  [default: the mean of all that carry evidence]",
)
@click.option("--node", default="", metavar="NAME", help="Only this one of several nodes.")
@runs_option
@printed_as("text", "json", about="How it is printed; JSON holds every fork.")
def evidence_command(
    run: str,
    kinds: tuple[EvidenceKind, ...],
    variants: tuple[str, ...],
    block: int | None,
    node: str,
    runs_folder: Path | None,
    output_format: Literal["text", "json"],
) -> None:
    """Show the evidence of RUN: what compilers, collectors and the kernel did during each task.

    It is collected by benchctl run --evidence.
    """
    folder, record = open_run(run, runs_folder)
    _check(record, kinds, variants, block)
    check_node(record, node)
    found = read_run_evidence(
        folder, record, kinds=kinds or COUNTED, variants=variants, block=block, node=node
    )
    if output_format == "json":
        emit(json_text(found))
        return
    grids = evidence_tables(found)
    if grids:
        say(plain(page_of(grids, evidence_lines(found)), text_width()))
    for line in _elsewhere(folder, record):
        say(line)


def _check(
    record: RunRecord, kinds: tuple[EvidenceKind, ...], variants: tuple[str, ...], block: int | None
) -> None:
    """Refuse options that would print nothing."""
    carrying = [fork for fork in record.forks if fork.evidence and fork.status == "done"]
    if not carrying:
        raise UsageError(
            f"no finished fork of run {record.id} carries evidence",
            hint="collect it with: benchctl run --evidence jit,gc,os ...",
        )
    known = [spec.name for spec in record.plan.variants]
    for name in variants:
        if name not in known:
            raise UsageError(f"run {record.id} has no variant '{name}'", hint=f"it has: {', '.join(known)}")
    blocks = sorted({fork.block for fork in carrying})
    if block is not None and block not in blocks:
        listed = ", ".join(map(str, blocks))
        raise UsageError(f"no finished fork of block {block} carries evidence", hint=f"those of {listed} do")
    held = sorted({kind for fork in carrying for kind in fork.evidence})
    for kind in kinds:
        if kind not in held:
            raise UsageError(f"run {record.id} has no evidence '{kind}'", hint=f"it has: {', '.join(held)}")


def _elsewhere(folder: RunFolder, record: RunRecord) -> list[str]:
    """Return where the files are, and which commands read the remaining kinds."""
    held = dict.fromkeys(kind for fork in record.forks for kind in fork.evidence)
    elsewhere = [kind for kind in held if kind not in COUNTED]
    lines = [f"{kind}: see benchctl {EVIDENCE_READERS[kind].format(run=record.id)}" for kind in elsewhere]
    return [*lines, f"Kept in: {folder.path / 'evidence'}"]
