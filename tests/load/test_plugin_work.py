"""Parameter sources and runners of plug-ins: what they make is asked over the measured wire."""

import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from multiprocessing import active_children
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.load import executor, work
from benchctl.load.executor import Job, Stage, TaskResult, WorkerPool, run_step
from benchctl.load.plugin_runner import OwnOperations
from benchctl.load.transport import Answer, Exchange, open_client
from benchctl.load.work import WorkContext, WorkOrder
from benchctl.load.work.openers import open_workload
from benchctl.plugin.session import PluginUse
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.track.load import load_track
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.schedule import read_operation
from benchctl.track.template import Document
from load.stub_server import Received, Reply, Serve, StubServer
from plugins import code_in
from waiting import eventually

BULK_OK = b'{"took":1,"errors":false,"items":[{"index":{"status":201}}]}'
ENGINES = pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
SEARCH = {"operation-type": "search", "param-source": "s"}
BULK = {"operation-type": "bulk", "param-source": "s"}
RUN = {"operation-type": "r"}


class Player:
    """Runs operations of a track's plug-in against a stub server of its own."""

    def __init__(self, serve: Serve, folder: Path) -> None:
        self.server: StubServer = serve()
        self._serve = serve
        self._folder = folder
        self._sessions = count(1)

    @property
    def asked(self) -> list[Received]:
        """What was asked after the greetings."""
        return [one for one in self.server.received if "local=true" not in one.target]

    @property
    def targets(self) -> list[str]:
        return [f"{one.method} {one.target}" for one in self.asked]

    @property
    def bodies(self) -> list[Any]:
        return [msgspec.json.decode(one.body) for one in self.asked]

    def answer(self, *script: Reply, **default: Any) -> "Player":
        """Have the server answer so."""
        self.server = self._serve(*script, default=Reply(**default))
        return self

    def __call__(
        self,
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
        code = code_in(self._folder, {"track.py": plugin})
        track, _ = load_track(str(self._folder), {})
        context = WorkContext(
            "books",
            seed=3,
            engine=engine,
            plugin=PluginUse(self._folder, code.digest, track, track.challenges["ask"], next(self._sessions)),
            version=version,
            documents=(lambda: iter([documents])) if documents else None,
            document_count=documents.count(b"\n"),
        )
        stage = Stage(partial(open_client, self.server.url), context, origin_ns=0, boot=0, spool=spool)
        job = Job(Task("x", **task), operation_of(raw), 0, 0)
        return run_step([job], stage, stop=stop or threading.Event(), workers=workers)[0]

    def one_task(self, files: dict[str, str]) -> TaskResult:
        """Run the first task of a track of its own."""
        code = code_in(self._folder, files)
        track, _ = load_track(str(self._folder), {})
        challenge = track.challenges["ask"]
        context = WorkContext("books", plugin=PluginUse(self._folder, code.digest, track, challenge))
        stage = Stage(partial(open_client, self.server.url), context, origin_ns=0, boot=0)
        task = challenge.schedule[0]
        job = Job(task, track.operations[task.operation], 0, 0)
        return run_step([job], stage, stop=threading.Event())[0]


@pytest.fixture
def play(serve: Serve, tmp_path: Path) -> Player:
    return Player(serve, tmp_path / "books")


def operation_of(raw: dict[str, Any]) -> PluginOperation:
    """An operation as a track's reader makes it of a plug-in's."""
    made = read_operation({"name": "x", **raw}, Document("track.json", lenient=True), "$")
    assert isinstance(made, PluginOperation)
    return made


def outcomes(result: TaskResult) -> list[int]:
    found: list[int] = result.columns["outcome"].tolist()
    return found


def source(text: str, made_by: str = "s") -> str:
    """A plug-in that registers a parameter source of that name."""
    register = f'def register(registry):\n    registry.register_param_source("s", {made_by})\n'
    return f"{dedent(text)}\n{register}"


def giving(value: str) -> str:
    return source(f"def s(track, params, **kwargs):\n    return {value}\n")


def runner(body: str) -> str:
    return (
        "import asyncio\nimport elasticsearch\nimport opensearchpy\n"
        f"async def r(es, params):\n{indent(dedent(body).strip(), '    ')}\n"
        'def register(registry):\n    registry.register_runner("r", r, async_runner=True)\n'
    )


FUNCTION = giving("""{
        "body": {"size": params["size"], "names": [index.name for index in track.indices]}, "index": None,
        "type": "", "cache": "true", "use_request_cache": False, "request-params": {"a": True},
        "request-timeout": 9}""")


def test_a_function_gives_the_parameters_of_every_request(play: Player):
    assert outcomes(play(FUNCTION, {**SEARCH, "size": 7}, iterations=3)) == [Outcome.OK] * 3
    assert play.targets == ["POST /books/_search?a=true&request_cache=true"] * 3
    assert play.bodies == [{"size": 7, "names": ["books"]}] * 3


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


def test_clients_of_several_processes_have_their_parts_too(play: Player, tmp_path: Path):
    with WorkerPool(2) as workers, SampleSpool(tmp_path / "spool") as spool:
        result = play(COUNTING, SEARCH, iterations=2, clients=2, spool=spool, workers=workers)
    assert result.processes == 2
    found = sorted((body["client"], body["n"], body["task"]) for body in play.bodies)
    assert found == [(f"{client} of 2", number, "x") for client in (0, 1) for number in (1, 2)]


def a_class(params: str, size: str = "None", infinite: str = "False", base: str = "") -> str:
    """A parameter source that its clients share, of 12 numbers."""
    return source(
        f"""
    import time
    from esrally.track import params as rally

    def numbers():
        for number in range(12):
            time.sleep(0.002)
            yield number

    class Source{base}:
        def __init__(self, track, params, **kwargs):
            self.left, self.numbers = 5, numbers()
            {f"self.infinite = {infinite}" if infinite else "pass"}

        def partition(self, partition_index, total_partitions):
            return self

        def size(self):
            return {size}

        def params(self):
            if not self.left:
                raise StopIteration
            {params}
""",
        "Source",
    )


ENDING = a_class("self.left -= 1; return {'body': {'n': self.left}}")


@pytest.mark.parametrize(
    ("plugin", "clients", "task", "requests"),
    [
        # Four for each of the clients, by `size()` alone.
        (a_class("return {'body': {}}", "4", ""), 2, {}, 8),
        (a_class("return {'body': {}}", "4", "", "(rally.ParamSource)"), 2, {}, 8),
        (a_class("return {'body': {}}", "4", ""), 2, {"iterations": 3}, 6),
        (a_class("return {'body': {}}", "4", ""), 2, {"iterations": 9}, 8),
        # Five until StopIteration.
        (ENDING, 1, {}, 5),
        (ENDING, 1, {"iterations": 3}, 3),
        (ENDING, 1, {"iterations": 9}, 5),
    ],
)
def test_a_source_that_ends_ends_its_task(
    play: Player, plugin: str, clients: int, task: dict[str, Any], requests: int
):
    play(plugin, SEARCH, clients=clients, **task)
    assert len(play.asked) == requests


@pytest.mark.parametrize(
    ("plugin", "numbers"), [(ENDING, 5), (a_class("return {'body': {'n': next(self.numbers)}}"), 12)]
)
def test_clients_that_share_a_source_take_turns(play: Player, plugin: str, numbers: int):
    play(plugin, SEARCH, clients=4)
    assert sorted(body["n"] for body in play.bodies) == list(range(numbers))


def test_a_source_that_changes_the_dictionary_it_gave_before_makes_another_request(play: Player):
    plugin = source("""
        kept = {"body": {"n": 0}}

        def s(track, params, **kwargs):
            kept["body"]["n"] += 1
            return kept
    """)
    play(plugin, SEARCH, iterations=3)
    assert play.bodies == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_numbers_of_numpy_are_numbers(play: Player):
    plugin = "import numpy as np\n" + giving('{"body": {"n": np.int64(3), "v": np.arange(2.0), "w": None}}')
    play(plugin, SEARCH, iterations=1)
    assert play.bodies == [{"n": 3, "v": [0.0, 1.0], "w": None}]


def test_what_a_plug_in_draws_is_the_same_in_every_fork(play: Player):
    plugin = "import random\nimport numpy\n" + giving(
        '{"body": {"n": random.random(), "m": numpy.random.rand()}}'
    )
    for name in ("", "y", ""):
        play(plugin, SEARCH, iterations=3, name=name)
    found = play.bodies
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
def test_a_bulk_body_of_any_form_goes_out_as_lines(play: Player, body: str, sent: bytes):
    plugin = giving(
        f"{{'body': {body}, 'bulk-size': 4, 'unit': 'docs', 'action-metadata-present': True, "
        "'index': 'passed over', 'pipeline': 'p'}"
    )
    result = play(plugin, BULK, iterations=2)
    assert play.targets == ["POST /_bulk?pipeline=p"] * 2
    assert play.asked[0].body == sent
    assert play.asked[0].headers["content-type"] == "application/x-ndjson"
    assert result.columns["weight"].tolist() == [4, 4]


def test_a_bulk_body_without_actions_names_its_index_in_the_path(play: Player):
    plugin = giving(r"{'body': '{}\n{}\n', 'action-metadata-present': False, 'index': 'loans'}")
    result = play(plugin, BULK, iterations=1)
    assert play.targets == ["POST /loans/_bulk"]
    assert result.columns["weight"].tolist() == [2]


@pytest.mark.parametrize(("version", "searches"), [("9.1.5", 1), ("9.2.0", 2)])
def test_neighbours_that_a_runner_asks_for_are_counted_as_the_node_counts_them(
    play: Player, version: str, searches: int
):
    plugin = runner('await es.search(index="books", body={"knn": {"field": "v", "query_vector": [1]}})')
    assert play(plugin, RUN, version=version, iterations=1).searches_sent == searches


@ENGINES
def test_the_requests_of_a_runner_are_one_sample_on_the_wire(play: Player, engine: str):
    plugin = runner("""
await asyncio.sleep(0.05)
found = await es.search(index="books", body={"query": {"match_all": {}}}, request_timeout=9)
await es.indices.refresh(index="books")
await es.search(index="books", size=1)
return {"weight": 7, "unit": "docs", "hits": found["hits"]["total"]["value"], "took": found["took"]}
""")
    result = play.answer(delay_s=0.02)(plugin, RUN, engine=engine, iterations=2)
    paths = [target.partition("?")[0] for target in play.targets]
    assert paths == ["POST /books/_search", "POST /books/_refresh", "POST /books/_search"] * 2
    columns = result.columns
    whole = columns["part"] == 0
    assert columns["part"].tolist() == [1, 2, 3, 0] * 2
    assert columns["weight"][whole].tolist() == [7, 7]
    assert columns["hits"][whole].tolist() == [10000, 10000]
    assert columns["took_ms"][whole].tolist() == [3, 3]
    assert (result.unit, result.searches_sent) == ("docs", 4)
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
def test_what_a_runner_returns_is_weight_and_unit(play: Player, returned: str, weight: int, unit: str):
    result = play(runner(f"await es.count(index='books')\nreturn {returned}"), RUN, iterations=1)
    assert result.columns["weight"].tolist() == [1, weight]
    assert outcomes(result) == [Outcome.OK, Outcome.OK]
    assert result.unit == unit


@ENGINES
def test_a_refusal_that_a_runner_does_not_handle_is_its_outcome(play: Player, engine: str):
    play.answer(status=400, body=b'{"error":{"type":"parsing_exception","reason":"no such thing"}}')
    plugin = runner("await es.search(index='books', body={'a': 1})")
    result = play(plugin, RUN, engine=engine, iterations=2)
    assert outcomes(result) == [Outcome.HTTP_ERROR] * 4
    assert result.columns["status"].tolist() == [400] * 4
    (failure,) = result.failures
    assert (failure.count, failure.outcome) == (2, Outcome.HTTP_ERROR)
    assert "no such thing" in failure.details[0]


HANDLING = """
try:
    await es.search(index='books')
except (elasticsearch.{0}, opensearchpy.{0}):
    await es.{1}(index='books')
"""


@ENGINES
def test_a_refusal_that_a_runner_handles_is_none(play: Player, engine: str):
    play.answer(status=404, body=b'{"error":"none"}')
    result = play(runner(HANDLING.format("NotFoundError", "count")), RUN, engine=engine, iterations=1)
    assert outcomes(result) == [Outcome.HTTP_ERROR, Outcome.OK, Outcome.OK]
    assert result.failures == ()


@ENGINES
def test_a_lost_connection_is_the_clients_exception_and_the_wires_outcome(play: Player, engine: str):
    lost = Reply(fault="reset")
    play.answer(lost, Reply(), lost, lost)
    result = play(runner(HANDLING.format("ConnectionError", "search")), RUN, engine=engine, iterations=2)
    assert outcomes(result) == [Outcome.RESET, Outcome.OK, Outcome.OK, *[Outcome.RESET] * 3]


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
    play: Player, engine: str, returned: str, outcome: Outcome
):
    play.answer(body=b'{"took":1,"timed_out":false,"_shards":{"total":2,"failed":1},"hits":{"hits":[]}}')
    plugin = runner(f"await es.search(index='books')\nreturn {returned}")
    result = play(plugin, RUN, engine=engine, iterations=1)
    assert outcomes(result) == [Outcome.PARTIAL, outcome]
    assert sum(failure.count for failure in result.failures) == (outcome is not Outcome.OK)


