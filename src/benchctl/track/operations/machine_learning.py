"""Operations of the machine-learning modules, which none of the core nodes has: one request each, or few."""

from typing import Any

import msgspec

from benchctl.track.operations.common import PositiveSeconds, Retried


class _OnDatafeed(Retried, frozen=True, kw_only=True):
    """Operations on a datafeed of Elasticsearch.

    Attributes:
        datafeed_id: its name.
    """

    datafeed_id: str


class CreateMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="create-ml-datafeed"):
    """Create a datafeed."""

    body: dict[str, Any]


class DeleteMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="delete-ml-datafeed"):
    """Delete a datafeed; a missing one is no failure."""

    force: bool = False


class StartMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="start-ml-datafeed"):
    """Start a datafeed."""

    body: dict[str, Any] | None = None
    start: str | int | None = None
    end: str | int | None = None
    timeout: str | None = None


class StopMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="stop-ml-datafeed"):
    """Stop a datafeed."""

    force: bool = False
    timeout: str | None = None


class _OnJob(Retried, frozen=True, kw_only=True):
    """Operations on an anomaly detection job of Elasticsearch.

    Attributes:
        job_id: its name.
    """

    job_id: str


class CreateMlJob(_OnJob, frozen=True, kw_only=True, tag="create-ml-job"):
    """Create a job."""

    body: dict[str, Any]


class DeleteMlJob(_OnJob, frozen=True, kw_only=True, tag="delete-ml-job"):
    """Delete a job; a missing one is no failure."""

    force: bool = False


class OpenMlJob(_OnJob, frozen=True, kw_only=True, tag="open-ml-job"):
    """Open a job."""


class CloseMlJob(_OnJob, frozen=True, kw_only=True, tag="close-ml-job"):
    """Close a job."""

    force: bool = False
    timeout: str | None = None


class RegisterMlModel(Retried, frozen=True, kw_only=True, tag="register-ml-model"):
    """Make OpenSearch know a model.

    Attributes:
        model_config_file: a file with the whole body; None takes the keys below.
        model_name, model_version, model_format: which one.
        timeout: seconds until it has to be known.
    """

    model_config_file: str | None = None
    model_name: str | None = None
    model_version: str | None = None
    model_format: str | None = None
    timeout: PositiveSeconds = 120.0


class DeployMlModel(Retried, frozen=True, kw_only=True, tag="deploy-ml-model"):
    """Load the model that was registered last into memory.

    Attributes:
        timeout: seconds until it has to be there.
    """

    timeout: PositiveSeconds = 120.0


class DeleteMlModel(Retried, frozen=True, kw_only=True, tag="delete-ml-model"):
    """Unload and forget all models of a name.

    Attributes:
        model_name: the name.
        number_of_hits_to_return: how many at most.
        undeploy_timeout: seconds until each has to be unloaded.
    """

    model_name: str
    number_of_hits_to_return: int = 1000
    undeploy_timeout: PositiveSeconds = 10.0


class CreateMlConnector(Retried, frozen=True, kw_only=True, tag="create-ml-connector"):
    """Make OpenSearch know a service with models."""

    body: dict[str, Any]


class DeleteMlConnector(Retried, frozen=True, kw_only=True, tag="delete-ml-connector"):
    """Forget the connector of a name."""

    connector_name: str = msgspec.field(name="connector_name")


class RegisterRemoteMlModel(Retried, frozen=True, kw_only=True, tag="register-remote-ml-model"):
    """Make OpenSearch know a model of a service; without a connector's id, of the one created last."""

    body: dict[str, Any]


class TrainKnnModel(Retried, frozen=True, kw_only=True, tag="train-knn-model"):
    """Train a model for the nearest vectors, and ask until it is there.

    Attributes:
        model_id: its name.
        body: what it learns from.
        retries: how often it is asked for.
        poll_period: seconds between questions.
    """

    model_id: str = msgspec.field(name="model_id")
    body: dict[str, Any]
    retries: int = 1000
    poll_period: PositiveSeconds = msgspec.field(default=0.5, name="poll_period")


class DeleteKnnModel(Retried, frozen=True, kw_only=True, tag="delete-knn-model"):
    """Delete a model for the nearest vectors.

    Attributes:
        model_id: its name.
        ignore_if_model_does_not_exist: a missing one is no failure.
    """

    model_id: str = msgspec.field(name="model_id")
    ignore_if_model_does_not_exist: bool = False
