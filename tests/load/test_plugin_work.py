"""Parameter sources and runners of plug-ins: what they make is asked over the measured wire."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.load import task_clients, workload
from benchctl.load.executor import WorkerPool, run_step
from benchctl.load.plugin_runner import OwnOperations
from benchctl.load.request import Answer, Exchange
from benchctl.load.task_clients import Job, Stage, TaskResult
from benchctl.load.transport import open_client
from benchctl.load.work.openers import open_workload
from benchctl.load.workload import WorkContext, WorkOrder
from benchctl.plugin.session import PluginError, PluginUse
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.track.document import Document
from benchctl.track.load import load_track
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.schedule import read_operation
from load.stub_server import Received, Reply, Serve, StubServer
from plugins import code_in
from waiting import eventually

BULK_OK = b'{"took":1,"errors":false,"items":[{"index":{"status":201}}]}'
ENGINES = pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])

Play = Callable[..., TaskResult]


def operation_of(**raw: Any) -> PluginOperation:
    """An operation as a track's reader makes it of a plug-in's."""
    keys = {name.replace("_", "-"): value for name, value in raw.items()}
    made = read_operation({"name": "x", **keys}, Document("track.json", lenient=True), "$")
    assert isinstance(made, PluginOperation)
    return made


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run an operation of a plug-in against a stub server."""
    sessions = iter(range(1, 100))

    def run(
        server: StubServer,
        plugin: str,
        raw: dict[str, Any],
        *,
        engine: Any = "elasticsearch",
        stop: threading.Event | None = None,
        spool: SampleSpool | None = None,
        workers: WorkerPool | None = None,
        documents: bytes = b"",
        version: str = "",
        **task: Any,
    ) -> TaskResult:
        folder = tmp_path / "books"
        code = code_in(folder, {"track.py": plugin})
        track, _ = load_track(str(folder), {})
        use = PluginUse(folder, code.digest, track, track.challenges["ask"], next(sessions))
        context = WorkContext(
            "books",
            seed=3,
            engine=engine,
            plugin=use,
            version=version,
            documents=(lambda: iter([documents])) if documents else None,
            document_count=documents.count(b"\n"),
        )
        stage = Stage(partial(open_client, server.url), context, origin_ns=0, boot=0, spool=spool)
        job = Job(Task("x", **task), operation_of(**raw), 0, 0)
        return run_step([job], stage, stop=stop or threading.Event(), workers=workers)[0]

    return run


def asked(server: StubServer) -> list[Received]:
    """What was asked after the greetings."""
    return [one for one in server.received if "local=true" not in one.target]


def bodies(server: StubServer) -> list[Any]:
    return [msgspec.json.decode(one.body) for one in asked(server)]


def source(text: str, made_by: str = "s") -> str:
    """A plug-in that registers a parameter source of that name."""
    register = f'def register(registry):\n    registry.register_param_source("s", {made_by})\n'
    return f"{dedent(text)}\n{register}"


SEARCH = {"operation_type": "search", "param_source": "s"}
BULK = {"operation_type": "bulk", "param_source": "s"}
RUN = {"operation_type": "r"}

FUNCTION = source("""
    def s(track, params, **kwargs):
        names = [index.name for index in track.indices]
        return {"body": {"size": params["size"], "names": names}, "index": None, "type": "", "cache": "true",
                "use_request_cache": False, "request-params": {"a": True}, "request-timeout": 9}
""")


def test_a_function_gives_the_parameters_of_every_request(serve: Serve, play: Play):
    server = serve()
    result = play(server, FUNCTION, {**SEARCH, "size": 7}, iterations=3)
    assert result.columns["outcome"].tolist() == [Outcome.OK] * 3
    assert {one.target for one in asked(server)} == {"/books/_search?a=true&request_cache=true"}
    assert bodies(server) == [{"size": 7, "names": ["books"]}] * 3


COUNTING = source(
    """
    class Source:
        def __init__(self, track, params, **kwargs):
            self.client, self.count = None, 0
            self.name = kwargs["task_name"]

        def partition(self, partition_index, total_partitions):
            mine = Source(None, {}, task_name=self.name)
            mine.client = f"{partition_index} of {total_partitions}"
            return mine

        def params(self):
            self.count += 1
            return {"body": {"n": self.count, "client": self.client, "task": self.name}}
""",
    "Source",
)


def test_clients_of_several_processes_have_their_parts_too(serve: Serve, play: Play, tmp_path: Path):
    server = serve()
    with WorkerPool(2) as workers, SampleSpool(tmp_path / "spool") as spool:
        result = play(server, COUNTING, SEARCH, iterations=2, clients=2, spool=spool, workers=workers)
    assert result.processes == 2
    found = sorted((body["client"], body["n"], body["task"]) for body in bodies(server))
    assert found == [(f"{client} of 2", number, "x") for client in (0, 1) for number in (1, 2)]