@ENGINES
def test_a_timeout_of_a_runner_is_counted_as_one(play: Player, engine: str):
    play.answer(delay_s=1.0)
    plugin = runner("await es.search(index='books', request_timeout=0.05)")
    assert outcomes(play(plugin, RUN, engine=engine, iterations=1)) == [Outcome.TIMEOUT] * 2


def test_a_runner_that_says_it_did_not_succeed_has_failed(play: Player):
    plugin = runner("return {'success': False, 'weight': 3, 'error-description': 'two were lost'}")
    result = play(plugin, RUN, iterations=1)
    assert outcomes(result) == [Outcome.BAD_BODY]
    assert "two were lost" in result.failures[0].details[0]


@ENGINES
def test_any_request_can_be_sent_in_the_ways_of_either_client(play: Player, engine: str):
    plugin = runner("""
await es.perform_request("GET", "/_a", params={"x": 1})
await es.perform_request(method="POST", path="/_b", body={"y": 2}, headers={"x-own": "z"})
await es.transport.perform_request("PUT", "_c", body={"w": 3})
await es.transport.perform_request("PUT", url="/_d")
limited = es.options(request_timeout=9)
await limited.indices.refresh(index="books")
await es.perform_request("POST", "/_bulk", headers={"content-type": "application/x-ndjson"},
                         body=[{"index": {}}, {"a": 1}])
""")
    result = play(plugin, RUN, engine=engine, iterations=1)
    assert play.targets == [
        *("GET /_a?x=1", "POST /_b", "PUT /_c", "PUT /_d", "POST /books/_refresh", "POST /_bulk")
    ]
    assert play.asked[1].headers["x-own"] == "z"
    assert {one.headers.get("accept", "application/json") for one in play.asked} == {"application/json"}
    assert play.asked[5].body == b'{"index":{}}\n{"a":1}\n'
    assert result.columns["part"].tolist() == [1, 2, 3, 4, 5, 6, 0]


