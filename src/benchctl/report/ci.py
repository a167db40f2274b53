"""What other tools read: JUnit's XML, a step summary for GitHub, Bencher's metrics, Prometheus's text."""

from xml.etree import ElementTree as ET

from benchctl.report.grid import Grid, escaped, grid_table, note_lists
from benchctl.report.layout import collect_notes, comparison_text, headline, metric_title
from benchctl.report.numbers import json_text, visible
from benchctl.report.sweep import all_results, verdict
from benchctl.report.tables import legend
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import DECIDED, own_interval
from benchctl.stats.decisions import GateResult, outcomes
from benchctl.stats.metrics import metric_of


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


def bencher(analysis: Analysis) -> str:
    """Bencher Metric Format: a benchmark for every task and variant, a measure for every metric.

    Bounds are those of the 95 % interval of the mean over forks; there are none where forks are too few.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in analysis.rows:
        for side in row.figures:
            if side.value is None:
                continue
            measure = {"value": side.value}
            reach = own_interval(side.values, side.builds, additive=metric_of(row.metric).additive)
            if reach is not None:
                measure |= {"lower_value": reach[0], "upper_value": reach[1]}
            benchmark = f"{analysis.sections[row.schedule].challenge}: {row.label} ({side.variant})"
            found.setdefault(benchmark, {})[f"{row.metric} ({row.unit})"] = measure
    return json_text(found)


_SERIES = {
    "benchctl_value": "Mean over forks, in the unit of the label.",
    "benchctl_value_low": "Lower end of its 95 % interval.",
    "benchctl_value_high": "Upper end of its 95 % interval.",
    "benchctl_forks": "Forks that have a value.",
    "benchctl_change": "Contender / baseline - 1.",
    "benchctl_change_low": "Lower end of its 95 % interval.",
    "benchctl_change_high": "Upper end of its 95 % interval.",
    "benchctl_slower": "1 if the contender is slower beyond the margin, 0 if not; none while that is open.",
}


def prometheus(analysis: Analysis) -> str:
    """Gauges in Prometheus's text format, for its textfile collector: figures of sides, and comparisons."""
    found: dict[str, list[str]] = {name: [] for name in _SERIES}

    def put(name: str, value: float | None, labels: dict[str, str]) -> None:
        if value is not None:
            told = ",".join(f'{label}="{_label(text)}"' for label, text in labels.items())
            found[name].append(f"{name}{{{told}}} {value!r}")

    for row in analysis.rows:
        place = {
            "challenge": analysis.sections[row.schedule].challenge,
            "task": row.label,
            "metric": row.metric,
        }
        place |= {"unit": row.unit}
        for side in row.figures:
            labels = place | {"variant": side.variant}
            additive = metric_of(row.metric).additive
            low, high = own_interval(side.values, side.builds, additive=additive) or (None, None)
            put("benchctl_value", side.value, labels)
            put("benchctl_value_low", low, labels)
            put("benchctl_value_high", high, labels)
            put("benchctl_forks", float(sum(value is not None for value in side.values)), labels)
        for one in row.comparisons:
            labels = place | {"baseline": one.baseline, "contender": one.contender}
            ends = (one.effect_percent, one.low_percent, one.high_percent)
            for name, percent in zip(("", "_low", "_high"), ends, strict=True):
                put(f"benchctl_change{name}", None if percent is None else percent / 100, labels)
            put("benchctl_slower", float(one.verdict == "slower") if one.verdict in DECIDED else None, labels)
    parts = []
    for name, lines in found.items():
        if lines:
            parts += [f"# HELP {name} {_SERIES[name]}", f"# TYPE {name} gauge", *lines]
    return "".join(f"{part}\n" for part in parts)


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
