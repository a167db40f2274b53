"""What confirmations may cost, as suites say it; apart from what confirms, which loads all statistics."""

import msgspec


class ConfirmLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How much a confirmation may cost.

    Attributes:
        least_forks: of either side; with fewer, nothing is run.
        most_forks: of either side.
        share_of_budget: of the night's budget that is kept free for confirmations until the night's own
            forks are done.
    """

    least_forks: int = 5
    most_forks: int = 20
    share_of_budget: float = 0.4