@pytest.mark.parametrize(
    "body",
    [
        "assert hasattr(es, 'search') and not hasattr(es, 'nothing')",
        """
        es.return_raw_response()
        response = await es.perform_request("POST", "/_search", body={})
        assert response.read().startswith(b'{"took":3')
        response.seek(0)
        assert response.body.read(2) == b'{"'
        """,
    ],
)
def test_a_plug_in_can_see_what_a_client_has_and_an_answer_as_it_came(play: Player, body: str):
    assert play(runner(body), RUN, iterations=1).failures == ()


def test_requests_that_a_runner_gathers_go_one_after_the_other(play: Player):
    plugin = runner("await asyncio.gather(*(es.search(index=f'i{n}') for n in range(3)))")
    result = play(plugin, RUN, iterations=1)
    assert play.targets == [f"POST /i{n}/_search" for n in range(3)]
    assert play.server.connections == 1
    assert result.columns["part"].tolist() == [1, 2, 3, 0]


def test_a_runner_of_a_class_calls_another_in_its_own_context(play: Player):
    plugin = """
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

        def register(registry):
            registry.register_runner("r", Retry(Own()), async_runner=True)
    """
    multi_cluster = plugin.replace("Retry(Own())", "Own()")
    columns = play(multi_cluster, {**RUN, "n": 5}, iterations=2).columns
    assert play.bodies == [{"a": 5}] * 2
    assert columns["hits"][columns["part"] == 0].tolist() == [10000, 10000]


