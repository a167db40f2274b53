"""What a plug-in's runner gets: an engine's official client, whose methods can be awaited.

Each request is sent where it is awaited, by the synchronous client, whose connection is the load's own wire
client: so every request is timed there, and what Python does around it is not in its sample. Requests of one
operation go one after the other, also those that a runner gathers.
"""

import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchctl.load.plugin.engine import Channel, Engine
from benchctl.load.plugin.params import bulk_body

_OPTIONS = frozenset({"request_timeout", "ignore", "headers", "opaque_id"})


class ClientLacksError(AttributeError):
    """A runner wants a method that this engine's client does not have."""


class ClientRefusesError(TypeError):
    """A runner gives a method of this engine's client what that does not take."""


LACKING = (ClientLacksError, ClientRefusesError)
"""What the other engine's client may well have: its operations are unsupported on this one."""


PerformOperation = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Does an operation of a type of benchctl's own with these parameters."""


class RawResponse(io.BytesIO):
    """An answer that was asked for as it came."""

    @property
    def body(self) -> "RawResponse":
        """Itself: Rally has both forms."""
        return self


class _Use:
    """What the clients of one operation share.

    Attributes:
        raw: whether answers are to be given as they came.
    """

    def __init__(self, engine: Engine, channel: Channel, perform: PerformOperation) -> None:
        self.engine = engine
        self.channel = channel
        self.perform = perform
        self.raw = False

    def answer(self, decoded: Any) -> Any:  # noqa: ANN401 - JSON of any shape
        """A decoded answer, or the one as it came."""
        last = self.channel.last
        return RawResponse(last.exchange.body) if self.raw and last is not None else decoded


class RunnerClient:
    """What a runner gets: the official client, whose methods can be awaited.

    Args:
        use: of one operation.
        path: names of the part of the client that it is.
        options: for all of its requests.
    """

    def __init__(
        self, use: _Use, path: tuple[str, ...] = (), options: Mapping[str, Any] | None = None
    ) -> None:
        self._use = use
        self._path = path
        self._options = dict(options or {})

    @classmethod
    def for_operation(cls, engine: Engine, channel: Channel, perform: PerformOperation) -> "RunnerClient":
        """The client for one operation of a runner."""
        return cls(_Use(engine, channel, perform))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            value = _at(self._use.engine.client, (*self._path, name))
        except AttributeError as err:
            where = ".".join((*self._path, name))
            raise ClientLacksError(f"{self._use.engine.title} has no '{where}'") from err
        if self._use.engine.is_part(value):
            return RunnerClient(self._use, (*self._path, name), self._options)
        return self._method(name) if callable(value) else value

    def options(self, **options: Any) -> "RunnerClient":  # noqa: ANN401 - the client's
        """The same client with options for its requests."""
        return RunnerClient(self._use, self._path, {**self._options, **options})

    def return_raw_response(self) -> None:
        """From now on answers of this operation are given as they came."""
        self._use.raw = True

    @property
    def transport(self) -> "_Transport":
        """What OpenSearch's plug-ins send requests with."""
        return _Transport(self)

    async def perform_request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        """Any request."""
        options = dict(self._options)
        said = {**(options.pop("headers", None) or {}), **(headers or {})}
        if options.get("opaque_id") is not None:
            said["x-opaque-id"] = options.pop("opaque_id")
        if isinstance(body, list) and any("ndjson" in str(value) for value in said.values()):
            # Only one of the two clients would make lines of it.
            body = bulk_body(body)[0]
        query = dict(params or {})
        if "request_timeout" in query:
            options["request_timeout"] = query.pop("request_timeout")
        engine = self._use.engine
        client, more = engine.options(options)
        return self._use.answer(engine.ask(client, method, path, query | more, headers=said, body=body))

    async def perform_operation(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """An operation of a type of benchctl's own."""
        return await self._use.perform(kind, params)

    def __repr__(self) -> str:
        return f"<{' '.join((self._use.engine.title, *self._path))} of benchctl>"

    def _method(self, name: str) -> Callable[..., Awaitable[Any]]:
        use, path, options = self._use, (*self._path, name), self._options

        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the client's
            # Clients of an earlier age took these as arguments, and plug-ins still give them so.
            kwargs |= kwargs.pop("params", None) or {}
            own = {key: kwargs.pop(key) for key in _OPTIONS & kwargs.keys()}
            client, more = use.engine.options({**options, **own})
            before = use.channel.last
            try:
                found = _at(client, path)(*args, **{**kwargs, **more})
            except TypeError as err:
                if use.channel.last is not before:
                    raise
                raise ClientRefusesError(f"{use.engine.title}: {err}") from err
            return use.answer(found)

        return call


class _Transport:
    """The transport of a client, as far as plug-ins use it."""

    def __init__(self, client: RunnerClient) -> None:
        self._client = client

    async def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        """Any request."""
        return await self._client.perform_request(method, url, params=params, headers=headers, body=body)


def _at(value: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever the client has
    for name in path:
        value = getattr(value, name)
    return value
