"""How engines say that they do not know a query, an aggregation, a language, a path or a part of the body."""

import re

UNKNOWN_TYPE = "named_object_not_found_exception"

_UNKNOWN = re.compile(
    r"unknown (?:query|aggregation|suggester|suggestion|rescorer)\b"
    r"|no \[[\w-]+\] registered for \["
    r"|script_lang not supported"
    r"|no handler found for uri"
    # A node that lacks these takes them for names of indices, which have no such method.
    r"|incorrect http method for uri \[/_(?:sql|query|data_stream/|transform/)"
    r"|setting \[search\.concurrent[\w.]*\], not recognized"
    r"|unknown key for a ",
    re.IGNORECASE,
)


def names_unknown(reason: str) -> bool:
    """Whether a node's words about a request mean that it lacks the operation, not that it is wrong."""
    return _UNKNOWN.search(reason) is not None or UNKNOWN_TYPE in reason
