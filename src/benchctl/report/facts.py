"""Facts of a run: host, engines, indices and progress, which a reader may doubt apart from the speeds."""

import re
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

import msgspec

from benchctl.report.numbers import counted, figure, mebibytes, megabytes
from benchctl.report.table import Items
from benchctl.results.figures import Calibration
from benchctl.results.model import EngineFacts, Environment, IndexFacts, LoadHostFacts, RunRecord, stray_boots
from benchctl.results.plan import CorpusSpec, Plan, RedlineSpec, VariantSpec, cpu_list
from benchctl.stats.disturbed import BUSY_SHARE, cpus_used
from benchctl.track.operations import remedy

_BYTES_PER_MB = 1e6
_NS_PER_MS = 1e6


# Of flags of one kind, a virtual machine obeys the last; these commands add up.
_SETS = re.compile(
    r"-X(?:ms|mx|ss)|-XX:(?!(?:CompileCommand|CompileOnly|OnError|OnOutOfMemoryError)=)[+-]?(?P<option>[^=]+)"
    r"|-D(?P<property>[^=]+)"
)


def in_force(flags: Sequence[str]) -> list[str]:
    """Return flags without those that a later one of the same kind supersedes."""
    kinds = [_kind_of(flag) for flag in flags]
    last = {kind: place for place, kind in enumerate(kinds)}
    return [
        flag
        for place, (flag, kind) in enumerate(zip(flags, kinds, strict=True))
        if not kind or last[kind] == place
    ]


def _kind_of(flag: str) -> str:
    """`-Xmx` of `-Xmx1g`, `-XX:UseG1GC` of `-XX:-UseG1GC`, `-Dname` of `-Dname=value`; else nothing."""
    match = _SETS.match(flag)
    if match is None:
        return ""
    if match["option"]:
        return f"-XX:{match['option']}"
    return f"-D{match['property']}" if match["property"] else match[0]


def fact_sections(record: RunRecord) -> list[Items]:
    """Return all facts of a run; sections without lines are left out."""
    sections = [
        Items("Run", tuple(_run_lines(record))),
        Items("Host", tuple(_host_lines(record.environment))),
        Items("Load", tuple(_load_lines(record))),
        Items("Driver floor", tuple(calibration_lines(record.calibration))),
        Items("Engines", tuple(_engine_lines(record))),
        Items("Differences between variants", tuple(_difference_lines(record))),
        Items("Indices", tuple(_index_lines(record))),
        Items("Answers", tuple(_answer_lines(record))),
        Items("Forks", tuple(_fork_lines(record))),
        Items("Time", tuple(_time_lines(record))),
    ]
    return [section for section in sections if section.lines]


def _run_lines(record: RunRecord) -> Iterator[str]:
    plan = record.plan
    status = record.unfinished or record.status
    yield f"{record.id}, {record.created}, {status}{', a trial (--test-mode)' if plan.test_mode else ''}"
    if record.tags:
        yield f"tags: {' '.join(record.tags)}"
    if record.stopped:
        yield record.stopped
    yield from _measured_lines(plan)
    yield from _warmup_lines(plan)
    heap = "" if plan.micro is not None else f", heap {plan.heap_mb} MiB"
    yield f"{counted(len(record.own_blocks), 'fork')} of every variant, order seed {plan.seed}{heap}"
    if plan.way:
        yield plan.way
    yield from _beside_lines(record)
    yield from _cache_lines(record)
    if plan.pin is not None:
        yield f"pinned: nodes to CPUs {cpu_list(plan.pin.node)}, driver to CPUs {cpu_list(plan.pin.driver)}"
    if plan.origin == "prepared" or plan.corpus.documents:
        yield _corpus_line(plan.corpus)
    if plan.origin == "empty" and plan.micro is None:
        yield "every fork began without data: the challenge makes its own"
    if plan.track_source is not None:
        yield plan.track_source.text
    if plan.plugin is not None:
        yield f"executed the track's plug-in {plan.plugin.path}, digest {plan.plugin.digest[:12]}"