BULK_RUNNER = """
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


REFUSED = BULK_OK.replace(b"false", b"true").replace(b"201", b'429,"error":{"type":"too_many"}')


@pytest.mark.parametrize(("body", "outcome"), [(BULK_OK, Outcome.OK), (REFUSED, Outcome.PARTIAL)])
def test_a_bulk_runner_can_be_derived_from_the_drivers(play: Player, body: bytes, outcome: Outcome):
    play.server._reply = lambda _: Reply(body=body)  # type: ignore[method-assign]
    result = play(BULK_RUNNER, {**RUN, "param-source": "s"}, iterations=1)
    assert play.targets == ["POST /b/_bulk?pipeline=p"]
    assert play.asked[0].body == b'{"index":{}}\n{}\n'
    assert (result.unit, result.columns["weight"].tolist()[-1]) == ("docs", 1)
    assert outcomes(result)[-1] == outcome


def test_a_runner_that_knows_its_end_ends_its_task(play: Player):
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
    play(plugin, RUN)
    assert len(play.asked) == 4


SILENT = runner("""
class Silent(Exception):
    def __str__(self):
        return 1 / 0
raise Silent
""")
NOT_FINITE = giving("{'body': {'query': {'range': {'n': {'gte': [None, float('nan')]}}}}}")
NO_INDEX = giving("{'index': 3}")


@pytest.mark.parametrize(
    ("plugin", "raw", "said"),
    [
        (runner("return {}['x']"), RUN, "track.py:5: the runner of operation 'x' failed: KeyError: 'x'"),
        (FUNCTION, SEARCH, "track.py:3: param source 's' failed: KeyError: 'size'"),
        (runner("raise SystemExit(0)"), RUN, "the runner of operation 'x' of the plug-in"),
        (runner("raise GeneratorExit"), RUN, "the runner of operation 'x' failed: GeneratorExit"),
        (SILENT, RUN, "failed: Silent: it gives no reason (ZeroDivisionError)"),
        (runner("return float('nan'), 'docs'"), RUN, "the runner of operation 'x' gave weight nan"),
        (runner("return 10 ** 30, 'docs'"), RUN, "the runner of operation 'x' gave weight 1000"),
        (giving("[]"), SEARCH, "param source 's' gave list, not a dictionary"),
        (giving("{'body': object()}"), SEARCH, "returned what is not JSON: an object of type object"),
        (NOT_FINITE, SEARCH, "returned what is not JSON: Out of range float values"),
        (NO_INDEX, SEARCH, "returned invalid parameters of search"),
        (giving("{'body': {}}"), BULK, "a bulk body of dict: text, bytes or a list of lines is needed"),
        (giving("{'body': 3}"), BULK, "a bulk body of int: text, bytes or a list of lines is needed"),
        (FUNCTION, {**SEARCH, "param-source": "t"}, "registers no param source 't'"),
        (FUNCTION, RUN, "registers no runner for 'r'"),
    ],
)
def test_what_goes_wrong_in_a_plug_in_is_one_line(play: Player, plugin: str, raw: dict[str, Any], said: str):
    with pytest.raises(BenchctlError) as caught:
        play(plugin, raw, iterations=1)
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_what_a_runner_does_to_its_parameters_stays_with_its_client(play: Player):
    plugin = runner('params["body"]["n"] += 1\nawait es.search(index="books", body=params["body"])')
    play(plugin, {**RUN, "body": {"n": 0}}, iterations=2, clients=2)
    assert sorted(body["n"] for body in play.bodies) == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("call", "engine", "said"),
    [
        ("es.nothing()", "elasticsearch", "elasticsearch-py has no 'nothing'"),
        ("es.indices.nothing()", "opensearch", "opensearch-py has no 'indices.nothing'"),
        ("es.cluster.put_settings(persistent={})", "opensearch", "opensearch-py: "),
    ],
)
def test_what_the_client_of_an_engine_does_not_have_is_unsupported_there(
    play: Player, call: str, engine: str, said: str
):
    result = play(runner(f"await {call}"), RUN, engine=engine, iterations=3)
    assert (result.unsupported or "").startswith(said)
    assert outcomes(result) == [Outcome.HTTP_ERROR]


def test_a_source_gives_a_composite_with_its_streams(play: Player):
    plugin = source("""
    def s(track, params, **kwargs):
        one = {"operation-type": "search", "body": {"n": 1}, "cache": "false", "odd": 1, "index": ["a", "b"]}
        two = {"name": "two", "operation-type": "search", "index": "c", "body": {"n": 2}, "id": 3}
        return {"id": "flow", "requests": [{"stream": [one]}, {"stream": [two]}]}
