"""What is declared in one place, shown by making the change in a copy of the sources and nowhere else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
from benchctl.experiment.file import ExperimentFile
from benchctl.nightly.suite import Suite, load_suite
from benchctl.cli.schema import schema
from benchctl.experiment.record import ExperimentSpec
from benchctl.results.plan import Plan
from benchctl.run.plan import RunSpec
from benchctl.run.form import read_form
from benchctl.spec import RunForm, check_settings, setting_words, settings_in

for command in (run_command, plan_command):
    (option,) = [one for one in command.params if one.name == "replicas"]
    assert (option.opts, option.help, option.default) == (["--replicas"], "Copies of every shard.", 0)
for kind in (RunForm, Suite, ExperimentFile, ExperimentSpec, RunSpec, Plan):
    assert "replicas" in kind.__struct_fields__, kind
assert schema("run")["$defs"]["Plan"]["properties"]["replicas"]["description"] == "Copies of every shard."

file = Path(sys.argv[1])
suite = load_suite(file)
assert suite.replicas == 2
assert "--replicas 2" in " ".join(setting_words(suite))
assert setting_words(RunForm(replicas=2)) == ["--replicas", "2"]
assert settings_in(suite)["replicas"] == 2
try:
    check_settings(msgspec.structs.replace(suite, replicas=-1))
except UsageError as err:
    assert err.message == "--replicas: must be at least 0"
"""