def _warmup_lines(plan: Plan) -> Iterator[str]:
    if plan.warmup_challenges:
        yield f"warm-up after every boot: {', '.join(challenge.name for challenge in plan.warmup_challenges)}"
    for name, own in plan.variant_warmups.items():
        yield f"warm-up of {name} before that: {', '.join(challenge.name for challenge in own)}"
    if plan.pollution is not None:
        yield f"polluted: after {counted(len(plan.pollution.schedule), 'other task')}, not measured"


def _measured_lines(plan: Plan) -> Iterator[str]:
    names = ", at ".join(filter(None, (", ".join(plan.challenges), " x ".join(plan.sweep))))
    if plan.micro is not None:
        micro = plan.micro
        yield f"microbenchmarks of {micro.source}, SHA-256 {micro.digest[:12]}; a JVM for each in every fork"
        if micro.dependencies:
            yield f"standing on {', '.join(micro.dependencies)}"
        if micro.arguments:
            yield f"JMH's arguments: {' '.join(micro.arguments)}"
    elif plan.redline is not None:
        yield from redline_lines(plan, plan.redline)
    else:
        restart = "once a fork" if plan.restart == "never" else f"for every {plan.restart}"
        what = f"challenges: {names}; fresh node: {restart}"
        yield what if names else f"{counted(plan.index_builds, 'index build')} of every variant, and no forks"


def _load_lines(record: RunRecord) -> Iterator[str]:
    """Yield where it came from, unless from this host."""
    if record.plan.load_hosts:
        yield f"from {', '.join(record.plan.load_hosts)}, as {record.plan.hosts} had them"
    for name, host in record.load_hosts.items():
        yield _host_line(name, host)


def _host_line(name: str, host: LoadHostFacts) -> str:
    versions = ", ".join(f"{what} {version}" for what, version in host.versions.items())
    return (
        f"{name}: {counted(host.cores, 'CPU')}, {host.memory_bytes / 2**30:,.1f} GiB, "
        f"{host.round_trip_ns / _NS_PER_MS:.2f} ms there and back; {versions}"
    )


def _corpus_line(corpus: CorpusSpec) -> str:
    digest = f"digest {corpus.digest[:12]}"
    if not corpus.files:
        which = "" if corpus.generator == "big5" else f"{corpus.generator} "
        made = f"seed {corpus.seed}, generator {which}{corpus.generator_version}, {digest}"
        return f"corpus: {corpus.documents:,} documents, {made}"
    held = sum(file.held for file in corpus.files)
    share = "" if corpus.documents == held else f", an even share of {held:,}"
    return f"corpus: {corpus.documents:,} documents{share}, of {counted(len(corpus.files), 'file')}, {digest}"


def _beside_lines(record: RunRecord) -> Iterator[str]:
    """Yield what was done beside the compared forks."""
    evidence = record.plan.evidence
    if record.looks != 1:
        look = "" if record.looks is None else f": look {record.looks}"
        yield f"forks were added after its figures could be seen{look}"
    if evidence is not None:
        extra = f"{counted(evidence.extra_forks, 'further fork')} of every variant"
        forks = extra if evidence.extra_forks else "all forks"
        yield f"evidence: {', '.join(evidence.kinds)}, in {forks}"


def objective_text(search: RedlineSpec) -> str:
    """Return `p90 of latency within 50 ms`."""
    return f"p{search.percentile:g} of latency within {search.limit_ns / 1e6:g} ms"


def redline_lines(plan: Plan, search: RedlineSpec) -> Iterator[str]:
    """Yield what is searched for, and how."""
    bound = "" if search.max_per_s is None else f", at most {search.max_per_s:g}/s"
    fresh = " on a fresh node a fork" if all(spec.target is None for spec in plan.variants) else ""
    yield f"red-line of {search.operation}{fresh}: {objective_text(search)}{bound}"
    yield (
        f"{search.warm_up_s:g} s closed loop, then {search.step_s:g} s a rate after {search.settle_s:g} s, "
        f"{search.schedule} arrivals, {counted(search.clients, 'client')}, "
        f"rates {100 * search.tolerance:g}% apart"
    )


