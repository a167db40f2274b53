"""`benchctl runs import`: results of Rally, OpenSearch Benchmark and JMH as a run."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click
import msgspec

from benchctl.cli.options import open_store, runs_option, tags_option
from benchctl.cli.streams import note, say
from benchctl.engine.variant import parse_variant
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.results.foreign import Race, Tool, read_races, record_of
from benchctl.results.model import RunRecord
from benchctl.results.plan import VariantSpec
from benchctl.results.store import new_run_id, reference
from benchctl.slices import hook

_LAST_ONLY_OF_OPENSEARCH = 4  # no tool that is left measures Elasticsearch before 5
_TOOLS: dict[str, Tool] = {"rally": "rally", "osb": "opensearch-benchmark"}


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--variant",
    "variant_text",
    metavar="VARIANT",
    help="What was measured: es, os, es@8.19.0 or LABEL=es; of JMH any name.  [required]",
)
@click.option(
    "--tool",
    type=click.Choice(list(_TOOLS)),
    default=None,
    help="Tool that wrote the files.  [default: what they say]",
)
@tags_option
@runs_option
def import_command(
    files: tuple[Path, ...],
    variant_text: str | None,
    tool: str | None,
    tags: tuple[str, ...],
    runs_folder: Path | None,
) -> None:
    """Import Rally, OpenSearch Benchmark or JMH results.

    FILES are race.json (Rally), or test_run.json or test_execution.json (OpenSearch Benchmark): each becomes
    one fork of a single variant. A jmh-result.json contains its own forks. Imported runs have no samples and
    no host data, so some metrics and checks are unavailable.
    """
    if missing := next((file for file in files if not file.exists()), None):
        raise UsageError(f"no such file: {missing}")
    if variant_text is None:
        raise UsageError(
            "no file says what was measured",
            hint="name it: --variant es, os, es@8.19.0, or LABEL=es to keep it apart from others",
        )
    home = resolve_home()
    keep_rest: Callable[[Path, RunRecord], None] | None = None
    if found := hook("imported")(files, variant_text, tags):
        label, made, keep_rest = found
    else:
        races = read_races(files, None if tool is None else _TOOLS[tool])
        spec = _variant(variant_text, races[0])
        label = f"{races[0].tool}-{races[0].challenge or races[0].track or spec.name}"
        made = record_of(races, spec, "", tags=tags)
    store = open_store(home, runs_folder)
    store.open()
    # Sorted by when it was measured: an old race is not the newest result because it is imported today.
    moment = datetime.fromisoformat(max(fork.started for fork in made.forks))
    folder = store.create(new_run_id(label, f"{moment:%Y%m%d-%H%M%S}"))
    record = msgspec.structs.replace(made, id=folder.path.name)
    if keep_rest is not None:
        keep_rest(folder.path, record)
    folder.save(record)
    say(f"Run: {folder.path}\nShow: benchctl show {reference(folder, home.runs)}")
    for remark in record.caveats:
        note(remark)


def _variant(text: str, race: Race) -> VariantSpec:
    """Return the variant that the user names; it must not contradict the version in the file."""
    spec = parse_variant(text)
    found = race.engine_version
    major = found.partition(".")[0]
    if spec.engine == "elasticsearch" and major.isdecimal() and int(major) <= _LAST_ONLY_OF_OPENSEARCH:
        raise UsageError(
            f"{race.path} measured version {found}, which is OpenSearch's, not Elasticsearch's",
            hint="import it as os, or as LABEL=os",
        )
    if "@" not in text:
        return spec if found else _of_unknown_version(spec)
    if found and found != spec.version:
        raise UsageError(
            f"{race.path} measured version {found}, not {spec.version}",
            hint=f"name another variant, such as {text.replace(spec.version, found)}",
        )
    return spec


def _of_unknown_version(spec: VariantSpec) -> VariantSpec:
    return VariantSpec(spec.name, spec.engine, "unknown", jvm_flags=spec.jvm_flags, settings=spec.settings)
