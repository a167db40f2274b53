"""What cannot be asked says so without asking; what only some nodes have is asked and judged."""

import threading
from typing import Any

import pytest

from benchctl.load.executor import Job, Stage, run_step
from benchctl.load.transport import WireClient
from benchctl.load.work import WorkContext
from benchctl.results.samples import Outcome
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation
from load.playing import play_operation
from load.stub_server import Serve

DATA_SET = {"field": "v", "data_set_format": "hdf5", "data_set_path": "x"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"operation-type": "proto-search"}, "proto-search speaks gRPC: benchctl speaks HTTP"),
        ({"operation-type": "produce-stream-message", "bulk-size": "whatever it is"}, "a message broker"),
        ({"operation-type": "vector-search", **DATA_SET, "max_distance": 1.0}, "vector-search by radius"),
    ],
)
@pytest.mark.parametrize("task", [Task("x", iterations=5), Task("x"), Task("x", warmup_time_period=5.0)])
def test_what_cannot_be_asked_is_unsupported_and_nothing_is_sent(
    serve: Serve, raw: Any, said: str, task: Task
):
    server = serve()
    operation = decode_operation({"name": "x", **raw})
    stage = Stage(lambda _: WireClient(server.url), WorkContext("big5"), origin_ns=0, boot=0)
    job = Job(task, operation, 0, 0)
    (result,) = run_step([job], stage, stop=threading.Event())
    assert result.unsupported is not None
    assert said in result.unsupported
    assert len(server.received) == 1  # the greeting
    assert result.columns["outcome"].tolist() == [Outcome.HTTP_ERROR]


def test_a_node_with_models_learns_that_benchctl_cannot_handle_them():
    played = play_operation(lambda _: (200, {}), operation_type="deploy-ml-model")
    assert played.lines == ["GET /_plugins/_ml/stats"]
    assert played.answer is not None
    assert "deploy-ml-model" in played.answer.lacking