FINITE = source(
    """
    class Source:
        def __init__(self, track, params, **kwargs):
            self.left, self.infinite = 5, False

        def partition(self, partition_index, total_partitions):
            return self

        def params(self):
            if not self.left:
                raise StopIteration
            self.left -= 1
            return {"body": {"left": self.left}}
""",
    "Source",
)


def sized(base: str) -> Any:
    """A source that ends by `size()` alone, four parameters a client."""
    return source(
        f"""
    from esrally.track import params as rally

    class Source{base}:
        def __init__(self, track, params, **kwargs):
            pass

        def partition(self, partition_index, total_partitions):
            return self

        def size(self):
            return 4

        def params(self):
            return {{"body": {{}}}}
""",
        "Source",
    )


@pytest.mark.parametrize("base", ["", "(rally.ParamSource)"])
@pytest.mark.parametrize(("task", "count"), [({}, 8), ({"iterations": 3}, 6), ({"iterations": 9}, 8)])
def test_the_size_of_a_source_is_that_of_each_client(
    serve: Serve, play: Play, base: str, task: dict[str, Any], count: int
):
    server = serve()
    play(server, sized(base), SEARCH, clients=2, **task)
    assert len(asked(server)) == count


@pytest.mark.parametrize(("task", "count"), [({}, 5), ({"iterations": 3}, 3), ({"iterations": 9}, 5)])
def test_a_source_that_ends_ends_its_task(serve: Serve, play: Play, task: dict[str, Any], count: int):
    server = serve()
    play(server, FINITE, SEARCH, **task)
    assert len(asked(server)) == count


def test_clients_that_share_a_source_take_turns(serve: Serve, play: Play):
    server = serve()
    play(server, FINITE, SEARCH, clients=3)
    assert sorted(body["left"] for body in bodies(server)) == [0, 1, 2, 3, 4]


def test_a_generator_that_clients_share_is_asked_by_one_at_a_time(serve: Serve, play: Play):
    plugin = source(
        """
        import time

        def numbers():
            for number in range(12):
                time.sleep(0.002)
                yield number

        class Source:
            def __init__(self, track, params, **kwargs):
                self.numbers, self.infinite = numbers(), False

            def partition(self, partition_index, total_partitions):
                return self

            def params(self):
                return {"body": {"n": next(self.numbers)}}
    """,
        "Source",
    )
    server = serve()
    play(server, plugin, SEARCH, clients=4)
    assert sorted(body["n"] for body in bodies(server)) == list(range(12))


def test_a_source_that_changes_the_dictionary_it_gave_before_makes_another_request(serve: Serve, play: Play):
    plugin = source("""
        kept = {"body": {"n": 0}}

        def s(track, params, **kwargs):
            kept["body"]["n"] += 1
            return kept
    """)
    server = serve()
    play(server, plugin, SEARCH, iterations=3)
    assert bodies(server) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_numbers_of_numpy_are_numbers(serve: Serve, play: Play):
    plugin = source("""
        import numpy as np

        def s(track, params, **kwargs):
            return {"body": {"n": np.int64(3), "v": np.arange(2.0)}}
    """)
    server = serve()
    play(server, plugin, SEARCH, iterations=1)
    assert bodies(server) == [{"n": 3, "v": [0.0, 1.0]}]


def test_what_a_plug_in_draws_is_the_same_in_every_fork(serve: Serve, play: Play):
    plugin = source("""
        import random
        import numpy as np

        def s(track, params, **kwargs):
            return {"body": {"n": random.random(), "m": np.random.rand()}}
    """)
    server = serve()
    play(server, plugin, SEARCH, iterations=3)
    play(server, plugin, SEARCH, iterations=3, name="y")
    play(server, plugin, SEARCH, iterations=3)
    found = bodies(server)
    assert found[:3] == found[6:]
    assert found[:3] != found[3:6]


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ('\'{"index":{}}\\n{"a":1}\\n\'', b'{"index":{}}\n{"a":1}\n'),
        ('b\'{"index":{}}\\n{"a":1}\'', b'{"index":{}}\n{"a":1}\n'),
        ("['{\"index\":{}}\\n', b'{\"a\":1}\\n']", b'{"index":{}}\n{"a":1}\n'),
        ("[{'index': {}}, {'a': 1}]", b'{"index":{}}\n{"a":1}\n'),
    ],
)
def test_a_bulk_body_of_any_form_goes_out_as_lines(serve: Serve, play: Play, body: str, sent: bytes):
    plugin = source(f"""
        def s(track, params, **kwargs):
            return {{"body": {body}, "bulk-size": 4, "unit": "docs", "action-metadata-present": True,
                    "index": "passed over", "pipeline": "p"}}
    """)
    server = serve()
    result = play(server, plugin, BULK, iterations=2)
    assert [(one.method, one.target) for one in asked(server)] == [("POST", "/_bulk?pipeline=p")] * 2
    assert asked(server)[0].body == sent
    assert asked(server)[0].headers["content-type"] == "application/x-ndjson"
    assert result.columns["weight"].tolist() == [4, 4]


