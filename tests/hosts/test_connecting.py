"""What is said of a scheduler that nobody reaches."""

import pytest

pytest.importorskip("distributed")

from distributed.comm import CommClosedError

from benchctl.hosts.pool import unreached


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (TimeoutError(), "it did not answer within 10 s"),
        (ValueError("IOStream is not idle; cannot convert to SSL"), "what is there ended the connection"),
        (
            CommClosedError("in <distributed.comm.tcp.TLSConnector object at 0x7f8a>: SSLError: [SSL] wrong"),
            "[SSL] wrong",
        ),
        (OSError(113, "No route to host"), "[Errno 113] No route to host"),
        (CommClosedError(), "CommClosedError"),
    ],
)
def test_why_a_scheduler_is_not_reached_is_said_in_words(cause: Exception, said: str):
    outer = OSError("Timed out trying to connect to tls://127.0.0.1:8786 after 10 s")
    outer.__cause__ = cause
    assert unreached(outer) == unreached(cause) == said
