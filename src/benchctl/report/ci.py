"""Results for build servers: JUnit's XML, a step summary for GitHub."""

from xml.etree import ElementTree as ET

from benchctl.report.grid import Grid, escaped, grid_table, note_lists
from benchctl.report.layout import collect_notes, comparison_text, headline, metric_title
from benchctl.report.numbers import visible
from benchctl.report.sweep import all_results, verdict
from benchctl.report.tables import legend
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult, outcomes


def junit(analysis: Analysis, gate: GateResult | None = None) -> str:
    """A test case for every comparison: a regression is a failure.

    What is open, or cannot be judged, is skipped; to a gate, if one was asked for, it is an error. So are
    forks that failed, whoever asks.
    """
    unclear = "skipped" if gate is None else "error"
    suite = ET.Element("testsuite", name=f"benchctl {headline(analysis)}")
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for row, one, outcome, reason in outcomes(analysis):
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"benchctl.{analysis.sections[row.schedule].challenge}",
            name=visible(f"{row.label}, {metric_title(row)}: {one.contender} vs {one.baseline}"),
        )
        kind = {"regression": "failure", "open": unclear}.get(outcome)
        if kind is not None:
            doubt = ", provisional" if one.provisional else ""
            ET.SubElement(case, kind, message=visible(f"{reason}{doubt}"), type=one.verdict)
        ET.SubElement(case, "system-out").text = visible(comparison_text(row, one))
        counts["tests"] += 1
        if kind is not None:
            counts[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
    lost = [one.text for one in analysis.caveats if one.code == "failed-forks"]
    if not any(analysis.forks.values()) and not analysis.build_rows:
        lost.append("nothing was measured")
    for text in lost:
        case = ET.SubElement(suite, "testcase", classname="benchctl.forks", name=visible(text))
        ET.SubElement(case, "error", message=visible(text), type="failed-forks")
        counts["tests"] += 1
        counts["errors"] += 1
    for name, count in counts.items():
        suite.set(name, str(count))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def step_summary(analysis: Analysis, gate: GateResult | None = None) -> str:
    """Markdown for GitHub's job summary: the answer and its tables, everything else folded away."""
    notes = collect_notes(analysis)
    parts = [f"### {escaped(headline(analysis))}"]
    if gate is not None:
        reasons = "".join(f"\n- {escaped(reason)}" for reason in gate.reasons)
        parts.append(f"**Gate: {escaped(gate.text)}**\n{reasons}")
    parts.append(f"**Verdict:** {escaped(verdict(analysis))}")
    parts += [
        grid_table(result) if isinstance(result, Grid) else escaped(result)
        for result in all_results(analysis, notes)
    ]
    parts += ["<details><summary>How to read it, and doubts</summary>", escaped(" ".join(legend(analysis)))]
    parts += [*note_lists(notes), "</details>"]
    return "\n\n".join(part for part in parts if part) + "\n"
