"""`benchctl completion`: the script that makes a shell complete, and the names that only benchctl knows."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from benchctl.cli.streams import emit
from benchctl.errors import BenchctlError
from benchctl.home import home_root
from benchctl.results.finding import LATEST
from benchctl.results.store import RunStore

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_PROGRAM: Final = "benchctl"
_VARIABLE: Final = "_BENCHCTL_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    r"""Print the script that makes SHELL complete commands, options, runs, variants, challenges and tracks.

    \b
    bash: echo 'eval "$(benchctl completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(benchctl completion zsh)"' >> ~/.zshrc
    fish: benchctl completion fish > ~/.config/fish/completions/benchctl.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise BenchctlError(f"click has no completion for {shell}")
    emit(kind(context.find_root().command, {}, _PROGRAM, _VARIABLE).source() + "\n")


def complete_runs(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of stored runs, the newest first; nothing is created, not even a home."""
    del param
    folder: Path | None = context.params.get("runs_folder")
    try:
        folders = RunStore(folder or home_root() / "runs").folders()
    except BenchctlError:
        return []  # a shell that waits for names has no use for a message
    return _items([LATEST, *(folder.path.name for folder in reversed(folders))], incomplete)


def completing(known: Callable[[], Iterable[str]]) -> Complete:
    """Completes a known name, or else a path."""

    def complete(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del context, param
        return _items(known(), incomplete) or [CompletionItem(incomplete, type="file")]

    return complete


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
