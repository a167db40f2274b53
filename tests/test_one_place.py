"""What is declared in one place, shown by making the change in a copy of the sources and nowhere else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import benchctl

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


def test_a_setting_of_runs_is_one_declaration(tmp_path: Path):
    (package,) = benchctl.__path__
    shutil.copytree(package, tmp_path / "src" / "benchctl", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("tracks", "challenges", "experiments"):
        (tmp_path / folder).symlink_to(Path(package).parents[1] / folder)
    declared = tmp_path / "src" / "benchctl" / "spec.py"
    text = declared.read_text(encoding="utf-8")
    before, after = text.split("\n\nclass Setting(", 1)
    declared.write_text(f"{before.rstrip()}{SETTING}\n\nclass Setting({after}", encoding="utf-8")
    suite = tmp_path / "s.yml"
    suite.write_text("variants: [es]\nchallenges: [range-only]\nreplicas: 2\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", LOOK_FOR_SETTING, str(suite)],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
