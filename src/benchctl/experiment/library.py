"""Where experiments are found: the ones shipped with benchctl, and the user's own by path."""

from pathlib import Path

from benchctl.errors import UsageError
from benchctl.nearest import guess
from benchctl.track.library import shipped


def experiment_names() -> tuple[str, ...]:
    """Names of the shipped experiments, sorted."""
    return tuple(sorted(path.stem for path in shipped("experiments").glob("*.yml")))


def find_experiment(name: str) -> Path:
    """The file of an experiment: a shipped name, or a path.

    Raises:
        UsageError: there is no such experiment.
    """
    known = experiment_names()
    if name in known:
        return shipped("experiments") / f"{name}.yml"
    path = Path(name)
    try:
        if path.is_file():
            return path
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise UsageError(f"cannot look for experiment '{name}': {reason}") from err
    near = guess(name, known)
    raise UsageError(
        f"there is no experiment '{name}'",
        hint=f"{near} known: {', '.join(known) or 'none'}; or give the path of a YAML file".lstrip(),
    )
