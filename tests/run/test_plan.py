"""Plans: what runs in which order, on which node start, and what is refused before anything starts."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from asked import asked
from benchctl.errors import UsageError
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.plan import EvidenceSpec, PinSpec, Plan, TargetSpec
from benchctl.run.documents import FileOptions
from benchctl.run.plan import (
    SETTLING_DOCUMENTS,
    RunSpec,
    checked_hosts,
    plan_run,
    reload_track,
    settled,
    settling_text,
)
from benchctl.run.work import operations_used
from benchctl.track.model import Challenge, Task
from benchctl.track.pollution import POLLUTED
from builders import CORPUS, ES, OS
from certificates import write_certificates
from foreign_tracks import challenge_text, write_files

RUNNING = msgspec.structs.replace(OS, name="live", target=TargetSpec(("http://search-1:9200",)))


def options(**changes: Any) -> RunSpec:
    return asked(**{"challenges": ("big5rangedebug", "range-only-short"), **changes})


def test_parameters_reach_measured_challenges_and_scoped_ones_only_theirs():
    plan, _ = plan_run(
        options(
            warmup_challenges=("warmup",),
            params={"iterations": 300, "range-only-short.iterations": 7, "warmup.iterations": 50},
        )
    )
    assert {task.iterations for task in plan.schedules[0].schedule} == {300}
    assert {task.iterations for task in plan.schedules[1].schedule} == {7}
    assert {task.iterations for task in plan.warmup_challenges[0].schedule} == {50}


def test_warm_up_counts_do_not_follow_the_measured_ones():
    plan, _ = plan_run(options(warmup_challenges=("warmup",), params={"iterations": 300}))
    assert {task.iterations for task in plan.warmup_challenges[0].schedule} == {30}


@pytest.mark.parametrize("of", ["plan", "variant"])
def test_pollution_is_a_warm_up_that_depends_on_the_number_of_documents(of: str):
    hot = msgspec.structs.replace(ES, name="hot", warmups=(POLLUTED,))
    warm: dict[str, Any] = {"warmup_challenges": (POLLUTED,)} if of == "plan" else {"variants": (hot,)}
    plans = [
        plan_run(options(**warm, corpus=msgspec.structs.replace(CORPUS, documents=documents)))[0]
        for documents in (1000, 10**7)
    ]
    small, large = ((plan.all_warmups[0].schedule[0].iterations or 0) for plan in plans)
    assert small > large
    assert plans[0].polluting == {task.operation for task in plans[0].all_warmups[0].schedule}


def test_pollution_that_was_printed_is_a_warm_up_of_that_file(tmp_path: Path):
    derived = plan_run(options(warmup_challenges=(POLLUTED,)))[0].warmup_challenges
    path = str(write_files(tmp_path, {"challenge.json": challenge_text(derived[0])}) / "challenge.json")
    plan, _ = plan_run(options(warmup_challenges=(path,)))
    assert plan.warmup_challenges == derived


def test_a_challenge_that_is_only_named_like_the_pollution_hides_no_refusal(tmp_path: Path):
    text = '{"name": "polluted", "schedule": [{"operation": "multi_terms-keyword"}]}'
    path = str(write_files(tmp_path, {"own.json": text}) / "own.json")
    plan, _ = plan_run(options(warmup_challenges=(path,)))
    assert [challenge.name for challenge in plan.warmup_challenges] == [POLLUTED]
    assert plan.polluting == frozenset()


@pytest.mark.parametrize("of", ["plan", "variant"])
def test_a_parameter_that_only_a_warm_up_knows_needs_its_name(tmp_path: Path, of: str):
    text = '{"name": "heat", "schedule": [{"operation": "range", "iterations": {{ rounds | default(2) }}}]}'
    path = str(write_files(tmp_path, {"heat.json": text}) / "heat.json")
    heated = msgspec.structs.replace(ES, name="heated", warmups=(path,))
    warm: dict[str, Any] = {"warmup_challenges": (path,)} if of == "plan" else {"variants": (heated,)}
    with pytest.raises(UsageError, match="--param rounds: no challenge") as caught:
        plan_run(options(**warm, params={"rounds": 9}))
    assert "heat.rounds" in caught.value.hint
    plan, _ = plan_run(options(**warm, params={"heat.rounds": 9}))
    assert plan.all_warmups[0].schedule[0].iterations == 9


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"challenges": ()}, "missing option --challenge"),
        ({"variants": ()}, "no variant"),
        ({"variants": (msgspec.structs.replace(ES, warmups=("nothing",)),)}, "nothing"),
        ({"variants": (ES, ES)}, "duplicate variant"),
        ({"segments": 0}, "--segments"),
        ({"ingest_clients": 0}, "--ingest-clients"),
        ({"index_builds": 0}, "--index-builds: must be at least 1"),
        ({"index_builds": 4}, "--index-builds 4 needs at least 4 forks"),
        ({"index_builds": 2, "variants": (ES, RUNNING)}, "--index-builds: .* a running cluster"),
        ({"metrics": "cpu,cpus"}, "unknown metric 'cpus'"),
        (
            {"metrics": "took,cpu_search", "variants": (ES, RUNNING)},
            "--metric cpu_search: not available for running clusters.*the node's process",
        ),
        ({"page_cache": "cold", "variants": (ES, RUNNING)}, "--page-cache: .* a running cluster"),
        ({"pin": PinSpec((0,), (1,)), "variants": (RUNNING,)}, "--pin: .* a running cluster"),
        (
            {"evidence": EvidenceSpec(("profile",)), "variants": (RUNNING,)},
            "--evidence: .* running cluster",
        ),
        ({"params": {"iteration": 3}}, "iteration"),
        ({"params": {"nowhere.iterations": 3}}, "nowhere.iterations"),
        ({"params": {"iterations": "many"}}, "iterations"),
        ({"params": {"iterations": 0}}, "at least 1"),
        ({"challenges": ("nonsense",)}, "nonsense"),
        ({"track": "nonsense"}, "nonsense"),
        ({"params": {"clients": 100_000}}, "clients"),
        ({"params": {"iterations": 10**26}}, "iterations"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], text: str):
    with pytest.raises(UsageError, match=text):
        plan_run(options(**changes))


def test_what_a_running_cluster_tells_is_measured_on_it():
    told = ",".join(
        one.name
        for one in METRIC_KINDS
        if one.loop not in ("search", "open")
        and not (one.own_nodes or one.quality or one.name.startswith("profile_"))
    )
    plan, _ = plan_run(options(metrics=told, variants=(ES, RUNNING)))
    assert plan.metrics == told


def test_warm_ups_of_a_variant_come_before_the_common_ones_and_are_its_own():
    warm = msgspec.structs.replace(ES, name="es-warm", warmups=("range-only-short",))
    plan, track = plan_run(
        options(
            variants=(ES, warm),
            challenges=("range-only",),
            warmup_challenges=("warmup",),
            params={"iterations": 300, "range-only-short.iterations": 7},
        )
    )
    assert [one.name for one in plan.warmups_of("es", 0)] == ["warmup"]
    assert [one.name for one in plan.warmups_of("es-warm", 0)] == ["range-only-short", "warmup"]
    assert {task.iterations for task in plan.variant_warmups["es-warm"][0].schedule} == {7}
    assert plan.all_warmups == plan.warmups_of("es-warm", 0)
    assert reload_track(plan).digest == track.digest


def test_what_only_a_variant_warms_up_with_is_asked_as_well():
    warm = msgspec.structs.replace(ES, name="es-warm", warmups=("big5rangedebug",))
    plan, track = plan_run(options(variants=(ES, warm), challenges=("range-only-short",)))
    assert {one.name for one in operations_used(plan, track)} == {
        "desc_sort_timestamp",
        "composite-date_histogram-daily",
        "range",
    }


def test_index_settings_need_an_index_that_is_prepared():
    own = msgspec.structs.replace(ES, index_settings={"index.codec": "default"})
    plan, _ = plan_run(options(variants=(own,)))
    assert plan.variants[0].index_settings == {"index.codec": "default"}


def test_builds_and_cpus_are_in_the_plan():
    pin = PinSpec((0, 1), (2,))
    plan, _ = plan_run(options(index_builds=3, pin=pin))
    assert (plan.index_builds, plan.pin) == (3, pin)
    plain, _ = plan_run(options())
    assert (plain.index_builds, plain.pin) == (1, None)


def test_operations_are_asked_once_in_order_of_first_use():
    plan, track = plan_run(options(warmup_challenges=("warmup",)))
    assert [operation.name for operation in operations_used(plan, track)] == [
        "desc_sort_timestamp",
        "composite-date_histogram-daily-size-1",
        "range",
        "composite-date_histogram-daily",
    ]


def test_only_searches_with_one_answer_are_compared(tmp_path: Path):
    integer = {"kind": "integer", "min": 0, "max": 9}
    schedule = [
        {"operation": {"name": "mine", "operation-type": "search", "body": {"size": 3}}},
        {
            "operation": {
                "name": "varied",
                "operation-type": "search",
                "body": {"size": "${n}"},
                "values": {"n": integer},
            }
        },
        {"operation": {"name": "raw", "operation-type": "raw-request", "path": "/_search"}},
        {
            "operation": {
                "name": "both",
                "operation-type": "composite",
                "requests": [{"operation-type": "sleep", "duration": 1}, {"operation-type": "search"}],
            }
        },
        {"operation": "refresh"},
        {"operation": "range"},
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "schedule": schedule}), encoding="utf-8")
    plan, track = plan_run(options(challenges=(str(path),)))
    assert [operation.name for operation in operations_used(plan, track)] == ["mine", "both", "range"]


def test_a_metric_that_no_task_has_is_refused(tmp_path: Path):
    def planned(metrics: str, **task: Any) -> Plan:
        path = tmp_path / "mine.json"
        schedule = [{"operation": "refresh"}, {"operation": "term", **task}]
        path.write_text(json.dumps({"name": "mine", "schedule": schedule}))
        return plan_run(options(challenges=(str(path),), metrics=metrics))[0]

    with pytest.raises(UsageError, match="--metric latency: no task reports it; 'term': the task is not thr"):
        planned("took,latency")
    with pytest.raises(
        UsageError, match="--metric throughput: no task reports it; 'term': the task is throt"
    ):
        planned("throughput", **{"target-throughput": 5})
    with pytest.raises(UsageError, match=r"profile_query: no task reports it; 'term': no search is prof"):
        planned("profile_query")
    assert planned("latency", **{"target-throughput": 5}).metrics == "latency"


def write_challenge(path: Path, name: str) -> str:
    path.write_text(json.dumps({"name": name, "schedule": [{"operation": "range"}]}), encoding="utf-8")
    return str(path)


def test_two_challenges_cannot_share_a_name(tmp_path: Path):
    first, second = (write_challenge(tmp_path / file, "mine") for file in ("a.json", "b.json"))
    plan, _ = plan_run(options(challenges=(first, first)))
    assert [one.name for one in plan.schedules] == ["mine", "mine"]
    with pytest.raises(UsageError, match=r"also the name of .*a\.json"):
        plan_run(options(challenges=(first, second)))
    with pytest.raises(UsageError, match="comes with benchctl"):
        plan_run(options(challenges=(write_challenge(tmp_path / "c.json", "range-only"),)))


def test_a_plan_finds_its_track_again_with_the_parameters_it_had(tmp_path: Path):
    operation = '{"name": "range", "body": {"size": {{ hits }}}}'
    index = '{"name": "i", "body": "index.json"}'
    text = f'{{"operations": [{operation}], "indices": [{index}]}}'
    (tmp_path / "track.json").write_text(text, encoding="utf-8")
    (tmp_path / "index.json").write_text('{"settings": {}, "mappings": {}}', encoding="utf-8")
    wanted = options(
        challenges=("range-only-short",),
        track=str(tmp_path),
        params={"hits": 7, "range-only-short.iterations": 2},
    )
    plan, track = plan_run(wanted)
    assert reload_track(plan) == track
    assert reload_track(plan).operations["range"].body == {"size": 7}


def test_filters_choose_among_measured_tasks_and_stay_with_the_plan():
    plan, _ = plan_run(
        options(
            warmup_challenges=("warmup",),
            challenges=("big5rangedebug",),
            include_tasks="range, desc_sort_timestamp",
            exclude_tasks="desc_sort_timestamp",
        )
    )
    assert [task.label for task in plan.schedules[0].schedule] == ["range"]
    assert len(plan.warmup_challenges[0].schedule) > 1
    with pytest.raises(UsageError, match="matches the filter 'rnge'") as caught:
        plan_run(options(include_tasks="rnge"))
    assert "did you mean 'range'" in caught.value.hint


HOUSE = {
    "track.json": """{
  "indices": [{"name": "a"}, {"name": "b"}],
  "corpora": [{"name": "c", "documents": [
    {"source-file": "a.json", "document-count": 30, "target-index": "a"},
    {"source-file": "b.json", "document-count": 20, "target-index": "b"}
  ]}],
  "operations": [
    {"name": "send", "operation-type": "bulk", "bulk-size": 10, "indices": "a"},
    {"name": "ask", "operation-type": "search", "index": "a,b", "body": {}}
  ],
  "challenges": [
    {"name": "fill", "default": true,
     "schedule": [{"operation": "create-index"}, {"operation": "send"}, {"operation": "ask"}]},
    {"name": "ask", "schedule": [{"operation": "ask"}]}
  ]
}
"""
}


def test_a_track_of_several_indices_is_planned_by_what_its_challenges_do(tmp_path: Path):
    write_files(tmp_path, HOUSE)
    filling, _ = plan_run(options(track=str(tmp_path), challenges=()))
    asking, _ = plan_run(options(track=str(tmp_path), challenges=("ask",)))
    share, _ = plan_run(options(track=str(tmp_path), challenges=("ask",), files=FileOptions(docs=10)))
    assert [(plan.origin, plan.corpus.documents) for plan in (filling, asking, share)] == [
        ("empty", 30),
        ("prepared", 50),
        ("prepared", 10),
    ]
    with pytest.raises(UsageError, match="--index-builds: nothing is prepared, since challenge 'fill'"):
        plan_run(options(track=str(tmp_path), challenges=(), index_builds=2))
    with pytest.raises(UsageError, match="--page-cache: nothing is prepared, since challenge 'fill'"):
        plan_run(options(track=str(tmp_path), challenges=(), page_cache="warm"))


def test_pollution_before_a_file_of_ones_own_does_not_go_by_the_tracks_documents(tmp_path: Path):
    many = HOUSE["track.json"].replace('"document-count": 30', '"document-count": 300000000')
    own = write_files(tmp_path, {"track.json": many, "own.json": '{"index":{"_index":"a"}}\n{"n":1}\n'})
    asked = options(track=str(own), challenges=("ask",), warmup_challenges=(POLLUTED,))
    of_track, of_file = (
        plan_run(msgspec.structs.replace(asked, files=files))[0].warmup_challenges[0].schedule[0].iterations
        or 0
        for files in (FileOptions(), FileOptions(local=own / "own.json"))
    )
    assert of_track < of_file


def test_clusters_that_are_full_already_are_asked_whatever_their_documents_came_from(tmp_path: Path):
    without = HOUSE["track.json"].replace('"corpora"', '"#corpora"')
    write_files(tmp_path, {"track.json": without})
    running = options(track=str(tmp_path), challenges=("ask",), variants=(RUNNING,))
    assert plan_run(running)[0].corpus == CORPUS
    with pytest.raises(UsageError, match="has 2 indices and names no corpora"):
        plan_run(options(track=str(tmp_path), challenges=("ask",)))


def test_the_shipped_track_is_prepared_as_ever():
    plan, _ = plan_run(options())
    assert (plan.origin, plan.corpus) == ("prepared", CORPUS)


def counts(plan: Plan, schedule: int = 0) -> dict[str, tuple[int | None, int | None]]:
    return {
        task.label: (task.warmup_iterations, task.iterations) for task in plan.schedules[schedule].schedule
    }


def test_challenges_that_only_count_settle_the_jit_on_a_small_corpus():
    plan, track = plan_run(options(settle=True))
    assert plan.settled
    assert plan.corpus.documents == SETTLING_DOCUMENTS
    assert counts(plan) == {
        "desc_sort_timestamp": (450, 120),
        "composite-date_histogram-daily": (400, 120),
        "range": (4000, 120),
    }
    # The second challenge is `range` alone, which takes longer; both get the same.
    assert counts(plan, 1) == {"range": (4000, 120)}
    assert settling_text(plan) == (
        "100k documents; unmeasured requests first, to warm the JIT up (desc_sort_timestamp 450, "
        "composite-date_histogram-daily 400, range 4000), and 2s measured; "
        "as in the JSON: --warmup as-written"
    )
    # What is asked is the same, however long it takes to settle.
    assert "settles-after" in track.operations["range"].meta
    assert not track.operations["range"].meaning.meta


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"challenges": ("big5rangedebug",)}, (2500, 120)),
        ({"challenges": ("range-only-short",)}, (4000, 120)),
        ({"challenges": ("range-only-short",), "warmup_challenges": ("warmup",)}, (2500, 120)),
        ({"challenges": ("big5rangedebug",), "restart": "task"}, (4000, 120)),
        ({"challenges": ("big5rangedebug",), "sweep": ("history=fresh,scheduled",)}, (4000, 120)),
    ],
)
def test_a_task_that_nothing_ran_before_warms_up_for_longer(
    changes: dict[str, Any], expected: tuple[int, int]
):
    plan, _ = plan_run(options(settle=True, **changes))
    assert counts(plan)["range"] == expected


BOTH = (ES, msgspec.structs.replace(ES, name="again"))
CLUSTERS = tuple(
    msgspec.structs.replace(RUNNING, name=name, target=TargetSpec((f"http://{name}:9200",))) for name in "ab"
)

PORTLESS = tuple(
    msgspec.structs.replace(RUNNING, name=name, target=TargetSpec((f"https://{name}",))) for name in "ab"
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"variants": (ES,), "one_by_one": True}, ""),
        ({"one_by_one": True}, "--one-by-one"),
        ({"challenges": ("indexing",)}, "every fork makes its own data"),
        ({"page_cache": "cold"}, "a cold page cache is that of all nodes"),
        ({"workers": 2}, "the load comes from several processes"),
        ({"heap_mb": 2**40 // 2**20}, "nodes need 2048."),
        ({"variants": CLUSTERS}, ""),
        ({"variants": PORTLESS}, ""),
        ({"variants": (CLUSTERS[0], ES)}, "clusters share a host"),
        ({"variants": (RUNNING, msgspec.structs.replace(RUNNING, name="again"))}, "clusters share a host"),
    ],
)
def test_variants_take_turns_unless_something_is_in_the_way(changes: dict[str, Any], why: str):
    plan, _ = plan_run(options(**{"variants": BOTH, "settle": True, **changes}))
    assert plan.apart.startswith(why)
    assert bool(plan.apart) == bool(why)
    measured_s = {task.least_time for schedule in plan.schedules for task in schedule.schedule}
    assert measured_s in ({None}, {2.0 if plan.together else 10.0})


def test_nodes_of_one_point_take_turns_however_many_points_there_are(monkeypatch: pytest.MonkeyPatch):
    asked = {"variants": BOTH, "sweep": ("heap=1g,2g,3g",)}
    plan, _ = plan_run(options(**asked))
    assert plan.apart == ""
    memory = SimpleNamespace(total=10 * 2**30, available=2**38)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    assert plan_run(options(**asked))[0].apart.startswith("nodes need 6")
    # What is free at the moment makes no other plan.
    memory.total, memory.available = 11 * 2**30, 2**20
    assert plan_run(options(**asked))[0].apart == ""


@pytest.mark.parametrize("challenges", [("indexing",), ("range-only-short", "indexing")])
@pytest.mark.parametrize("other", ["scheduled", "polluted"])
def test_challenges_that_fill_their_indices_have_no_histories(challenges: tuple[str, ...], other: str):
    with pytest.raises(UsageError, match="--sweep history: challenge 'indexing' makes or changes its data"):
        plan_run(options(challenges=challenges, sweep=(f"history=fresh,{other}",)))


def test_operations_that_say_nothing_get_the_general_number():
    challenge = Challenge("c", (Task("term", iterations=700), Task("range", clients=8, iterations=10)))
    _, track = plan_run(options())
    found = [(task.warmup_iterations, task.iterations) for task in settled(challenge, track).schedule]
    # Iterations are those of each client; what settles is the node.
    assert found == [(200, 700), (313, 15)]


@pytest.mark.parametrize(
    "changes",
    [
        {"settle": False},
        {"params": {"iterations": 300}},
        {"params": {"warmup_iterations": 0}},
        {"params": {"big5rangedebug.iterations": 300}},
        {"params": {"target_throughput": 2}},
        {"challenges": ("range-only",)},
        {"challenges": ("big5",)},
        {"challenges": ("test",)},
        {"variants": (RUNNING,)},
        {"corpus": msgspec.structs.replace(CORPUS, documents=1_740_763_348)},
    ],
)
def test_what_says_more_is_left_as_it_is(changes: dict[str, Any]):
    wanted = {"settle": True, "challenges": ("big5rangedebug",), **changes}
    assert plan_run(options(**wanted)) == plan_run(options(**{**wanted, "settle": False}))


def test_a_file_of_ones_own_and_a_number_of_documents_are_kept(tmp_path: Path):
    path = tmp_path / "own.json"
    path.write_text('{"name": "own", "schedule": [{"operation": "range", "iterations": 3}]}')
    own, _ = plan_run(options(challenges=(str(path),), settle=True))
    assert counts(own) == {"range": (None, 3)}
    assert not own.settled
    sized, _ = plan_run(options(settle=True, files=FileOptions(docs=CORPUS.documents)))
    assert sized.settled
    assert sized.corpus.documents == CORPUS.documents


def test_one_challenge_with_counts_leaves_the_others_to_settle():
    plan, _ = plan_run(options(settle=True, params={"range-only-short.iterations": 7}))
    assert counts(plan)["range"] == (4000, 120)
    assert counts(plan, 1) == {"range": (None, 7)}


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    write_certificates(tmp_path)
    path = tmp_path / "hosts.yml"
    path.write_text(
        "scheduler: tls://127.0.0.1:8786\n"
        "tls: {ca: ca.pem, certificate: me.pem, key: me.key}\n"
        "address: 127.0.0.1\n"
        "load: [here, one]\n"
        "local: here\n"
    )
    return path


def test_more_is_measured_with_load_from_the_same_hosts(hosts: Path):
    plan, _ = plan_run(options(hosts=str(hosts)))
    assert plan.load_hosts == checked_hosts(plan).load == ("here", "one")
    assert msgspec.convert(msgspec.to_builtins(plan), Plan) == plan
    hosts.write_text(hosts.read_text().replace("one]", "two]"))
    with pytest.raises(UsageError, match=r"the load came from here, one, and by .* from here, two"):
        checked_hosts(plan)
