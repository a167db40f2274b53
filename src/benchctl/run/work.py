"""What operations are told of a plan: where they go, and which documents there are."""

import msgspec

from benchctl.engine.declared import EVERYTHING, places
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.work.programs import open_workload
from benchctl.load.workload import WorkContext
from benchctl.results.plan import EngineName, Plan
from benchctl.run.documents import GeneratedReader, is_generated, sources
from benchctl.run.plugin import plugin_use
from benchctl.track.model import Track
from benchctl.track.operations.catalogue import PluginOperation


def work_context(
    plan: Plan, track: Track, home: Home, engine: EngineName, session: int = 0, version: str = ""
) -> WorkContext:
    """Where the tasks of a plan run.

    Operations that name no index mean the only index or data stream, as in Rally. Of several they mean all:
    by their names where those are there for certain, else whatever the challenge has made by then.

    Args:
        plan: of the run.
        track: of the plan.
        home: where corpora are kept.
        engine: of the node.
        session: of the track's plug-in: tasks of the same one share what its modules hold.
        version: of the engine; empty while no node is up.
    """
    bodies = {one.name: msgspec.to_builtins(one.body) for one in track.indices}
    return WorkContext(
        index_name=default_target(plan, track),
        index_body=next(iter(bodies.values())) if len(bodies) == 1 else {},
        indices=bodies,
        data_streams=track.data_streams,
        templates=track.templates,
        seed=plan.seed,
        documents=GeneratedReader(home, plan.corpus) if is_generated(plan) else None,
        document_count=plan.corpus.documents,
        sources=sources(plan, track, home),
        engine=engine,
        assertions=plan.assertions,
        plugin=plugin_use(plan, track, session),
        version=version,
    )


def default_target(plan: Plan, track: Track) -> str:
    """What operations ask that name no index, as it stands in a path."""
    wanted = places(track, plan.corpus.files)
    return wanted.target if plan.origin == "prepared" or len(wanted.names) == 1 else EVERYTHING


def check_work(plan: Plan, track: Track, home: Home) -> None:
    """Make every task's work ready once, without a node: what it lacks is found out now.

    Raises:
        UsageError: an operation needs something that is not there.
    """
    context = work_context(plan, track, home, plan.variants[0].engine)
    for challenge in (*plan.all_warmups, *plan.schedules):
        operations = {**track.operations, **challenge.operations}
        for task in challenge.schedule:
            operation = operations[task.operation]
            if isinstance(operation, PluginOperation):
                # Its code may do anything when it is made ready; it was checked when it was allowed.
                continue
            try:
                open_workload(operation, context, clients=task.clients, key=task.label).close()
            except BenchctlError as err:
                raise UsageError(f"challenge '{challenge.name}', {err.message}", hint=err.hint) from err