def _cache_lines(record: RunRecord) -> Iterator[str]:
    resident = [boot.resident for fork in record.forks for boot in fork.boots if boot.resident is not None]
    if resident:
        bounds = f"{100 * min(resident):.1f} to {100 * max(resident):.1f}% of it resident"
        yield f"page cache of the index before nodes start: {record.plan.page_cache}, {bounds}"
    begun = [
        share for fork in record.forks for boot in fork.boots if (share := boot.resident_begun) is not None
    ]
    if begun:
        yield f"  when their tasks began: {100 * min(begun):.1f} to {100 * max(begun):.1f}% of it resident"


def _host_lines(host: Environment) -> Iterator[str]:
    yield f"{host.hostname}: {host.distribution}, Linux {host.kernel}{_in_brackets(host.virtualization)}"
    governor = f", governor {host.governor}" if host.governor else ""
    yield f"{host.cpu_model}, {host.cpus} CPUs{governor}, {mebibytes(host.memory_bytes)} memory"
    commit = _in_brackets(host.benchctl_commit)
    yield f"benchctl {host.benchctl}{commit}, Python {host.python}, {host.libcurl}"
    yield f"load before: {', '.join(f'{load:.2f}' for load in host.load_before)}"
    if host.other_java:
        yield f"other Java processes were running: {', '.join(host.other_java)}"


def _in_brackets(text: str | None) -> str:
    return f" ({text})" if text else ""


def _engine_lines(record: RunRecord) -> Iterator[str]:
    for facts in record.engines:
        if record.plan.micro is not None:
            lucene = f", Lucene {facts.lucene}" if facts.lucene else ""
            yield f"{facts.variant}: Java {facts.jdk}{lucene}"
            yield from (f"  {name}, SHA-256 {sha256[:12]}" for name, sha256 in facts.jars.items())
            continue
        yield (
            f"{facts.variant}: version {facts.version}, build {facts.build[:12]}, Lucene {facts.lucene}, "
            f"Java {facts.jdk}{_start(facts.start)}{_verification(facts.verified_by)}"
        )
        for name, sha256 in facts.jars.items():
            yield f"  lib/{name} replaced, SHA-256 {sha256[:12]}"
        for name, version in facts.plugins.items():
            yield f"  plug-in {name} {version}"
        if facts.switched_off:
            switches = (f"{name}={str(value).lower()}" for name, value in facts.switched_off.items())
            yield f"  switched off: {' '.join(switches)}"
        for name, jars in facts.added_modules.items():
            digests = ", ".join(f"{coordinates} {sha256[:12]}" for coordinates, sha256 in jars.items())
            yield f"  module {name} added: {digests}"


def _start(manner: str) -> str:
    return f", started {'by script' if manner == 'script' else manner}" if manner else ""


def _verification(verified_by: str) -> str:
    """Return how the archive was checked; nothing if the record does not say."""
    if not verified_by:
        return ""
    return ", no published checksum" if verified_by == "none" else f", checksum {verified_by}"


def _difference_lines(record: RunRecord) -> Iterator[str]:
    """Yield how each variant differs from the baseline besides the intended change."""
    engines = {facts.variant: facts for facts in record.engines}
    baseline, *others = record.plan.variants
    for other in others:
        if baseline.name in engines and other.name in engines:
            yield from _engine_differences(baseline, other, engines)
        else:
            yield from _flag_difference(baseline, other, baseline.jvm_flags, other.jvm_flags)
        settings = [
            [f"{key}={value}" for key, value in sorted(spec.settings.items())] for spec in (baseline, other)
        ]
        yield from _set_difference("settings", baseline, other, *settings)
        yield from _index_difference(baseline.name, other.name, record.indices)


def _engine_differences(
    baseline: VariantSpec, other: VariantSpec, engines: dict[str, EngineFacts]
) -> Iterator[str]:
    """Self-reported facts of the nodes."""
    first, second = engines[baseline.name], engines[other.name]
    for name in ("version", "lucene", "jdk", "start"):
        pair = (getattr(first, name), getattr(second, name))
        if pair[0] != pair[1] and "" not in pair:
            yield f"{name}: {baseline.name} {pair[0]}, {other.name} {pair[1]}"
    yield from _flag_difference(baseline, other, first.jvm_flags, second.jvm_flags)