def test_a_bulk_body_without_actions_names_its_index_in_the_path(serve: Serve, play: Play):
    plugin = source("""
        def s(track, params, **kwargs):
            return {"body": "{}\\n{}\\n", "action-metadata-present": False, "index": "loans"}
    """)
    server = serve()
    result = play(server, plugin, BULK, iterations=1)
    assert asked(server)[0].target == "/loans/_bulk"
    assert result.columns["weight"].tolist() == [2]


def runner(body: str, register: str = "r") -> str:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return f"""
    import asyncio
    import elasticsearch
    import opensearchpy
    from esrally.driver.runner import Retry, runner_for

    async def r(es, params):
{lines}

    def register(registry):
        registry.register_runner("r", {register}, async_runner=True)
    """


@pytest.mark.parametrize(("version", "searches"), [("9.1.5", 1), ("9.2.0", 2)])
def test_neighbours_that_a_runner_asks_for_are_counted_as_the_node_counts_them(
    serve: Serve, play: Play, version: str, searches: int
):
    plugin = runner('await es.search(index="books", body={"knn": {"field": "v", "query_vector": [1]}})')
    assert play(serve(), plugin, RUN, version=version, iterations=1).searches_sent == searches


@ENGINES
def test_the_requests_of_a_runner_are_one_sample_on_the_wire(serve: Serve, play: Play, engine: str):
    server = serve(default=Reply(delay_s=0.02))
    plugin = runner("""
await asyncio.sleep(0.05)
found = await es.search(index="books", body={"query": {"match_all": {}}}, request_timeout=9)
await es.indices.refresh(index="books")
await es.search(index="books", size=1)
return {"weight": 7, "unit": "docs", "hits": found["hits"]["total"]["value"], "took": found["took"]}
""")
    result = play(server, plugin, RUN, engine=engine, iterations=2)
    assert [(one.method, one.target.partition("?")[0]) for one in asked(server)] == [
        ("POST", "/books/_search"),
        ("POST", "/books/_refresh"),
        ("POST", "/books/_search"),
    ] * 2
    columns = result.columns
    whole = columns["part"] == 0
    assert columns["part"].tolist() == [1, 2, 3, 0] * 2
    assert columns["weight"][whole].tolist() == [7, 7]
    assert columns["hits"][whole].tolist() == [10000, 10000]
    assert columns["took_ms"][whole].tolist() == [3, 3]
    assert result.unit == "docs"
    assert result.searches_sent == 4
    took_s = (columns["end_ns"] - columns["start_ns"])[whole] / 1e9
    # From the first request to the last answer: two slow searches, and not the pause before them.
    assert (took_s >= 0.04).all()
    assert (columns["start_ns"][whole] == columns["start_ns"][columns["part"] == 1]).all()
    assert (columns["end_ns"][whole] == columns["end_ns"][columns["part"] == 3]).all()


@pytest.mark.parametrize(
    ("returned", "weight", "unit"),
    [
        ("None", 1, "ops"),
        ("(5, 'docs')", 5, "docs"),
        ("{'anything': 1}", 1, "ops"),
        ("{'weight': 3.6, 'unit': 'pages'}", 4, "pages"),
        ("{'weight': 2, 'hits': 10 ** 30, 'took': -7}", 2, "ops"),
    ],
)
def test_what_a_runner_returns_is_weight_and_unit(
    serve: Serve, play: Play, returned: str, weight: int, unit: str
):
    result = play(serve(), runner(f"await es.count(index='books')\nreturn {returned}"), RUN, iterations=1)
    assert result.columns["weight"].tolist() == [1, weight]
    assert result.columns["outcome"].tolist() == [Outcome.OK, Outcome.OK]
    assert result.unit == unit


@ENGINES
def test_a_refusal_that_a_runner_does_not_handle_is_its_outcome(serve: Serve, play: Play, engine: str):
    refused = Reply(status=400, body=b'{"error":{"type":"parsing_exception","reason":"no such thing"}}')
    plugin = runner("await es.search(index='books', body={'a': 1})")
    result = play(serve(default=refused), plugin, RUN, engine=engine, iterations=2)
    assert result.columns["outcome"].tolist() == [Outcome.HTTP_ERROR] * 4
    assert result.columns["status"].tolist() == [400] * 4
    (failure,) = result.failures
    assert (failure.count, failure.outcome) == (2, Outcome.HTTP_ERROR)
    assert "no such thing" in failure.details[0]


