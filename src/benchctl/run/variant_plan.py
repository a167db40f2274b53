"""What variants ask of a plan, checked before any node starts."""

from collections.abc import Iterable

from benchctl.engine.declared import places
from benchctl.errors import UsageError
from benchctl.results.plan import DataOrigin, VariantSpec
from benchctl.track.model import Track


def check_index_settings(variants: Iterable[VariantSpec], track: Track, origin: DataOrigin) -> None:
    """What would have no effect is not asked for in vain.

    Raises:
        UsageError: a variant has index settings, and benchctl prepares no index that could get them.
    """
    name = next((spec.name for spec in variants if spec.index_settings), None)
    if name is None:
        return
    # Those of data streams are in templates, and no track has both.
    if origin == "empty" or not places(track).indices:
        raise UsageError(
            f"variant '{name}' has index settings, but no index is prepared that could get them",
            hint="set them where the data are made: in the challenge, or in the track's templates",
        )
