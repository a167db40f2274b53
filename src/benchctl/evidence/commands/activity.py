"""`benchctl explain RUN jit|gc|os`: evidence counted task by task; without a kind, the evidence of a run."""

from pathlib import Path
from typing import Literal, get_args

import click
import msgspec

from benchctl.cli.options import (
    TableFormat,
    check_node,
    open_run,
    print_table,
    printed_as,
    runs_option,
    table_format_option,
)
from benchctl.cli.streams import emit, note, say, text_width
from benchctl.errors import UsageError
from benchctl.evidence.report import evidence_lines, evidence_tables, read_run_evidence
from benchctl.report.command_line import command
from benchctl.report.numbers import json_text
from benchctl.report.table import Table, page_of, plain
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EvidenceSpec
from benchctl.spec import EvidenceKind


def _command(kind: EvidenceKind, text: str) -> click.Command:
    """Make the command of a kind."""

    @click.command(kind, help=f"{text}\n\nCollect it with `benchctl run --evidence {kind}`.")
    @click.option("--variant", "variants", multiple=True, metavar="NAME", help="Variant to show. Repeatable.")
    @click.option(
        "--block", type=int, metavar="N", help="Fork to show.  [default: the mean of all forks with evidence]"
    )
    @click.option("--node", default="", metavar="NAME", help="Node to show, of several.")
    @runs_option
    @printed_as("text", "json", about="Output format; JSON has every fork.")
    @click.pass_obj
    def explain(
        run: str,
        variants: tuple[str, ...],
        block: int | None,
        node: str,
        runs_folder: Path | None,
        output_format: Literal["text", "json"],
    ) -> None:
        folder, record = open_run(run, runs_folder)
        _check(record, kind, variants, block)
        check_node(record, node)
        evidence = read_run_evidence(folder, record, kinds=(kind,), variants=variants, block=block, node=node)
        if output_format == "json":
            emit(json_text(evidence))
            return
        grids = evidence_tables(evidence)
        if grids:
            say(plain(page_of(grids, evidence_lines(evidence)), text_width()))
        say(f"Kept in: {folder.path / 'evidence'}")

    return explain


jit_command = _command("jit", "Show JIT compilations, discarded code and deoptimizations during each task.")
gc_command = _command("gc", "Show GC pauses, safepoints and allocation during each task.")
os_command = _command("os", "Show what the kernel counted for nodes during each task.")


@click.command("list")
@runs_option
@table_format_option
@click.pass_obj
def list_command(run: str, runs_folder: Path | None, output_format: TableFormat) -> None:
    """List the evidence of a run, and how to collect more."""
    _, record = open_run(run, runs_folder)
    rows = []
    for kind in get_args(EvidenceKind):
        forks = [(fork.variant, fork.block) for fork in _carrying(record, kind)]
        shown = f"benchctl explain {record.id} {kind}" if forks else None
        rows.append((kind, [f"{variant} {block}" for variant, block in sorted(forks)], shown))
    columns = ("evidence", "variants and blocks", "show with")
    print_table(Table.listed(f"Evidence of {record.id}", columns, rows), output_format)
    # Microbenchmarks have no nodes that the others are about.
    possible = get_args(EvidenceKind) if record.plan.micro is None else ("inlining",)
    missing = tuple(kind for kind, _, shown in rows if shown is None and kind in possible)
    if missing:
        plan = msgspec.structs.replace(record.plan, evidence=EvidenceSpec(missing, 1))
        note(f"collect what is missing with: {command(plan)}")


def _carrying(record: RunRecord, *kinds: EvidenceKind) -> list[ForkRecord]:
    return [fork for fork in record.forks if fork.status == "done" and {*kinds} & {*fork.evidence}]


def _check(record: RunRecord, kind: EvidenceKind, variants: tuple[str, ...], block: int | None) -> None:
    """Refuse options that would print nothing."""
    carrying = _carrying(record, kind)
    if not carrying:
        raise UsageError(
            f"run {record.id} has no {kind} evidence",
            hint=f"list what it has, and how to collect more, with: benchctl explain {record.id}",
        )
    names = [spec.name for spec in record.plan.variants]
    for name in variants:
        if name not in names:
            raise UsageError(f"run {record.id} has no variant '{name}'", hint=f"it has: {', '.join(names)}")
    blocks = sorted({fork.block for fork in carrying})
    if block is not None and block not in blocks:
        listed = ", ".join(map(str, blocks))
        raise UsageError(f"block {block} has no {kind} evidence", hint=f"blocks with evidence: {listed}")