@ENGINES
def test_a_refusal_that_a_runner_handles_is_none(serve: Serve, play: Play, engine: str):
    missing = Reply(status=404, body=b'{"error":"none"}')
    plugin = runner("""
try:
    await es.search(index='books')
except (elasticsearch.NotFoundError, opensearchpy.NotFoundError):
    await es.count(index='books')
""")
    result = play(serve(default=missing), plugin, RUN, engine=engine, iterations=1)
    assert result.columns["outcome"].tolist() == [Outcome.HTTP_ERROR, Outcome.OK, Outcome.OK]
    assert result.failures == ()


@ENGINES
@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        ("None", Outcome.PARTIAL),
        ("1, 'ops'", Outcome.PARTIAL),
        ("{'weight': 1}", Outcome.PARTIAL),
        ("{'success': True}", Outcome.OK),
    ],
)
def test_failed_shards_fail_the_operation_unless_its_runner_says_that_it_succeeded(
    serve: Serve, play: Play, engine: str, returned: str, outcome: Outcome
):
    partial = Reply(body=b'{"took":1,"timed_out":false,"_shards":{"total":2,"failed":1},"hits":{"hits":[]}}')
    plugin = runner(f"await es.search(index='books')\nreturn {returned}")
    result = play(serve(default=partial), plugin, RUN, engine=engine, iterations=1)
    assert result.columns["outcome"].tolist() == [Outcome.PARTIAL, outcome]
    assert sum(failure.count for failure in result.failures) == (outcome is not Outcome.OK)


@ENGINES
def test_a_lost_connection_is_the_clients_exception_and_the_wires_outcome(
    serve: Serve, play: Play, engine: str
):
    plugin = runner("""
try:
    await es.search(index='books')
except (elasticsearch.ConnectionError, opensearchpy.ConnectionError):
    await es.search(index='books')
""")
    server = serve(Reply(fault="reset"), Reply(), Reply(fault="reset"), Reply(fault="reset"))
    result = play(server, plugin, RUN, engine=engine, iterations=2)
    assert result.columns["outcome"].tolist() == [
        *(Outcome.RESET, Outcome.OK, Outcome.OK),
        *(Outcome.RESET, Outcome.RESET, Outcome.RESET),
    ]


@ENGINES
def test_a_timeout_of_a_runner_is_counted_as_one(serve: Serve, play: Play, engine: str):
    server = serve(default=Reply(delay_s=1.0))
    plugin = runner("await es.search(index='books', request_timeout=0.05)")
    result = play(server, plugin, RUN, engine=engine, iterations=1)
    assert result.columns["outcome"].tolist() == [Outcome.TIMEOUT] * 2


def test_a_runner_that_says_it_did_not_succeed_has_failed(serve: Serve, play: Play):
    plugin = runner("return {'success': False, 'weight': 3, 'error-description': 'two were lost'}")
    result = play(serve(), plugin, RUN, iterations=1)
    assert result.columns["outcome"].tolist() == [Outcome.BAD_BODY]
    assert "two were lost" in result.failures[0].details[0]


@ENGINES
def test_any_request_can_be_sent_in_the_ways_of_either_client(serve: Serve, play: Play, engine: str):
    plugin = runner("""
await es.perform_request("GET", "/_a", params={"x": 1})
await es.perform_request(method="POST", path="/_b", body={"y": 2}, headers={"x-own": "z"})
await es.transport.perform_request("PUT", "_c", body={"w": 3})
limited = es.options(request_timeout=9)
await limited.indices.refresh(index="books")
await es.perform_request("POST", "/_bulk", headers={"content-type": "application/x-ndjson"},
                         body=[{"index": {}}, {"a": 1}])
""")
    server = serve()
    result = play(server, plugin, RUN, engine=engine, iterations=1)
    found = asked(server)
    assert [(one.method, one.target) for one in found] == [
        ("GET", "/_a?x=1"),
        ("POST", "/_b"),
        ("PUT", "/_c"),
        ("POST", "/books/_refresh"),
        ("POST", "/_bulk"),
    ]
    assert found[1].headers["x-own"] == "z"
    assert {one.headers.get("accept", "application/json") for one in found} == {"application/json"}
    assert found[4].body == b'{"index":{}}\n{"a":1}\n'
    assert result.columns["part"].tolist() == [1, 2, 3, 4, 5, 0]