JOULES = 'joules: Annotated[float | None, about("energy of the node for a request, J")] = None'
METRIC = """
    MetricKind(
        name="joules",
        title="energy of the node",
        field="joules",
        margin=0.1,
        usual=True,
        level="node",
        own_nodes="a wattmeter",
    ),
"""
LOOK_FOR_METRIC = """
import sys
from pathlib import Path

import msgspec

from benchctl.cli.compare import compare_command
from benchctl.cli.comparison import Measures
from benchctl.cli.listing import metrics_table
from benchctl.errors import UsageError
from benchctl.search.commands.minimize import minimize_command
from benchctl.nightly.suite import load_suite
from benchctl.report.formats import render
from benchctl.cli.schema import schema
from benchctl.results.tables import TASKS
from benchctl.stats.analyse import analyse
from benchctl.stats.decisions import gate
from benchctl.stats.metrics import check_told_by_clusters, kept_metric_of
from builders import make_fork, make_plan, make_summary

for command in (compare_command, minimize_command):
    (option,) = [one for one in command.params if one.name in ("metric", "metrics")]
    assert "joules" in (getattr(option.type, "choices", None) or option.help), command.name
assert kept_metric_of("joules").title == "energy of the node"  # as experiments name it
assert load_suite(Path(sys.argv[1])).margins == {"joules": 0.2}
assert "joules" in schema("analysis")["$defs"]["Row"]["properties"]["metric"]["pattern"]
(column,) = [one for one in TASKS if one.name == "joules"]
assert column.meaning == "energy of the node for a request, J"
(listed,) = [row for row in metrics_table().lines if row[0] == "joules"]
assert listed[4:7] == ("node", "no", "energy of the node for a request, J")
assert {"run", "compare", "experiment", "minimize"} == {*listed[7]}
try:
    check_told_by_clusters(("took", "joules"))
except UsageError as err:
    assert "a wattmeter" in err.message
else:
    raise AssertionError


def forks(variant, factor):
    values = [factor * value for value in (10.0, 10.2, 9.9, 10.1, 10.0)]
    summaries = [msgspec.structs.replace(make_summary("range", 5.0), joules=one) for one in values]
    return [make_fork(variant, block, summary) for block, summary in enumerate(summaries)]


sides = {"es": forks("es", 1.0), "os": forks("os", 1.5)}
(metric,) = Measures(("joules",)).metrics(make_plan())
found = analyse(sides, make_plan(forks=5), runs=["r"], metrics=[metric], method="holm")
(row,) = found.rows
assert (row.unit, row.comparisons[0].verdict, row.comparisons[0].margin_percent) == ("ms", "slower", 10.0)
assert gate(found).outcome == "regression", gate(found).outcome
for kind in ("text", "markdown", "csv", "json"):
    text = render(found, kind).lower()
    assert "joules" in text or "energy of the node" in text, kind
"""
ROWS = """
    Row(
        "reload-search-analyzers",
        "Read the analyzers' files again.",
        Form(
            "POST",
            "/{index}/_reload_search_analyzers",
            opensearch="/_plugins/_refresh_search_analyzers/{index}",
            query=("resource",),
        ),
        {"resource": Key(str | None, None, "only those that use this one.")},
        base=OnIndex,
    ),
    Row(
        "search-template",
        "A search whose body a stored template makes.",
        Form(
            "POST",
            "/{index}/_search/template",
            body=lambda operation: {"id": operation.id, "params": operation.params},
        ),
        {"id": Key(str), "params": Key(dict[str, Any])},
        base=Asking,
        shown=True,
        rule=lambda operation: (operation.id != "", "id is empty"),
    ),
    _elsewhere("ftp-bulk", "Documents over FTP.", "FTP"),
"""
# Wherever an operation type is to be found, from a challenge's JSON to what would go over the wire.
LOOK_FOR_OPERATIONS = """
import json
import sys
from pathlib import Path

import msgspec
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.load.request import Request
from benchctl.load.work.openers import open_workload
from benchctl.load.workload import WorkContext
from benchctl.plugin.rally_track import OperationType
from benchctl.cli.schema import schema
from benchctl.results.samples import Outcome
from benchctl.run.targets import _only_reads
from benchctl.track.load import load_challenge, load_track
from benchctl.track.operations.catalogue import PluginOperation

folder = Path(sys.argv[1])
RELOAD = {"operation-type": "reload-search-analyzers", "resource": "a.txt"}
FIND = {"operation-type": "search-template", "name": "find", "id": "by-host"}
VALUES = {"host": {"kind": "list", "items": ["h", "i"]}}


def read(*operations):
    file = folder / "c.json"
    file.write_text(json.dumps({"name": "c", "schedule": [{"operation": one} for one in operations]}))
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge(str(file), track, {})
    return [challenge.operations[task.operation] for task in challenge.schedule]


def refused(operation):
    try:
        read(operation)
    except UsageError as err:
        return f"{err.message}; {err.hint}"
    raise AssertionError(operation)


def made(operation, engine="elasticsearch"):
    program = open_workload(operation, WorkContext("big5", engine=engine), clients=1, key="k").program(0)
    return program()


# Read and checked.
FILLED = {**FIND, "params": {"host": "${host}"}, "values": VALUES}
reload, find, ftp = read(RELOAD, FILLED, {"operation-type": "ftp-bulk", "bulk-size": 5})
assert (reload.resource, find.id) == ("a.txt", "by-host")
message = refused({**RELOAD, "resorce": "b"})
assert "c.json, line 1: $.schedule[0].operation: unknown key 'resorce'; did you mean 'resource'" in message
assert "params" in refused(FIND)
assert "id is empty" in refused({**FIND, "id": "", "params": {}})
assert "values.host" in refused({**FILLED, "params": {}})
assert "did you mean 'search-template'" in refused({"operation-type": "search-templat"})

# Listed, described, counted, and known to plug-ins.
operations = [{"name": "again", **RELOAD}, {**FIND, "params": {}}]
(folder / "track.json").write_text(json.dumps({"operations": operations}))
listed = CliRunner().invoke(root, ["list", "operations", "--track", str(folder), "--format", "csv"]).output
assert "again,reload-search-analyzers," in listed and "find,search-template," in listed
defined = schema("run")["$defs"]
described = defined["ReloadSearchAnalyzers"]["properties"]["resource"]["description"]
assert described == "only those that use this one."
assert defined["SearchTemplate"]["required"] == ["operation-type", "name", "id", "params"]
assert (reload.unit, reload.reported, _only_reads(reload)) == ("ops", False, False)
assert (find.unit, find.reported, _only_reads(find)) == ("queries", True, True)
assert PluginOperation(name="x", type="search-template", param_source="own").unit == "queries"
assert OperationType.ReloadSearchAnalyzers.admin_op and not OperationType.SearchTemplate.admin_op

# Sent.
request = made(reload)
assert (request.method, request.path) == ("POST", "/big5/_reload_search_analyzers?resource=a.txt")
assert (request.body, request.searches, request.timeout_s) == (b"", 0, 60)
assert request.judge(200, b'{"error": {"type": "x"}}').outcome is Outcome.BAD_BODY
assert made(reload, "opensearch").path == "/_plugins/_refresh_search_analyzers/big5?resource=a.txt"
request = made(find)
assert (request.method, request.path, request.searches) == ("POST", "/big5/_search/template", 1)
assert msgspec.json.decode(request.body) == {"id": "by-host", "params": {"host": "h"}}
assert request.judge(200, b'{"took": 3, "hits": {"total": 5}}').hits == 5

# What cannot be done says why, and nothing is sent.
script = made(ftp)
assert not isinstance(script, Request)
try:
    next(script)
except StopIteration as end:
    assert end.value.lacking == "ftp-bulk speaks FTP: benchctl speaks HTTP"
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the package."""
    (package,) = benchctl.__path__
    copied = tmp_path / "src" / "benchctl"
    shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("tracks", "challenges", "experiments"):
        (tmp_path / folder).symlink_to(Path(package).parents[1] / folder)
    return copied