def _flag_difference(
    baseline: VariantSpec, other: VariantSpec, first: Sequence[str], second: Sequence[str]
) -> Iterator[str]:
    """Of the flags in force only: a heap that a later flag replaces is not one that a node had."""
    yield from _set_difference("JVM flags", baseline, other, in_force(first), in_force(second))


def _set_difference(
    what: str, baseline: VariantSpec, other: VariantSpec, first: Sequence[str], second: Sequence[str]
) -> Iterator[str]:
    for spec, own, foreign in ((baseline, first, second), (other, second, first)):
        only = [item for item in own if item not in foreign]
        if only:
            yield f"{what} of {spec.name} only: {' '.join(only)}"


def _index_difference(baseline: str, other: str, indices: dict[str, IndexFacts]) -> Iterator[str]:
    if baseline in indices and other in indices:
        first, second = _geometry(indices[baseline]), _geometry(indices[other])
        if first != second:
            yield f"index: {baseline} {first}; {other} {second}"


def _geometry(facts: IndexFacts) -> str:
    """Number and kind of segments, and size: `1 compound segment, 295.7 MB`."""
    segments, size = len(facts.segments), megabytes(facts.store_bytes)
    compound = sum(segment.compound for segment in facts.segments)
    if compound and compound == segments:
        return f"{counted(segments, 'compound segment')}, {size}"
    some = f" ({compound:,} compound)" if compound else ""
    return f"{counted(segments, 'segment')}{some}, {size}"


def _index_lines(record: RunRecord) -> Iterator[str]:
    named = [
        (name if len(builds) == 1 else f"{name}, build {number} of {len(builds)}", facts)
        for name in record.indices
        for builds in (record.builds_of(name),)
        for number, facts in enumerate(builds, 1)
    ]
    for name, facts in named:
        yield (
            f"{name}: {facts.documents:,} documents, {megabytes(facts.store_bytes)}, "
            f"{counted(len(facts.segments), 'segment')} ({_segments(facts)})"
            f"{', from the cache' if facts.cached else ''}"
        )
        yield from (f"  {line}" for line in _ingest_lines(facts))


def _segments(facts: IndexFacts) -> str:
    lucene = sorted({segment.lucene for segment in facts.segments})
    sizes = " ".join(f"{segment.documents:,}" for segment in facts.segments)
    return f"documents {sizes}; Lucene {', '.join(lucene)}"


def _ingest_lines(facts: IndexFacts) -> Iterator[str]:
    ingest = facts.ingest
    if ingest.clients == 0:
        yield "found on the cluster, not filled by this run"
        return
    if ingest.ingest_s > 0:
        yield (
            f"ingest: {ingest.docs_per_s:,.0f} docs/s, "
            f"{ingest.body_bytes / _BYTES_PER_MB / ingest.ingest_s:,.1f} MB/s "
            f"with {counted(ingest.clients, 'sender')}, {ingest.ingest_s:.1f} s"
            f"{', while another index was built' if ingest.beside else ''}"
        )
    if ingest.engine_indexing_s > 0:
        yield (
            f"the engine's own indexing clock: {ingest.engine_indexing_s:.1f} s over its threads, "
            f"{ingest.documents / ingest.engine_indexing_s:,.0f} docs/s of it"
        )
    yield (
        f"client / engine seconds: refresh {ingest.refresh_s:.1f} / {ingest.engine_refresh_s:.1f}, "
        f"merge {ingest.force_merge_s:.1f} / {ingest.engine_merge_s:.1f}, "
        f"flush {ingest.flush_s:.1f} / {ingest.engine_flush_s:.1f}"
    )


def _answer_lines(record: RunRecord) -> Iterator[str]:
    check = record.answers
    if record.plan.micro is not None:
        return
    if check is None:
        yield "not compared: the variants may not do the same work"
        return
    if not check.operations:
        yield "none compared: the requests of these operations differ from one to the next, or search nothing"
    elif not check.findings:
        where = f", asked of the first of {record.plan.index_builds} index builds" if record.builds else ""
        count = len(check.operations)
        yield f"the same on {'the one operation' if count == 1 else f'all {count} operations'}{where}"
    if left_out := record.left_out_of_pollution:
        yield f"left out of the pollution of all variants: {', '.join(sorted(left_out))}"
    for finding in check.findings:
        if finding.kind == "unsupported":
            cause = f"{finding.detail}{remedy(finding.detail)}"
            yield f"{finding.operation}: {finding.variant} cannot do it: {cause}"
        elif finding.kind == "failed":
            yield f"{finding.operation}: {finding.variant} refuses it: {finding.detail}"
        else:
            yield f"{finding.operation}: {finding.variant} differs from {finding.baseline}: {finding.detail}"


