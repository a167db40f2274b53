"""What `benchctl run` can say, an experiment can: for all of its measurements, and for each."""

import json
import re
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from benchctl.cli.run import run_command
from benchctl.engine.variant import VariantEntry
from benchctl.errors import UsageError
from benchctl.experiment.commands import run_command as experiment_run_command
from benchctl.experiment.file import Changes, ExperimentFile, MeasurementEntry
from benchctl.experiment.record import Expectation
from benchctl.results.plan import Plan
from benchctl.spec import EvidenceEntry, Setting, run_settings
from experiment_files import EXPERIMENT, load

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "how-to" / "experiments.md"


def keys(kind: type[msgspec.Struct]) -> set[str]:
    return {one.encode_name for one in msgspec.structs.fields(kind)}


def options(command: click.Command) -> dict[str, set[str]]:
    """The long spelling of every option -> all of its spellings and its name, without dashes."""
    return {
        next(word for word in one.opts if word.startswith("--")): {
            word.strip("-").replace("_", "-") for word in (*one.opts, one.name or "")
        }
        for one in command.params
        if isinstance(one, click.Option) and one.expose_value
    }


def test_what_run_can_say_an_experiment_can_or_the_page_says_why_not():
    said = keys(ExperimentFile) | keys(MeasurementEntry) | keys(VariantEntry) | keys(Expectation)
    said |= {f"evidence-{key}" for key in keys(EvidenceEntry)}
    said |= set().union(*options(experiment_run_command).values())
    left = {
        option
        for option, words in options(run_command).items()
        if not said & {*words, *(f"{word}s" for word in words)}
    }
    listed = {
        option: reason
        for row in re.findall(r"^\| (`--.*?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
        for option in re.findall(r"`(--[a-z-]+)`", row[0])
        for reason in [row[1]]
    }
    assert set(listed) == left
    assert all(listed.values())


def planned(folder: Path, text: str, name: str = "fresh", **changes: Any) -> Plan:
    return load(folder, text, Changes(**changes)).plans[name].plan


def with_own(said: str) -> str:
    return EXPERIMENT.replace("challenges: [range-only-short]}", f"challenges: [range-only-short], {said}}}")


OTHERS: dict[str, Any] = {
    "restart": "task",
    "include_tasks": "range",
    "exclude_tasks": "desc_sort_timestamp",
    "on_error": "abort",
    "ingest_client": "official",
    "metrics": "cpu",
    "diff": "absolute",
    "page_cache": "cold",
    "sweep": ["clients=1,2"],
}


@pytest.mark.parametrize("one", run_settings(), ids=lambda one: one.name)
def test_every_setting_of_runs_is_the_files_or_the_measurements_own(tmp_path: Path, one: Setting):
    def said(value: object) -> str:
        return f"{one.name.replace('_', '-')}: {json.dumps(value)}"

    def measured(own: str, whole: str = "") -> object:
        text = EXPERIMENT.partition("tables:")[0]
        text = text.replace("challenges: [range-only-short]}", f"challenges: [big5rangedebug]{own}}}")
        found = getattr(planned(tmp_path, f"{whole}\n{text}"), one.name)
        return list(found) if isinstance(found, tuple) else found

    hosts = tmp_path / "hosts.yml"
    hosts.write_text("load: [here]\nlocal: here")
    others = {**OTHERS, "hosts": str(hosts)}
    other = others.get(one.name, not one.default if isinstance(one.default, bool) else 3)
    assert other != one.default
    usual = list(one.default) if isinstance(one.default, tuple) else one.default
    assert measured("") == usual
    assert measured(f", {said(other)}") == other
    assert measured("", said(other)) == other
    assert measured(f", {said(usual)}", said(other)) == usual


@pytest.mark.parametrize(
    ("said", "field", "value"),
    [
        ("workers: 3", "workers", 3),
        ("seed: 77", "seed", 77),
        ("heap: 700m", "heap_mb", 700),
    ],
)
def test_so_is_what_else_a_plan_holds(tmp_path: Path, said: str, field: str, value: object):
    plans = load(tmp_path, with_own(said)).plans
    assert getattr(plans["fresh"].plan, field) == value
    assert getattr(plans["used"].plan, field) != value


def test_hosts_are_named_beside_the_file(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("load: [here]\nlocal: here\n")
    assert planned(tmp_path, with_own("hosts: hosts.yml"), "fresh").hosts == str(tmp_path / "hosts.yml")


def test_documents_are_a_measurements_own_unless_the_command_line_has_others(tmp_path: Path):
    text = with_own("docs: 5k, corpus-seed: 9")
    mine, others = (planned(tmp_path, text, name).corpus for name in ("fresh", "used"))
    assert (mine.documents, mine.seed) == (5000, 9)
    assert (others.documents, others.seed) == (20_000, 1)
    changed = planned(tmp_path, text, docs=7000).corpus
    assert (changed.documents, changed.seed) == (7000, 9)


def test_a_sweep_has_numbers_of_documents_of_its_own(tmp_path: Path):
    text = with_own('sweep: ["docs=1k,2k"]')
    for engine in ("es", "os"):
        text = text.replace(f"fresh/{engine}/range", f"fresh/{engine}.1k/range")
    assert {one.documents for one in planned(tmp_path, text).variants} == {1000, 2000}


def test_a_measurement_sweeps_histories_whose_points_rows_name(tmp_path: Path):
    text = with_own('sweep: ["history=fresh,polluted"]')
    for engine, history in (("es", "fresh"), ("os", "polluted")):
        text = text.replace(
            f"fresh/{engine}/range", f"fresh/{engine}/range-only-short@history={history}/range"
        )
    plan = planned(tmp_path, text)
    assert [plan.history(number) for number in range(len(plan.schedules))] == ["fresh", "polluted"]
    assert plan.pollution is not None
    with pytest.raises(UsageError, match="range-only-short@history=other"):
        load(tmp_path, text.replace("history=polluted/", "history=other/"))
    with pytest.raises(UsageError, match="--sweep history decides what a node ran before"):
        load(tmp_path, text.replace('sweep: ["', 'warmup-challenges: [polluted], sweep: ["'))


def test_documents_of_files_are_all_of_them_unless_a_number_is_given(tmp_path: Path):
    (tmp_path / "own.json").write_text('{"a": 1}\n' * 30)
    text = EXPERIMENT.replace("docs: 20k\n", "corpus: own.json\n")
    files = load(tmp_path, text).plans["fresh"].files
    assert (files.local, files.docs) == (tmp_path / "own.json", None)
    assert load(tmp_path, text, Changes(docs=10)).plans["fresh"].files.docs == 10
    assert load(tmp_path, text, Changes(docs=10, at_most=True)).plans["fresh"].files.at_most


def test_counts_of_shipped_challenges_are_raised_where_that_is_asked_for(tmp_path: Path):
    text = EXPERIMENT.replace("[range-only-short]}", "[range-only-short], warmup: auto}")
    assert planned(tmp_path, text).settled
    assert not planned(tmp_path, EXPERIMENT).settled


def test_sides_with_other_numbers_of_index_builds_are_not_compared(tmp_path: Path):
    with pytest.raises(UsageError, match="different numbers of index builds"):
        load(tmp_path, with_own("index-builds: 2"))


def test_a_trial_has_short_tasks_and_compares_what_they_will_have(tmp_path: Path):
    plan = planned(tmp_path, EXPERIMENT, test_mode=True, forks=1)
    assert plan.test_mode
    assert all((task.iterations or 0) <= 3 for one in plan.schedules for task in one.schedule)


INGEST = """
title: Ingest
docs: 20k
index-builds: 5
measurements:
  one: {variants: [es, os], ingest: true}
  two: {variants: [es], ingest: true, segments: 2}
tables:
  - title: Builds
    rows:
      - {name: rate, metric: build_rate, baseline: one/es, contender: one/os}
      - {name: size, metric: index_size, as: difference, baseline: one/es, contender: two/es}
      - {name: work, metric: build_merge, baseline: [one/es, -two/es], contender: one/os}
"""


def test_a_measurement_may_build_indices_and_nothing_else(tmp_path: Path):
    found = load(tmp_path, INGEST)
    plan = found.plans["one"].plan
    assert (plan.schedules, plan.forks, plan.index_builds) == ((), 0, 5)
    assert found.plans["two"].plan.segments == 2
    assert [str(ref) for ref in found.spec.comparisons[0].refs] == ["one/es", "one/os"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("contender: one/os}", "contender: one/oss}", "measurement 'one' has no variant 'oss'"),
        (
            "metric: build_rate, baseline: one/es,",
            "metric: mean, baseline: one/es/range,",
            "unknown task 'one/es/range'",
        ),
        ("ingest: true}", "ingest: true, pin: nonsense}", "pin"),
        ("docs: 20k", "docs: 20k\nparams: {x: 1}", "no challenge of any measurement uses the parameter 'x'"),
    ],
)
def test_what_no_index_has_is_told(tmp_path: Path, old: str, new: str, message: str):
    with pytest.raises(UsageError) as caught:
        load(tmp_path, INGEST.replace(old, new, 1))
    assert message in str(caught.value)


def test_a_heap_is_that_of_the_measurement_or_the_file_or_the_default(tmp_path: Path):
    def heaps(text: str, **changes: Any) -> tuple[object, ...]:
        found = load(tmp_path, text.replace("heap: 512m\n", ""), Changes(**changes))
        return tuple(found.plans[name].plan.heap_mb for name in ("fresh", "used"))

    assert heaps(EXPERIMENT) == heaps(with_own("docs: 30m")) == (1024, 1024)
    assert heaps(with_own("heap: 700m")) == (700, 1024)
    assert heaps(EXPERIMENT, heap="300m") == (300, 300)