""")
    result = play(plugin, {**SEARCH, "operation-type": "composite"}, iterations=2)
    ones, twos = ["POST /a,b/_search?request_cache=false"] * 2, ["POST /c/_search"] * 2
    assert sorted(play.targets) == [*ones, *twos]
    assert (result.columns["part"] == 0).sum() == 2


def test_an_operation_of_a_plug_in_is_not_done_without_consent(play: Player):
    stage = Stage(partial(open_client, play.server.url), WorkContext("books"), origin_ns=0, boot=0)
    with pytest.raises(BenchctlError, match="needs the track's Python plug-in, which may not be executed"):
        run_step([Job(Task("x"), operation_of(RUN), 0, 0)], stage, stop=threading.Event())


WAITS = "await es.count(index='books')\nawait asyncio.sleep(60)"
ASKS_AGAIN = """
try:
    await es.search(index='books')
except Exception:
    pass
await es.search(index='books')
"""
NEVER_ENDS = """
import time
await es.count(index='books')
while True:
    try:
        time.sleep(0.01)
    except Exception:
        pass
"""


@pytest.mark.parametrize(
    ("body", "fault", "found"),
    [
        (WAITS, "", [Outcome.OK, Outcome.CANCELLED]),
        (ASKS_AGAIN, "hang", [Outcome.CANCELLED] * 2),
        (NEVER_ENDS, "", [Outcome.OK, Outcome.CANCELLED]),
    ],
)
def test_a_stop_ends_a_runner_wherever_it_is(
    play: Player, monkeypatch: pytest.MonkeyPatch, body: str, fault: str, found: list[Outcome]
):
    monkeypatch.setattr(executor, "_OWN_CODE_S", 0.1)
    play.answer(fault=fault)
    stop = threading.Event()
    act: Callable[[], Any] = lambda: eventually(lambda: play.asked) and stop.set()  # noqa: E731 - of a thread
    watching = threading.Thread(target=act)
    watching.start()
    assert outcomes(play(runner(body), RUN, iterations=1, stop=stop)) == found
    watching.join()
    assert len(play.asked) == 1


def test_a_source_that_never_returns_is_cut_off_without_an_error(
    play: Player, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(executor, "_OWN_CODE_S", 0.1)
    stop = threading.Event()
    watching = threading.Thread(target=lambda: eventually(lambda: play.asked) and stop.set())
    watching.start()
    given = giving("{'body': {}, 'index': 'books'} if next(made) == 0 else [time.sleep(0.01) for _ in made]")
    plugin = f"import itertools\nimport time\nmade = itertools.count()\n{given}"
    result = play(plugin, SEARCH, iterations=2, stop=stop)
    watching.join()
    assert outcomes(result) == [Outcome.OK]
    assert result.ended_ns > result.start_ns


def test_a_worker_whose_task_was_cut_off_does_the_next_one(play: Player, tmp_path: Path):
    stop = threading.Event()
    watching = threading.Thread(target=lambda: eventually(lambda: play.asked) and stop.set())
    watching.start()
    with WorkerPool(1) as pool, SampleSpool(tmp_path / "samples") as spool:
        given: dict[str, Any] = {"workers": pool, "spool": spool, "iterations": 1}
        cut_off = play(runner(NEVER_ENDS), RUN, stop=stop, **given)
        first = active_children()
        after = play(runner("await es.count(index='books')"), RUN, **given)
        assert active_children() == first
        assert outcomes(cut_off) == [Outcome.OK, Outcome.CANCELLED]
        assert outcomes(after) == [Outcome.OK, Outcome.OK]
    watching.join()


def test_templates_that_a_source_lists_are_created_in_turn_as_it_changed_them(play: Player):
    plugin = """
    from esrally.track import ComponentTemplate
    from esrally.track.params import CreateComponentTemplateParamSource

    class Source(CreateComponentTemplateParamSource):
        def __init__(self, track, params, **kwargs):
            track.component_templates = [ComponentTemplate(name, {"template": {}}) for name in ("a", "b")]
            super().__init__(track, params, **kwargs)
            for _, body in self.template_definitions:
                body["version"] = 3