def _fork_lines(record: RunRecord) -> Iterator[str]:
    """Order, and the forks that are unlike the others."""
    blocks = sorted({fork.block for fork in record.forks})
    for block in blocks:
        members = sorted(
            (fork for fork in record.forks if fork.block == block), key=lambda fork: fork.position
        )
        extra = ", for evidence alone" if record.plan.is_extra(block) else ""
        yield f"block {block}: {', '.join(fork.variant for fork in members)}{extra}"
    for fork in record.forks:
        if fork.status == "failed":
            yield f"fork {fork.block} of {fork.variant} failed: {fork.reason}"
        # One search that benchctl did not send can change what the JIT learns.
        for boot in stray_boots(fork):
            yield (
                f"fork {fork.block} of {fork.variant}: the node counted {boot.searches_counted or 0:,} "
                f"searches where {boot.searches_sent:,} were sent"
            )
    yield from _other_lines(record)


def _other_lines(record: RunRecord) -> Iterator[str]:
    """Yield the forks during which other processes used CPUs, and of which variants that is unknown."""
    for fork in record.forks:
        if fork.others is not None and fork.others.share > BUSY_SHARE:
            used = cpus_used([fork.others])
            yield f"fork {fork.block} of {fork.variant}: other processes used {used}"
    unknown = dict.fromkeys(fork.variant for fork in record.forks if fork.others is None)
    if unknown:
        yield f"CPU of other processes: unknown for forks of {', '.join(unknown)}"


def _time_lines(record: RunRecord) -> Iterator[str]:
    for spec in record.plan.variants:
        forks = record.compared(spec.name)
        boots = [boot for fork in forks for boot in fork.boots]
        if not boots:
            continue
        yield (
            f"{spec.name}: node start {_mean(boot.start_s for boot in boots)} s, "
            f"waiting until idle {_mean(boot.idle_s for boot in boots)} s, "
            f"stop {_mean(boot.stop_s for boot in boots)} s; a fork: "
            f"requests {_mean(fork.requests_s for fork in forks)} s, "
            f"copy {_mean(fork.copy_s for fork in forks)} s, "
            f"rest {_mean(fork.overhead_s for fork in forks)} s, "
            f"{'a share of the block' if record.plan.together else 'all'} "
            f"{_mean(fork.wall_s for fork in forks)} s"
        )
    if record.timings:
        yield ", ".join(
            f"{name.removesuffix('-s')} {figure(seconds)} s" for name, seconds in record.timings.items()
        )


def _mean(seconds: Iterable[float]) -> str:
    return f"{fmean(seconds):.2f}"


_NS_PER_US = 1e3


def calibration_lines(found: Calibration | None) -> Iterator[str]:
    """Yield the driver's floor in sentences; none if it was not measured."""
    if found is None:
        return
    if len(found.hosts) > 1:
        for name, host in found.hosts.items():
            yield from (
                f"{name}: {line}" for line in calibration_lines(msgspec.structs.replace(host, hosts={}))
            )
        return
    yield (
        f"service time is overstated by {_us(found.error_p50_ns)} us (p50), {_us(found.error_p99_ns)} us "
        f"(p99); a request costs {_us(found.cpu_ns_per_request)} us of CPU"
    )
    yield (
        f"at most {found.one_client_per_s:,.0f} requests/s with 1 client, "
        f"{found.clients_per_s:,.0f} requests/s with {found.clients}"
    )
    for paced in found.paced:
        yield (
            f"open loop at {paced.rate_per_s:g}/s: sent late by {_us(paced.lag_p50_ns)} us (p50), "
            f"{_us(paced.lag_p99_ns)} us (p99), {_us(paced.lag_max_ns)} us (most)"
        )


def _us(span_ns: int) -> str:
    return f"{span_ns / _NS_PER_US:,.0f}"
