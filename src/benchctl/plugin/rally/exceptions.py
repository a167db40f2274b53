"""The exceptions that plug-ins raise and catch, by Rally's and OpenSearch Benchmark's names."""


class RallyError(Exception):
    """The root of them.

    Args:
        message: what is wrong.
        cause: what brought it about.
    """

    def __init__(self, message: object = "", cause: object = None) -> None:
        super().__init__(message, cause)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        return str(self.message) if self.cause is None else f"{self.message} ({self.cause})"


class RallyAssertionError(RallyError):
    """Something cannot be as it is."""


class RallyTaskAssertionError(RallyAssertionError):
    """An assertion of a task does not hold."""


class SystemSetupError(RallyError):
    """Something is not set up as it has to be."""


class DataError(RallyError):
    """Data are not as they have to be."""


class InvalidSyntax(RallyError):  # noqa: N818 - the name that plug-ins know
    """A track says something that means nothing."""


class InvalidName(RallyError):  # noqa: N818 - the name that plug-ins know
    """A name means nothing."""


class NotFound(RallyError):  # noqa: N818 - the name that plug-ins know
    """There is no such thing."""


class TrackConfigError(RallyError):
    """A track's parameters contradict each other."""


class TrackSyntaxError(InvalidSyntax):
    """A track cannot be read."""


class Unsupported(SystemSetupError):  # noqa: N818 - what is so, not a mistake of the plug-in
    """What a plug-in asks for, and benchctl does not do: the task that needs it is n/a."""


def _others(*names: str) -> dict[str, type[RallyError]]:
    """Exceptions that public plug-ins rarely name, each a class of its own."""
    return {name: type(name, (RallyError,), {}) for name in names}


OTHERS = _others(
    "BuildError", "ConfigError", "ConfigurationError", "DataStreamingError", "InstallError",
    "InvalidExtensionException", "LaunchError", "MappingsError", "SupplyError", "UserInterrupted",
)  # fmt: skip
"""Name -> class."""

NotFoundError = NotFound
BenchmarkError = RallyError
BenchmarkAssertionError = RallyAssertionError
BenchmarkTaskAssertionError = RallyTaskAssertionError
ExecutorError = SystemSetupError
WorkloadConfigError = TrackConfigError
WorkloadSyntaxError = TrackSyntaxError