def test_an_answer_can_be_had_as_it_came(serve: Serve, play: Play):
    plugin = runner("""
es.return_raw_response()
response = await es.perform_request("POST", "/_search", body={})
assert response.read().startswith(b'{"took":3')
response.seek(0)
assert response.body.read(2) == b'{"'
""")
    assert play(serve(), plugin, RUN, iterations=1).failures == ()


def test_requests_that_a_runner_gathers_go_one_after_the_other(serve: Serve, play: Play):
    plugin = runner("await asyncio.gather(*(es.search(index=f'i{n}') for n in range(3)))")
    server = serve()
    result = play(server, plugin, RUN, iterations=1)
    assert [one.target for one in asked(server)] == [f"/i{n}/_search" for n in range(3)]
    assert server.connections == 1
    assert result.columns["part"].tolist() == [1, 2, 3, 0]


CLASS = """
    from esrally.driver.runner import Runner, Retry, runner_for, unwrap

    seen = []

    class Own(Runner):
        multi_cluster = True

        async def __aenter__(self):
            seen.append("in")
            return self

        async def __call__(self, multi_es, params):
            own = unwrap(runner_for("search"))
            found = await own(multi_es["default"], {"index": "books", "body": {"a": params["n"]}})
            assert seen.count("in") == seen.count("out") + 1
            return found

        async def __aexit__(self, *raised):
            seen.append("out")
            return False

        def __repr__(self):
            return "own"

    def register(registry):
        registry.register_runner("r", Retry(Own()), async_runner=True)
"""


def test_a_runner_of_a_class_calls_another_in_its_own_context(serve: Serve, play: Play):
    plugin = CLASS.replace("Retry(Own())", "Own()")
    server = serve()
    result = play(server, plugin, {**RUN, "n": 5}, iterations=2)
    assert bodies(server) == [{"a": 5}] * 2
    columns = result.columns
    assert columns["hits"][columns["part"] == 0].tolist() == [10000, 10000]


def test_a_bulk_runner_can_be_derived_from_the_drivers(serve: Serve, play: Play):
    plugin = """
        from esrally.driver.runner import BulkIndex

        class Raw(BulkIndex):
            def detailed_stats(self, params, response):
                return {**super().detailed_stats(params, response), "more": 1}

        def s(track, params, **kwargs):
            return {"body": ['{"index":{}}', '{}'], "bulk-size": 1, "detailed-results": True, "index": "b",
                    "action-metadata-present": False, "pipeline": "p"}

        def register(registry):
            registry.register_runner("r", Raw(), async_runner=True)
            registry.register_param_source("s", s)
    """
    server = serve()
    result = play(server, plugin, {**RUN, "param_source": "s"}, iterations=1)
    (request,) = asked(server)
    assert (request.target, request.body) == ("/b/_bulk?pipeline=p", b'{"index":{}}\n{}\n')
    assert result.unit == "docs"


def test_a_runner_that_knows_its_end_ends_its_task(serve: Serve, play: Play):
    plugin = """
        class Waiting:
            completed, percent_completed, count = False, 0.0, 0

            async def __call__(self, es, params):
                await es.count(index="books")
                self.count += 1
                self.completed = self.count == 4

        def register(registry):
            registry.register_runner("r", Waiting(), async_runner=True)
    """
    server = serve()
    play(server, plugin, RUN)
    assert len(asked(server)) == 4


def giving(value: str) -> str:
    return source(f"def s(track, params, **kwargs):\n    return {value}\n")


NOT_FINITE = giving("{'body': {'query': {'range': {'n': {'gte': [None, float('nan')]}}}}}")
NO_DICTIONARY, NO_JSON, NO_BODY = giving("[]"), giving("{'body': object()}"), giving("{'body': 3}")
NO_LINES = giving("{'body': {}}")
SILENT = runner("""
class Silent(Exception):
    def __str__(self):
        return 1 / 0
raise Silent
""")


