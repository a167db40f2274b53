"""A form on this host: documents, heaps, CPUs, rules, and files with its keys."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.plan import DEFAULT_LENGTH, EvidenceSpec, StopSpec
from benchctl.run.form import forks_of, pin_of_form, read_form, run_spec, stop_of
from benchctl.spec import MOST_FORKS, EvidenceEntry, RunForm
from builders import ES
from golden import Cases

HOME = Home(Path("/nowhere"))
ALLOWED = sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heap": "10m"}, r"--heap: invalid size '10m' \(expected at least 256m\)"),
        ({"docs": "0"}, "--docs: invalid document count '0'"),
        ({"docs": 0}, "--docs: must be at least 1"),
        ({"forks": 0}, "--forks: must be at least 1"),
        ({"seed": -1}, "--seed: must be at least 0"),
        ({"seed": 2**63}, "--seed: must be at most"),
        ({"corpus_seed": -1}, "--corpus-seed: must be at least 0"),
        ({"workers": 65}, "--workers: must be at most 64"),
        ({"segments": 0}, "--segments: must be at least 1"),
        ({"budget": "36501d"}, "--budget: invalid duration"),
        ({"evidence": EvidenceEntry(("inlining",), 0)}, "--evidence-forks: must be at least 1"),
        ({"track_revision": "8"}, "--track-revision requires --track-repository"),
        ({"track_repository": "https://a:b@c/d"}, "--track-repository: the URL holds a user or a password"),
    ],
)
def test_what_is_out_of_range_is_refused(settings: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        run_spec(RunForm(**settings), (), home=HOME)


@pytest.mark.skipif(len(ALLOWED) < 2, reason="one CPU cannot be divided")
def test_cpus_are_those_of_this_process():
    assert pin_of_form(RunForm(), 1) is None
    chosen = pin_of_form(RunForm(pin="auto"), 1)
    assert chosen is not None
    assert sorted((*chosen.node, *chosen.driver)) == ALLOWED
    first, second = ALLOWED[:2]
    named = pin_of_form(RunForm(pin=f"node={second},driver={first}"), 1)
    assert named is not None
    assert (named.node, named.driver) == ((second,), (first,))
    with pytest.raises(UsageError, match="is not available"):
        pin_of_form(RunForm(pin=f"node={first},driver=4095"), 1)


@pytest.mark.parametrize(
    ("settings", "count", "stop"),
    [
        ({}, MOST_FORKS, DEFAULT_LENGTH),
        ({"forks": 7}, 7, None),
        ({"budget": "30m"}, MOST_FORKS, StopSpec(budget_s=1800.0, least_forks=6)),
        (
            {"forks": 12, "until_decided": True, "budget": "30m"},
            12,
            StopSpec(decided=True, budget_s=1800.0),
        ),
        (
            {"until_decided": True, "margin": "10%"},
            MOST_FORKS,
            StopSpec(decided=True, margin=0.1),
        ),
    ],
)
def test_a_rule_makes_room_for_more_forks(settings: dict[str, Any], count: int, stop: StopSpec | None):
    form = RunForm(**settings)
    assert (forks_of(form), stop_of(form)) == (count, stop)


def test_evidence_is_collected_in_further_forks_or_in_all():
    entries = (None, EvidenceEntry(("profile", "inlining", "profile"), 3), EvidenceEntry(("profile",), "all"))
    found = [run_spec(RunForm(evidence=entry), (), home=HOME).evidence for entry in entries]
    assert found == [None, EvidenceSpec(("inlining", "profile"), 3), EvidenceSpec(("profile",), 0)]


# Files with its keys.


def read(folder: Path, text: str) -> RunForm:
    file = folder / "run.yml"
    file.write_text(text, encoding="utf-8")
    return read_form(file)


def test_a_file_has_the_keys_of_the_form_and_paths_beside_it(tmp_path: Path):
    (tmp_path / "c.json").touch()
    form = read(
        tmp_path,
        "variants: [es, 'mine=os,jar:./l.jar']\nvariants-file: v.yml\njdk: ./jdk\n"
        "challenges: [range-only, c.json]\nwarmup-challenges: [sub/w.json]\ncorpus: d.json\n"
        "corpus-dirs: [more]\nhosts: h.yml\ntrack: tracks/mine\nparams: {iterations: 3}\nheap: 1g\n"
        "evidence: {kinds: [inlining]}\nuntil-decided: true\n",
    )
    here = str(tmp_path)
    assert form == RunForm(
        variants=("es", f"mine=os,jar:{here}/l.jar"),
        variants_file=f"{here}/v.yml",
        jdk=f"{here}/jdk",
        challenges=("range-only", f"{here}/c.json"),
        warmup_challenges=(f"{here}/sub/w.json",),
        corpus=f"{here}/d.json",
        corpus_dirs=(f"{here}/more",),
        hosts=f"{here}/h.yml",
        track=f"{here}/tracks/mine",
        params={"iterations": 3},
        heap="1g",
        evidence=EvidenceEntry(("inlining",)),
        until_decided=True,
    )


def test_a_file_has_the_words_of_the_options(tmp_path: Path):
    assert read(tmp_path, "workers: auto\nindex-builds: auto\n") == read(tmp_path, "seed: null\n")
    spec = run_spec(read(tmp_path, "workers: auto"), (), home=HOME)
    assert (spec.workers, spec.index_builds, spec.free_builds) == (1, 1, True)
    spec = run_spec(read(tmp_path, "workers: 3\nindex-builds: 2"), (), home=HOME)
    assert (spec.workers, spec.index_builds, spec.free_builds) == (3, 2, False)
    with pytest.raises(UsageError, match=":1:"):
        read(tmp_path, "workers: 0")


def test_what_is_wrong_in_a_file_is_refused_with_its_place(cases: Cases, tmp_path: Path):
    cases("form", lambda text: read(tmp_path, text), tmp_path)


def test_a_form_survives_its_json(tmp_path: Path):
    form = RunForm(variants=("es",), evidence=EvidenceEntry(("inlining",), "all"), docs="1m", workers=2)
    written = json.dumps(msgspec.to_builtins(form))
    assert read(tmp_path, written) == form


def test_nothing_that_is_asked_for_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    """Whoever adds a field of the form has to do something with it here, or say where else."""
    read: set[str] = set()
    # It looks at all of them.
    monkeypatch.setattr("benchctl.run.form.check_settings", lambda _form: None)

    class Watched(RunForm, frozen=True, kw_only=True):
        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    form = Watched(until_decided=True, evidence=None)
    run_spec(form, (ES,), home=HOME, stop=stop_of(form))
    forks_of(form)
    # Variants are looked up before, and the rest is about a run's folder and its first forks.
    elsewhere = {"variants", "variants_file", "jdk", "tags", "on_busy"}
    elsewhere |= {"targets", "targets_file", "allow_writes"}
    assert {*RunForm.__struct_fields__} - read == elsewhere