"""
    play(source(plugin, "Source"), {**SEARCH, "operation-type": "create-component-template"}, iterations=1)
    assert play.targets == ["PUT /_component_template/a", "PUT /_component_template/b"]
    assert play.bodies == [{"template": {"settings": {}}, "version": 3}] * 2


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
    play: Player, kind: str, given: str, targets: list[str]
):
    play(giving(given), {**SEARCH, "operation-type": kind}, iterations=1)
    assert play.targets == targets


def test_the_first_of_a_list_that_fails_ends_it():
    context = WorkContext("books")
    order = WorkOrder(context, 1, "x", lambda one, _: open_workload(one, context, clients=1, key="x"))
    own = OwnOperations("create-index", "x", order, 0)
    script: Any = own.make({"indices": [("a", {}), ("b", {})]})
    assert next(script).path == "/a"
    refused = Answer(Outcome.HTTP_ERROR)
    with pytest.raises(StopIteration) as ended:
        script.send(work.Reply(Exchange(0, 0, 0, 400, b"{}", 0), refused))
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


def test_a_source_of_bulks_is_benchctls_own_with_its_parameters(play: Player):
    play(BULK_SOURCE % "", {**BULK, "bulk-size": 9}, documents=b'{"n":1}\n{"n":2}\n{"n":3}\n')
    assert [one.body.count(b'"n"') for one in play.asked] == [2, 1]
    assert set(play.targets) == {"POST /books/_bulk?pipeline=p"}


CHANGED = """
        def params(self):
            return {**super().params(), "pipeline": "q"}
