"""What became of calls, in the words of every report."""

from collections.abc import Mapping
from types import MappingProxyType

from benchctl.results.experiment import Found

FOUND_WORDS: Mapping[Found, str] = MappingProxyType(
    {
        "inlined": "inlined",
        "partly": "inlined in part",
        "virtual": "virtual call",
        "refused": "not inlined",
        "absent": "not compiled by C2",
    }
)
PARTLY = "inlined in part: the code of some receivers is there, calls of the others are dispatched"
"""How to read the one that HotSpot has no word for."""
