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


BenchmarkError = RallyError
BenchmarkAssertionError = RallyAssertionError
BenchmarkTaskAssertionError = RallyTaskAssertionError
ExecutorError = SystemSetupError
WorkloadConfigError = TrackConfigError
WorkloadSyntaxError = TrackSyntaxError