@pytest.mark.parametrize(
    ("plugin", "raw", "said"),
    [
        (runner("return {}['x']"), RUN, "track.py:8: the runner of operation 'x' failed: KeyError: 'x'"),
        (FUNCTION, SEARCH, "track.py:4: param source 's' failed: KeyError: 'size'"),
        (runner("raise SystemExit(0)"), RUN, "the runner of operation 'x' of the plug-in"),
        (runner("raise GeneratorExit"), RUN, "the runner of operation 'x' failed: GeneratorExit"),
        (SILENT, RUN, "failed: Silent: it gives no reason (ZeroDivisionError)"),
        (runner("return float('nan'), 'docs'"), RUN, "the runner of operation 'x' gave weight nan"),
        (runner("return 10 ** 30, 'docs'"), RUN, "the runner of operation 'x' gave weight 1000"),
        (NO_LINES, BULK, "a bulk body of dict: text, bytes or a list of lines is needed"),
        (NO_DICTIONARY, SEARCH, "param source 's' gave list, and not a dictionary"),
        (NO_JSON, SEARCH, "a parameter source gave what is not JSON: an object of type object"),
        (NOT_FINITE, SEARCH, "a parameter source gave what is not JSON: Out of range float values"),
        (NO_BODY, BULK, "a bulk body of int: text, bytes or a list of lines is needed"),
        (FUNCTION, {**SEARCH, "param_source": "t"}, "registers no param source 't'"),
        (FUNCTION, RUN, "registers no runner for 'r'"),
    ],
)
def test_what_goes_wrong_in_a_plug_in_is_one_line(
    serve: Serve, play: Play, plugin: str, raw: dict[str, Any], said: str
):
    with pytest.raises(BenchctlError) as caught:
        play(serve(), plugin, raw, iterations=1)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_a_runner_that_never_ends_is_ended_with_the_run(
    serve: Serve, play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(task_clients, "_OWN_CODE_S", 0.1)
    plugin = runner("""
import time
await es.count(index='books')
while True:
    try:
        time.sleep(0.01)
    except Exception:
        pass
""")
    server, stop = serve(), threading.Event()
    watching = threading.Thread(target=lambda: eventually(lambda: asked(server)) and stop.set())
    watching.start()
    with pytest.raises(KeyboardInterrupt):
        play(server, plugin, RUN, iterations=1, stop=stop)
    watching.join()


def test_what_a_runner_does_to_its_parameters_stays_with_its_client(serve: Serve, play: Play):
    plugin = runner("""
params["body"]["n"] += 1
await es.search(index="books", body=params["body"])
""")
    server = serve()
    play(server, plugin, {**RUN, "body": {"n": 0}}, iterations=2, clients=2)
    assert sorted(body["n"] for body in bodies(server)) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("call", "engine", "said"),
    [
        ("es.nothing()", "elasticsearch", "elasticsearch-py has no 'nothing'"),
        ("es.indices.nothing()", "opensearch", "opensearch-py has no 'indices.nothing'"),
        ("es.cluster.put_settings(persistent={})", "opensearch", "opensearch-py: "),
    ],
)
def test_what_the_client_of_an_engine_does_not_have_is_unsupported_there(
    serve: Serve, play: Play, call: str, engine: str, said: str
):
    result = play(serve(), runner(f"await {call}"), RUN, engine=engine, iterations=3)
    assert result.unsupported is not None
    assert result.unsupported.startswith(said)
    assert result.columns["outcome"].tolist() == [Outcome.HTTP_ERROR]


def test_a_plug_in_can_see_what_a_client_has(serve: Serve, play: Play):
    plugin = runner("assert hasattr(es, 'search') and not hasattr(es, 'nothing')")
    assert play(serve(), plugin, RUN, iterations=1).failures == ()


COMPOSITE = source("""
    def s(track, params, **kwargs):
        one = {"operation-type": "search", "body": {"n": 1}, "cache": "false", "odd": 1, "index": ["a", "b"]}
        two = {"name": "two", "operation-type": "search", "index": "c", "body": {"n": 2}, "id": 3}
        return {"id": "flow", "requests": [{"stream": [one]}, {"stream": [two]}]}
""")


def test_a_source_gives_a_composite_with_its_streams(serve: Serve, play: Play):
    server = serve()
    result = play(server, COMPOSITE, {**SEARCH, "operation_type": "composite"}, iterations=2)
    assert sorted(one.target for one in asked(server)) == [
        *["/a,b/_search?request_cache=false"] * 2,
        *["/c/_search"] * 2,
    ]
    assert (result.columns["part"] == 0).sum() == 2


def test_parameters_that_the_type_cannot_have_are_refused(serve: Serve, play: Play):
    with pytest.raises(PluginError, match="gave what no search operation can have"):
        play(serve(), FUNCTION.replace('"index": None', '"index": 3'), {**SEARCH, "size": 1}, iterations=1)


def test_an_operation_of_a_plug_in_is_not_done_without_consent(serve: Serve):
    stage = Stage(partial(open_client, serve().url), WorkContext("books"), origin_ns=0, boot=0)
    with pytest.raises(BenchctlError, match="needs the track's Python plug-in, which may not be executed"):
        run_step([Job(Task("x"), operation_of(**RUN), 0, 0)], stage, stop=threading.Event())


