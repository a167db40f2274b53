"""Why somebody could not be told."""


class SendError(Exception):
    """A message did not arrive.

    Args:
        reason: why, in words that hold no secret.
        silent: nobody answered, or only to be left alone: further messages need not be tried now.
        final: trying again would not help, or would tell some people twice.
    """

    def __init__(self, reason: str, *, silent: bool = False, final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.silent = silent
        self.final = final