"""
NEEDY = """
    from esrally.utils import net

    class Needy:
        def on_prepare_track(self, track, data_root_dir):
            net.download("http://x.invalid/q.json", "/nowhere/q.json")

    def register(registry):
        registry.register_track_processor(Needy())
        registry.register_param_source("s", lambda track, params, **kwargs: {})
"""
BLOCKING = """
    def ask(es, params):
        es.ping()

    def register(registry):
        registry.register_runner("r", ask)
"""
LACKING = """
    from esrally.driver.runner import Ponder
    from esrally.track.loader import PonderProcessor
    from esrally.track.params import PonderParamSource

    class Runner(Ponder):
        async def __call__(self, es, params):
            return await super().__call__(es, params)

    def register(registry):
        registry.register_runner("r", Runner(), async_runner=True)
        registry.register_param_source("s", PonderParamSource)
"""


@pytest.mark.parametrize(
    ("plugin", "raw", "said"),
    [
        (BULK_SOURCE % CHANGED, {**BULK, "bulk-size": 9}, "Source changes requests that Rally's"),
        (NEEDY, SEARCH, "put the file at /nowhere/q.json"),
        (BLOCKING, RUN, "the runner of operation type 'r' is not asynchronous"),
        (LACKING, RUN, "benchctl has no 'esrally.driver.runner.Ponder' for plug-ins"),
        (LACKING, SEARCH, "benchctl has no 'esrally.track.params.PonderParamSource' for plug-ins"),
        (
            f"{LACKING}        registry.register_track_processor(PonderProcessor())",
            SEARCH,
            "benchctl has no 'esrally.track.loader.PonderProcessor' for plug-ins",
        ),
    ],
)
def test_a_task_that_needs_what_benchctl_does_not_do_is_unsupported_and_says_why(
    play: Player, plugin: str, raw: dict[str, Any], said: str
):
    result = play(plugin, raw, iterations=3)
    assert said in (result.unsupported or "")
    assert play.asked == []


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
        registry.register_param_source("s", lambda track, params, **_: {"body": {"size": params["size"]}})
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
    play: Player, change: str, outcome: Any
):
    result = play.one_task({"track.json": PROCESSED_TRACK, "track.py": PROCESSOR % change})
    if isinstance(outcome, str):
        assert outcome in (result.unsupported or "")
        assert play.asked == []
    else:
        assert set(play.targets) == {"POST /books/_search?request_cache=true"}
        assert play.bodies == [outcome] * 2


def test_a_source_gets_the_parameters_that_a_track_processor_leaves(play: Player):
    sourced = '"operation-type": "search", "param-source": "s"'
    track = PROCESSED_TRACK.replace('"operation-type": "search"', sourced)
    play.one_task({"track.json": track, "track.py": PROCESSOR % "task.operation.params['size'] = 7"})
    assert play.bodies == [{"size": 7}] * 2