def test_a_stop_ends_a_runner_where_it_waits(serve: Serve, play: Play):
    stop = threading.Event()
    server = serve()
    results: list[TaskResult] = []
    plugin = runner("await es.count(index='books')\nawait asyncio.sleep(60)")

    def work() -> None:
        results.append(play(server, plugin, RUN, iterations=1, stop=stop))

    worker = threading.Thread(target=work)
    began = time.monotonic()
    worker.start()
    eventually(lambda: len(asked(server)) == 1)
    stop.set()
    worker.join(10)
    assert time.monotonic() - began < 10
    assert results[0].columns["outcome"].tolist() == [Outcome.OK, Outcome.CANCELLED]


def test_a_stop_ends_a_runner_in_the_middle_of_a_request(serve: Serve, play: Play):
    stop = threading.Event()
    server = serve(default=Reply(fault="hang"))
    results: list[TaskResult] = []
    plugin = runner("""
try:
    await es.search(index='books')
except Exception:
    pass
await es.search(index='books')
""")

    def work() -> None:
        results.append(play(server, plugin, RUN, iterations=1, stop=stop))

    worker = threading.Thread(target=work)
    worker.start()
    assert server.hanging.wait(10)
    stop.set()
    worker.join(10)
    assert results[0].columns["outcome"].tolist() == [Outcome.CANCELLED, Outcome.CANCELLED]
    assert len(asked(server)) == 1


TEMPLATE_SOURCE = source(
    """
    from esrally.track.params import CreateComponentTemplateParamSource

    class Source(CreateComponentTemplateParamSource):
        def __init__(self, track, params, **kwargs):
            track.component_templates = [ComponentTemplate(name, {"template": {}}) for name in ("a", "b")]
            super().__init__(track, params, **kwargs)
            for _, body in self.template_definitions:
                body["version"] = 3

    from esrally.track import ComponentTemplate
""",
    "Source",
)


def test_templates_that_a_source_lists_are_created_in_turn_as_it_changed_them(serve: Serve, play: Play):
    server = serve()
    raw = {"operation_type": "create-component-template", "param_source": "s"}
    play(server, TEMPLATE_SOURCE, raw, iterations=1)
    assert [one.target for one in asked(server)] == ["/_component_template/a", "/_component_template/b"]
    assert bodies(server) == [{"template": {"settings": {}}, "version": 3}] * 2


@pytest.mark.parametrize(
    ("kind", "given", "targets"),
    [
        ("create-index", "{'indices': [('a', {}), ('b', {})]}", ["PUT /a", "PUT /b"]),
        ("delete-index", "{'indices': ['a', 'b'], 'only-if-exists': True}", ["DELETE /a", "DELETE /b"]),
        ("create-data-stream", "{'data-streams': ['a']}", ["PUT /_data_stream/a"]),
        ("delete-component-template", "{'templates': ['a']}", ["DELETE /_component_template/a"]),
        (
            "delete-composable-template",
            "{'templates': [('a', False, None)], 'only-if-exists': True}",
            ["DELETE /_index_template/a"],
        ),
        ("create-index", "{'indices': []}", []),
    ],
)
def test_what_a_source_lists_as_rallys_own_do_is_done_in_turn(
    serve: Serve, play: Play, kind: str, given: str, targets: list[str]
):
    server = serve()
    play(server, giving(given), {"operation_type": kind, "param_source": "s"}, iterations=1)
    assert [f"{one.method} {one.target}" for one in asked(server)] == targets


def test_the_first_of_a_list_that_fails_ends_it():
    context = WorkContext("books")
    order = WorkOrder(context, 1, "x", lambda one, _: open_workload(one, context, clients=1, key="x"))
    own = OwnOperations("create-index", "x", order, 0)
    script: Any = own.make({"indices": [("a", {}), ("b", {})]})
    assert next(script).path == "/a"
    refused = Answer(Outcome.HTTP_ERROR)
    with pytest.raises(StopIteration) as ended:
        script.send(workload.Reply(Exchange(0, 0, 0, 400, b"{}", 0), refused))
    assert ended.value.value is refused


BULK_SOURCE = """
    from esrally.track.params import BulkIndexParamSource

    class Source(BulkIndexParamSource):
        def __init__(self, track, params, **kwargs):
            super().__init__(track, {**params, "pipeline": "p"}, **kwargs)
            self.bulk_size = 2
%s

    def register(registry):
        registry.register_param_source("s", Source)
"""
CHANGED = """
        def params(self):
            return {**super().params(), "pipeline": "q"}
"""


def test_a_source_of_bulks_is_benchctls_own_with_its_parameters(serve: Serve, play: Play):
    server = serve(default=Reply(body=BULK_OK))
    raw = {**BULK, "bulk_size": 9}
    play(server, BULK_SOURCE % "", raw, documents=b'{"n":1}\n{"n":2}\n{"n":3}\n')
    assert [one.body.count(b'"n"') for one in asked(server)] == [2, 1]
    assert {one.target for one in asked(server)} == {"/books/_bulk?pipeline=p"}


