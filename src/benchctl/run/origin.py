"""What every fork begins on: a copy of prepared data, or an empty node and the challenge's own data."""

from collections.abc import Iterable, Sequence

import msgspec

from benchctl.engine.declared import places
from benchctl.errors import UsageError
from benchctl.results.plan import DataOrigin, Plan
from benchctl.track.model import Challenge, Corpus, Documents, Track, TrackOperation
from benchctl.track.operations.admin import CreateDataStream, CreateIndex, names_of
from benchctl.track.operations.search import Bulk, Elsewhere, RawRequest

_BULK = "bulk"
_RESTORE = "restore-snapshot"


def origin_of(track: Track, schedules: Sequence[Challenge], warmups: Sequence[Challenge] = ()) -> DataOrigin:
    """How the data of forks comes to be.

    A challenge makes its data when it creates what the track declares, restores a snapshot, or sends the
    track's corpora. One that only sends generated documents to an index of its own track appends to what was
    prepared, and so does one that makes further indices.

    Args:
        track: with the operations of the challenges.
        schedules: the measured challenges, in order.
        warmups: those that run on every fresh node before them.

    Raises:
        UsageError: a challenge would run before there is any data.
    """
    declared = places(track).names
    making = [challenge.name for challenge in schedules if _makes(challenge, track, declared)]
    if not making:
        return "prepared" if declared else "empty"
    early = schedules[0].name
    if early not in making:
        raise UsageError(
            f"challenge '{early}' comes before '{making[0]}', which makes the data: it would find none",
            hint=f"name '{making[0]}' first, or run '{early}' by itself, on data that benchctl prepares",
        )
    if warmups:
        raise UsageError(
            f"warm-up challenge '{warmups[0].name}' runs on every fresh node first, when '{early}' has not "
            "made its data yet",
            hint="leave out --warmup-challenge, or warm up by tasks of the challenge itself",
        )
    return "empty"


def needed_corpora(track: Track, schedules: Iterable[Challenge], origin: DataOrigin) -> tuple[Corpus, ...]:
    """Of a track's corpora what a run sends: all that is prepared, or what its own tasks ask for.

    Args:
        track: with the operations of the challenges.
        schedules: the measured challenges.
        origin: what forks begin on.
    """
    if origin == "prepared":
        return track.corpora
    tasks = [track.operations[task.operation] for challenge in schedules for task in challenge.schedule]
    sending = [operation for operation in tasks if _sends(operation)]
    found = []
    for corpus in track.corpora:
        documents = tuple(
            one for one in corpus.documents if any(_asks_for(operation, corpus, one) for operation in sending)
        )
        if documents:
            found.append(msgspec.structs.replace(corpus, documents=documents))
    return tuple(found)


def streams_made(plan: Plan, track: Track) -> tuple[str, ...]:
    """Data streams that a plan's own tasks make or fill, by name."""
    operations = track.with_challenges(*plan.all_warmups, *plan.schedules).operations
    found: dict[str, None] = {}
    for challenge in plan.schedules:
        for task in challenge.schedule:
            operation = operations[task.operation]
            if isinstance(operation, CreateDataStream | Bulk):
                found |= dict.fromkeys(names_of(operation.data_stream))
    return tuple(found)


def sends_documents(track: Track, schedules: Iterable[Challenge]) -> bool:
    """Whether any task takes documents from a corpus."""
    return any(
        _sends(track.operations[task.operation]) for challenge in schedules for task in challenge.schedule
    )


def _makes(challenge: Challenge, track: Track, declared: tuple[str, ...]) -> bool:
    """Whether a challenge makes what the track's searches ask."""
    operations = {**track.operations, **challenge.operations}
    return any(
        _makes_data(operations[task.operation], declared, bool(track.corpora)) for task in challenge.schedule
    )


def _makes_data(operation: TrackOperation, declared: tuple[str, ...], corpora: bool) -> bool:  # noqa: FBT001 - of the track
    if isinstance(operation, CreateIndex | CreateDataStream):
        named = operation.index if isinstance(operation, CreateIndex) else operation.data_stream
        return _is_among(names_of(named), declared)
    if isinstance(operation, RawRequest):
        return operation.method == "PUT" and operation.path.partition("?")[0].strip("/") in declared
    # Those of a plug-in are known by the name of their type alone.
    return operation.type_name == _RESTORE or (corpora and _sends(operation))


def _is_among(names: tuple[str, ...], declared: tuple[str, ...]) -> bool:
    """Nothing named, or nothing declared, means whatever there is."""
    return not names or not declared or not set(names).isdisjoint(declared)


def _sends(operation: TrackOperation) -> bool:
    return operation.type_name == _BULK and not isinstance(operation, Elsewhere)


def _asks_for(operation: TrackOperation, corpus: Corpus, documents: Documents) -> bool:
    if not isinstance(operation, Bulk):
        # What a plug-in sends, only its code knows.
        return True
    return (
        _chosen(corpus.name, names_of(operation.corpora))
        and _chosen(documents.target_index, names_of(operation.indices))
        and _chosen(documents.target_data_stream, names_of(operation.data_streams))
    )


def _chosen(name: str | None, names: tuple[str, ...]) -> bool:
    return not names or name in names
