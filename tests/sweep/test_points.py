"""Sweeps: from what was asked to variants and challenges at every point, and the order of these."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asked import asked
from benchctl.errors import UsageError
from benchctl.results.plan import Axis, Plan, Swept, TargetSpec, boot_of, boots
from benchctl.run.documents import FileOptions
from benchctl.run.plan import plan_run, reload_track
from benchctl.stats.metrics import ran_before
from benchctl.sweep.points import Sweep
from builders import ES, OS
from foreign_tracks import write_files
from golden import Cases


def planned(*sweep: str, **changes: Any) -> Plan:
    return plan_run(asked(**{"challenges": ("range-only-short",), "sweep": sweep, **changes}))[0]


def test_a_parameter_is_swept_over_challenges_of_one_fork():
    plan = planned("clients=8,1,2")
    assert [(one.name, one.schedule[0].clients) for one in plan.schedules] == [
        ("range-only-short@clients=1", 1),
        ("range-only-short@clients=2", 2),
        ("range-only-short@clients=8", 8),
    ]
    assert plan.variants == (ES, OS)
    assert plan.swept is not None
    assert plan.swept.axes == (Axis("clients", ("1", "2", "8"), (1, 2, 8)),)
    assert plan.swept.schedules[2] == Swept("range-only-short", {"clients": "8"})
    assert plan.challenges == ("range-only-short",)


def test_options_of_variants_are_swept_over_variants_with_the_rest_as_it_was():
    own = msgspec.structs.replace(ES, name="own", jvm_flags=("-Xint",))
    plan = planned("jvm=,-XX:+UseSerialGC", variants=(own,))
    assert [(one.name, one.jvm_flags) for one in plan.variants] == [
        ("own.none", ("-Xint",)),
        ("own.xx-useserialgc", ("-Xint", "-XX:+UseSerialGC")),
    ]
    assert plan.families == ("own",)
    assert plan.swept is not None
    assert plan.swept.variants["own.none"].at == {"jvm": ""}
    (settings,) = planned("setting:index.refresh_interval=30s,1s").swept.axes
    assert settings.numbers == (1, 30)


def test_documents_are_swept_and_every_variant_knows_its_own():
    plan = planned("docs=1k,2k")
    assert plan.corpus.documents == 2000
    assert [(one.name, plan.of(one).corpus.documents) for one in plan.variants] == [
        ("es.1k", 1000),
        ("es.2k", 2000),
        ("os.1k", 1000),
        ("os.2k", 2000),
    ]
    assert plan.of(plan.variants[1]) is plan
    assert plan.compared_together(one.name for one in plan.variants) == [
        ["es.1k", "os.1k"],
        ["es.2k", "os.2k"],
    ]


def test_of_a_single_variant_the_first_point_is_the_baseline():
    plan = planned("heap=512m,1g", variants=(OS,))
    assert plan.compared_together(["os.512m", "os.1g"]) == [["os.512m", "os.1g"]]
    assert planned("clients=1,2").compared_together(["es", "os"]) == [["es", "os"]]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ("1s,500ms,2m", (0.5, 1, 120)),
        ("1g,512m", (512, 1024)),
        ("5%,10%", (0.05, 0.1)),
        ("-1,1s", ()),
        ("0,1", ()),
        ("on,off", ()),
    ],
)
def test_values_are_put_in_order_where_they_are_numbers_of_one_kind(values: str, numbers: tuple[float, ...]):
    (axis,) = Sweep.of([f"setting:some.thing={values}"]).axes
    assert axis.numbers == numbers
    assert set(axis.values) == set(values.split(","))
    assert numbers or list(axis.values) == values.split(",")


def test_versions_of_java_and_engines_are_names():
    for text in ("jdk=21,17", "version=8.19.0,8.11.0"):
        assert Sweep.of([text]).axes[0].numbers == ()


def test_a_json_list_has_values_with_commas():
    (axis,) = Sweep.of(['some=["a,b", 3]']).axes
    assert axis.values == ("a,b", "3")
    (flags,) = Sweep.of(['jvm=["-Xlog:gc,safepoint", "-Xint"]']).axes
    assert flags.values == ("-Xlog:gc,safepoint", "-Xint")


def test_a_sweep_that_makes_no_sense_is_refused(cases: Cases):
    cases("sweep", lambda sweep: planned(*json.loads(sweep)))


@pytest.mark.parametrize(
    ("sweep", "changes", "message"),
    [
        (("clients=1,2",), {"params": {"range-only-short.clients": 3}}, "at clients=1 and at clients=2"),
        (
            ("heap=,1g",),
            {"variants": (msgspec.structs.replace(ES, heap_mb=1024),)},
            "at heap= and at heap=1g",
        ),
    ],
)
def test_points_that_are_the_same_are_not_measured_as_if_they_differed(
    sweep: tuple[str, ...], changes: dict[str, Any], message: str
):
    with pytest.raises(UsageError, match=re.escape(message)):
        planned(*sweep, **changes)


def test_counts_that_are_swept_are_not_raised_to_warm_up():
    plan = planned("iterations=10,20", settle=True)
    assert [one.schedule[0].iterations for one in plan.schedules] == [10, 20]
    assert not plan.settled


def test_a_point_never_has_the_name_of_another_variant():
    plan = planned("heap=1g,2g", variants=(ES, msgspec.structs.replace(ES, name="es.1g")))
    assert [one.name for one in plan.variants] == ["es.1g.2", "es.2g", "es.1g.1g", "es.1g.2g"]


def test_a_mistake_in_a_sweep_is_told_of_the_sweep_and_not_of_the_file(cases: Cases):
    cases("values", planned)


def test_what_is_given_elsewhere_is_not_swept_as_well():
    with pytest.raises(UsageError, match="--param and --sweep both set clients"):
        planned("clients=1,2", params={"clients": 3})
    with pytest.raises(UsageError, match="--sweep docs and --docs"):
        planned("docs=1k,2k", files=FileOptions(docs=5))
    assert planned("docs=1k,2k", files=FileOptions(docs=5, at_most=True)).corpus.documents == 2000


def test_a_running_cluster_stays_as_it_is():
    live = msgspec.structs.replace(OS, name="live", target=TargetSpec(("http://search-1:9200",)))
    with pytest.raises(UsageError, match="'live' is a running cluster"):
        planned("heap=1g,2g", variants=(live,))
    assert len(planned("clients=1,2", variants=(live,)).schedules) == 2


TRACK = """{
  "indices": [{"name": "logs", "body": "index.json"}],
  "operations": [
    {"name": "find", "operation-type": "search",
     "body": {"size": {{ size | default(1) }}, "query": {"match_all": {}}}},
    {"name": "same", "operation-type": "search", "body": {"query": {"match_all": {}}}}
  ],
  "challenges": [{"name": "ask", "default": true, "schedule": [
    {"operation": "find", "iterations": 5}, {"operation": "same", "iterations": 5}]}]
}"""
INDEX = '{"settings": {"number_of_shards": {{ shards | default(1) }} } }'


def test_operations_that_a_parameter_changes_get_a_name_of_their_own(tmp_path: Path):
    folder = write_files(tmp_path, {"track.json": TRACK, "index.json": INDEX})
    plan = planned("size=1,7", track=str(folder), challenges=())
    assert [one.name for one in plan.schedules] == ["ask@size=1", "ask@size=7"]
    found = reload_track(plan).operations
    asked = [found[one.schedule[0].operation] for one in plan.schedules]
    assert [msgspec.to_builtins(one)["body"]["size"] for one in asked] == [1, 7]
    assert {one.schedule[0].label for one in plan.schedules} == {"find"}
    assert {one.schedule[1].operation for one in plan.schedules} == {"same"}


def test_a_parameter_of_the_index_itself_is_refused(tmp_path: Path):
    folder = write_files(tmp_path, {"track.json": TRACK, "index.json": INDEX})
    with pytest.raises(UsageError, match="changes the track's indices"):
        planned("param:shards=1,2", track=str(folder), challenges=())


def test_a_parameter_that_the_challenge_does_not_use_is_named_with_the_nearest(tmp_path: Path):
    folder = write_files(tmp_path, {"track.json": TRACK, "index.json": INDEX})
    other = '{"name": "other", "schedule": [{"operation": "same", "iterations": {{ sizes | default(3) }}}]}'
    own = write_files(tmp_path, {"other.json": other}) / "other.json"
    for name, near in (("param:size", "'sizes'"), ("size", "'sizes'"), ("param:siezs", "'sizes'")):
        with pytest.raises(UsageError, match=f"challenge other.* '{name.removeprefix('param:')}'") as caught:
            planned(f"{name}=1,7", track=str(folder), challenges=(str(own),))
        assert near in caught.value.hint
    with pytest.raises(UsageError, match="is the same at"):
        planned("sizes=1,7", track=str(folder), challenges=(str(own),), params={"other.sizes": 4})


@given(st.integers(0, 50), st.sampled_from(["never", "challenge", "task"]))
def test_points_come_in_random_order_and_each_just_once(block: int, restart: str):
    plan = planned("clients=1,2,4", challenges=("range-only-short", "range-only"), restart=restart)
    order = [step[0][0] for boot in boots(plan, block) for step in boot]
    assert sorted(order) == list(range(6))
    assert plan.swept is not None
    # Challenges keep their order within a point.
    names = [plan.swept.schedules[schedule] for schedule in order]
    assert [one.of for one in names] == ["range-only-short", "range-only"] * 3
    assert all(one.at == other.at for one, other in zip(names[::2], names[1::2], strict=True))


def test_orders_differ_from_block_to_block_and_are_the_same_again():
    plan = planned("clients=1,2,4,8")
    orders = [boots(plan, block) for block in range(8)]
    assert len(set(orders)) > 1
    assert orders == [boots(plan, block) for block in range(8)]


def test_a_history_decides_what_shares_a_node():
    plan = planned("history=fresh,scheduled", challenges=("big5rangedebug",))
    assert [(one.name, plan.history(place)) for place, one in enumerate(plan.schedules)] == [
        ("big5rangedebug@history=fresh", "fresh"),
        ("big5rangedebug@history=scheduled", "scheduled"),
    ]
    assert plan.schedules[0].schedule == plan.schedules[1].schedule
    for block in range(6):
        starts = boots(plan, block)
        assert sorted(starts) == [(((0, 0),),), (((0, 1),),), (((0, 2),),), (((1, 0),), ((1, 1),), ((1, 2),))]
    assert len({boots(plan, block)[0][0][0] for block in range(6)}) > 1
    assert ran_before(plan, (0, 2)) == ()
    assert ran_before(plan, (1, 2)) == ("desc_sort_timestamp", "composite-date_histogram-daily")


CLEAR = {
    "name": "clear",
    "operation-type": "raw-request",
    "method": "POST",
    "path": "/_cache/clear",
    "include-in-reporting": False,
}
INLINE: dict[str, Any] = {
    "name": "own",
    "schedule": [
        {"operation": "desc_sort_timestamp"},
        {"operation": CLEAR},
        {"operation": {"name": "mine", "operation-type": "search", "body": {"size": "SIZE"}}},
        {"operation": {"name": "at-last", "operation-type": "refresh"}},
    ],
}


def inline(folder: Path) -> str:
    path = folder / "own.json"
    path.write_text(json.dumps(INLINE).replace('"SIZE"', "{{ size | default(1) }}"), encoding="utf-8")
    return str(path)


def test_what_prepares_a_task_runs_on_its_node(tmp_path: Path):
    plan = planned("history=fresh,scheduled", challenges=(inline(tmp_path),))
    assert plan.swept is not None
    assert sorted(plan.swept.preparing) == ["at-last", "clear"]
    apart = [tuple(place for (place,) in steps) for steps in boots(plan)]
    assert sorted(apart) == [((0, 0),), ((0, 1), (0, 2), (0, 3)), ((1, 0), (1, 1), (1, 2), (1, 3))]
    assert boot_of(plan, 0, (0, 3)) == boot_of(plan, 0, (0, 1))
    assert boot_of(plan, 0, (0, 0)) != boot_of(plan, 0, (0, 2))


def test_operations_of_a_challenge_stay_one_operation_in_all_histories(tmp_path: Path):
    plan = planned("history=fresh,scheduled", challenges=(inline(tmp_path),))
    assert {one.schedule[2].operation for one in plan.schedules} == {"mine"}
    assert "mine" in reload_track(plan).operations
    sized = planned("size=1,7", challenges=(inline(tmp_path),))
    # Its default is the operation itself.
    assert [one.schedule[2].operation for one in sized.schedules] == ["mine", "mine@size=7"]


def test_a_challenge_that_changes_its_data_has_no_histories(tmp_path: Path):
    path = tmp_path / "append.json"
    bulk = {"operation-type": "bulk", "bulk-size": 10, "ingest-percentage": 1}
    path.write_text(
        json.dumps(INLINE | {"name": "append", "schedule": [*INLINE["schedule"], {"operation": bulk}]}),
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match="--sweep history: challenge 'append' makes or changes its data"):
        planned("history=fresh,polluted", challenges=(str(path),))


@pytest.mark.parametrize(
    "changes",
    [
        {"restart": "task"},
        {"restart": "never"},
        {"warmup_challenges": ("warmup",)},
        {"variants": (msgspec.structs.replace(OS, target=TargetSpec(("http://search-1:9200",))),)},
    ],
)
def test_nothing_else_decides_what_a_node_of_a_history_ran_before(changes: dict[str, Any]):
    with pytest.raises(UsageError, match="--sweep history"):
        planned("history=fresh,scheduled", **changes)


def test_nothing_runs_before_the_only_task_of_a_schedule():
    with pytest.raises(UsageError, match="--sweep history: nothing runs before a single task"):
        planned("history=fresh,polluted,scheduled")
    assert planned("history=fresh,polluted").swept is not None
    assert planned("history=polluted,scheduled").swept is not None


def test_counts_are_shared_among_clients_where_they_are_raised():
    plan = planned("clients=1,4", settle=True)
    assert plan.settled
    first, second = (one.schedule[0] for one in plan.schedules)
    assert first.warmup_iterations == 4 * (second.warmup_iterations or 0)