NEEDING = """
    from esrally.track import loader
    from esrally.utils import net

    class Needy:
        def on_prepare_track(self, track, data_root_dir):
            net.download("http://x.invalid/q.json", "/nowhere/q.json")

    def source(track, params, **kwargs):
        return {}

    def register(registry):
        registry.register_track_processor(Needy())
        registry.register_param_source("s", source)
"""
BLOCKING = """
    def ask(es, params):
        es.ping()

    def register(registry):
        registry.register_runner("r", ask)
"""


@pytest.mark.parametrize(
    ("plugin", "raw", "said"),
    [
        (BULK_SOURCE % CHANGED, {**BULK, "bulk_size": 9}, "Source changes requests that Rally's"),
        (NEEDING, SEARCH, "put the file at /nowhere/q.json"),
        (BLOCKING, RUN, "the runner of operation type 'r' is not asynchronous"),
    ],
)
def test_a_task_that_needs_what_benchctl_does_not_do_is_unsupported_and_says_why(
    serve: Serve, play: Play, plugin: str, raw: dict[str, Any], said: str
):
    server = serve()
    result = play(server, plugin, raw, iterations=3)
    assert said in (result.unsupported or "")
    assert asked(server) == []


PROCESSED_TRACK = """
{
  "version": 2,
  "indices": [{"name": "books"}],
  "operations": [
    {"name": "old", "operation-type": "search", "body": {"query": {"match_all": {}}}, "cache": true}],
  "challenges": [{"name": "ask", "schedule": [
    {"operation": "old", "iterations": 2}, {"operation": {"operation-type": "refresh"}}]}]
}
"""
PROCESSOR = """
    class Processor:
        def on_after_load_track(self, track):
            for task in track.selected_challenge_or_default.schedule:
                if task.operation.type == "search":
                    %s

    def register(registry):
        registry.register_track_processor(Processor())
"""


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("task.operation.params['body']['size'] = 7", {"query": {"match_all": {}}, "size": 7}),
        ("pass", {"query": {"match_all": {}}}),
        ("task.operation.params['cache'] = {'no': 1}", "changes this operation to what benchctl cannot do"),
        ("task.clients = 9", "changes how this task is run"),
        ("track.selected_challenge.schedule.remove(task); return", "changes how this task is run"),
    ],
)
def test_what_a_track_processor_makes_of_an_operation_is_what_is_asked(
    serve: Serve, tmp_path: Path, change: str, outcome: Any
):
    folder = tmp_path / "books"
    code = code_in(folder, {"track.json": PROCESSED_TRACK, "track.py": PROCESSOR % change})
    track, _ = load_track(str(folder), {})
    use = PluginUse(folder, code.digest, track, track.challenges["ask"])
    context = WorkContext("books", plugin=use)
    server = serve()
    stage = Stage(partial(open_client, server.url), context, origin_ns=0, boot=0)
    (task, _refresh) = track.challenges["ask"].schedule
    (result,) = run_step([Job(task, track.operations["old"], 0, 0)], stage, stop=threading.Event())
    if isinstance(outcome, str):
        assert outcome in (result.unsupported or "")
        assert asked(server) == []
    else:
        assert {one.target for one in asked(server)} == {"/books/_search?request_cache=true"}
        assert bodies(server) == [outcome] * 2


PROCESSED_SOURCE = """
    class Processor:
        def on_after_load_track(self, track):
            for task in track.selected_challenge_or_default.schedule:
                task.operation.params["size"] = 7

    def register(registry):
        registry.register_track_processor(Processor())
        registry.register_param_source("s", lambda track, params, **_: {"body": {"size": params["size"]}})
"""


def test_a_source_gets_the_parameters_that_a_track_processor_leaves(serve: Serve, tmp_path: Path):
    folder = tmp_path / "books"
    source = '"operation-type": "search", "param-source": "s"'
    text = PROCESSED_TRACK.replace('"operation-type": "search"', source)
    code = code_in(folder, {"track.json": text, "track.py": PROCESSED_SOURCE})
    track, _ = load_track(str(folder), {})
    context = WorkContext("books", plugin=PluginUse(folder, code.digest, track, track.challenges["ask"]))
    server = serve()
    stage = Stage(partial(open_client, server.url), context, origin_ns=0, boot=0)
    (task, _refresh) = track.challenges["ask"].schedule
    run_step([Job(task, track.operations["old"], 0, 0)], stage, stop=threading.Event())
    assert bodies(server) == [{"size": 7}] * 2
