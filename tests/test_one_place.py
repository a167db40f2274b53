"""What is declared in one place, shown by making the change in a copy of the sources and nowhere else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import benchctl
import builders

SETTING = """
    replicas: Annotated[int, _said("Copies of every shard.", "Nodes and indices", at_least=0)] = 0
"""
# Wherever a setting of runs is to be found, in words that a program can tell.
LOOK_FOR_SETTING = """
import shlex
import sys
from pathlib import Path

import click
import msgspec

from benchctl.cli.plan import plan_command
from benchctl.cli.run import run_command
from benchctl.errors import UsageError
from benchctl.experiment.form import ExperimentFile
from benchctl.nightly.suite import Suite, load_suite
from benchctl.report.schema import schema
from benchctl.results.experiment import ExperimentSpec
from benchctl.results.plan import Plan
from benchctl.run.plan import RunSpec
from benchctl.spec import check_settings, setting_words, settings_in

for command in (run_command, plan_command):
    (option,) = [one for one in command.params if one.name == "replicas"]
    assert (option.opts, option.help, option.default) == (["--replicas"], "Copies of every shard.", 0)
for kind in (Suite, ExperimentFile, ExperimentSpec, RunSpec, Plan):
    assert "replicas" in kind.__struct_fields__, kind
assert schema("run")["$defs"]["Plan"]["properties"]["replicas"]["description"] == "Copies of every shard."

file = Path(sys.argv[1])
suite = load_suite(file)
assert suite.replicas == 2
assert setting_words(suite) == ["--replicas", "2"]
assert settings_in(suite)["replicas"] == 2
try:
    check_settings(msgspec.structs.replace(suite, replicas=-1))
except UsageError as err:
    assert err.message == "--replicas must be at least 0"
"""


FIGURE = """
    Figure(
        name="cpu",
        title="CPU of the node",
        field="cpu_ms",
        meaning="CPU time of the node for a request, ms",
        margin=0.1,
    ),
"""
LOOK_FOR_FIGURE = """
import sys
from pathlib import Path

import msgspec

from benchctl.cli.compare import compare_command
from benchctl.cli.comparison import Measures
from benchctl.cli.minimize import minimize_command
from benchctl.nightly.suite import load_suite
from benchctl.report.formats import render
from benchctl.report.schema import schema
from benchctl.results.sql import TASKS
from benchctl.stats.analyse import analyse
from benchctl.stats.decisions import gate
from benchctl.stats.metrics import kept_metric_of
from builders import make_fork, make_plan, make_summary

for command in (compare_command, minimize_command):
    (option,) = [one for one in command.params if one.name in ("metric", "metrics")]
    assert "cpu" in option.type.choices, command.name
assert kept_metric_of("cpu").title == "CPU of the node"  # as experiments name it
assert load_suite(Path(sys.argv[1])).margins == {"cpu": 0.2}
assert "cpu" in schema("analysis")["$defs"]["Row"]["properties"]["metric"]["pattern"]
(column,) = [one for one in TASKS if one.name == "cpu_ms"]
assert column.meaning == "CPU time of the node for a request, ms"


def forks(variant, factor):
    values = [factor * value for value in (10.0, 10.2, 9.9, 10.1, 10.0)]
    summaries = [msgspec.structs.replace(make_summary("range", 5.0), cpu_ms=one) for one in values]
    return [make_fork(variant, block, summary) for block, summary in enumerate(summaries)]


sides = {"es": forks("es", 1.0), "os": forks("os", 1.5)}
(metric,) = Measures(("cpu",)).metrics(redline=False)
found = analyse(sides, make_plan(forks=5), runs=["r"], metrics=[metric], method="holm")
(row,) = found.rows
assert (row.unit, row.comparisons[0].verdict, row.comparisons[0].margin_percent) == ("ms", "slower", 10.0)
assert gate(found).outcome == "regression", gate(found).outcome
for kind in ("text", "markdown", "csv", "json"):
    assert "cpu" in render(found, kind).lower(), kind
"""


def test_a_setting_of_runs_is_one_declaration(tmp_path: Path):
    copy_sources(tmp_path)
    declared = tmp_path / "src" / "benchctl" / "spec.py"
    text = declared.read_text(encoding="utf-8")
    before, after = text.split("\n\nclass Setting(", 1)
    declared.write_text(f"{before.rstrip()}{SETTING}\n\nclass Setting({after}", encoding="utf-8")
    look(tmp_path, LOOK_FOR_SETTING, "replicas: 2")


def test_a_figure_to_compare_by_is_one_declaration_beside_its_field(tmp_path: Path):
    copy_sources(tmp_path)
    declared = tmp_path / "src" / "benchctl" / "results" / "figures.py"
    text = declared.read_text(encoding="utf-8")
    text = text.replace(
        "    mean_ns: float | None", "    cpu_ms: float | None = None\n    mean_ns: float | None", 1
    )
    text = text.replace("FIGURES = (", f"FIGURES = ({FIGURE}", 1)
    declared.write_text(text, encoding="utf-8")
    look(tmp_path, LOOK_FOR_FIGURE, "margins: {cpu: 20%}")


def copy_sources(top: Path) -> None:
    (package,) = benchctl.__path__
    shutil.copytree(package, top / "src" / "benchctl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("tracks", "challenges", "experiments"):
        (top / folder).symlink_to(Path(package).parents[1] / folder)


def look(top: Path, program: str, of_suite: str) -> None:
    suite = top / "s.yml"
    suite.write_text(f"variants: [es]\nchallenges: [range-only]\n{of_suite}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", program, str(suite)],
        env={**os.environ, "PYTHONPATH": f"{top / 'src'}{os.pathsep}{Path(builders.__file__).parent}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