def look(sources: Path, script: str, place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, str(place)],
        env={
            **os.environ,
            "PYTHONPATH": f"{sources.parent}{os.pathsep}{Path(builders.__file__).parent}",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_a_setting_of_runs_is_one_declaration(sources: Path, tmp_path: Path):
    declared = sources / "spec.py"
    text = declared.read_text(encoding="utf-8")
    before, after = text.split("\n\nclass EvidenceEntry(", 1)
    declared.write_text(f"{before.rstrip()}{SETTING}\n\nclass EvidenceEntry({after}", encoding="utf-8")
    suite = tmp_path / "s.yml"
    suite.write_text("variants: [es]\nchallenges: [range-only]\nreplicas: 2\n", encoding="utf-8")
    look(sources, LOOK_FOR_SETTING, suite)


def test_an_operation_of_one_request_is_one_row(sources: Path, tmp_path: Path):
    declared = sources / "track" / "operations" / "table.py"
    text = declared.read_text(encoding="utf-8").replace("    Cannot,\n", "    Asking,\n    Cannot,\n", 1)
    declared.write_text(text.replace("ROWS = (", f"ROWS = ({ROWS}", 1), encoding="utf-8")
    folder = tmp_path / "track"
    folder.mkdir()
    look(sources, LOOK_FOR_OPERATIONS, folder)


def test_a_metric_is_one_declaration_beside_its_field(sources: Path, tmp_path: Path):
    summary = sources / "results" / "figures.py"
    text = summary.read_text(encoding="utf-8")
    known = "    mean_ns: Annotated[float | None"
    summary.write_text(text.replace(known, f"    {JOULES}\n{known}", 1), encoding="utf-8")
    declared = sources / "results" / "metrics.py"
    text = declared.read_text(encoding="utf-8")
    declared.write_text(text.replace("METRIC_KINDS = (", f"METRIC_KINDS = ({METRIC}", 1), encoding="utf-8")
    suite = tmp_path / "s.yml"
    suite.write_text("variants: [es]\nchallenges: [range-only]\nmargins: {joules: 20%}\n", encoding="utf-8")
    look(sources, LOOK_FOR_METRIC, suite)


# What these test is the whole package: its calibration, its commands, or a fault that any module could have.
WHOLE_PACKAGE = {
    "cli/test_commands.py", "cli/test_completion.py", "cli/test_cut_off.py", "cli/test_stored.py",
    "engine/test_planted_links.py", "nightly/test_calibration.py", "stats/test_calibration.py",
    "stats/test_calibration_across_runs.py",
    "test_docs.py", "test_goldens.py", "test_one_place.py", "test_prose.py",
}  # fmt: skip
ELSEWHERE = ("integration", "benchmarks", "support")


def test_a_test_is_named_after_the_module_that_it_tests():
    tests, sources = Path(__file__).parent, Path(benchctl.__file__).parent
    homeless = {
        str(path)
        for path in (file.relative_to(tests) for file in tests.rglob("test_*.py"))
        if path.parts[0] not in ELSEWHERE
        and not any(
            f"{path.stem.removeprefix('test_')}_".startswith(f"{module.stem}_")
            for module in (sources / path.parent).glob("*.py")
        )
    }
    assert homeless == WHOLE_PACKAGE
