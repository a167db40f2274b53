"""Facts of a run: host, engines, indices and progress, which a reader may doubt apart from the speeds."""

from collections.abc import Iterator
from statistics import fmean

import msgspec

from benchctl.report.numbers import counted, mebibytes, megabytes
from benchctl.report.table import Items
from benchctl.results.figures import Calibration
from benchctl.results.likeness import DIFFERENCES, resolved, side_differences
from benchctl.results.model import (
    Environment,
    IndexFacts,
    IngestReport,
    OtherLoad,
    RunRecord,
    stray_boots,
)
from benchctl.results.plan import CorpusSpec, Plan, RedlineSpec, cpu_list
from benchctl.stats.disturbed import BUSY_SHARE, cpus_used
from benchctl.track.operations import remedy

_NS_PER_MS, _NS_PER_US = 1e6, 1e3
_WHOLE = 4096  # characters of a value


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
        Items("Search results", tuple(_answer_lines(record))),
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
    heap = "" if plan.micro is not None else f", heap {plan.heap_mb} MiB"
    yield f"{counted(len(record.own_blocks), 'fork')} per variant, in random order (seed {plan.seed}){heap}"
    if record.looks != 1:
        look = "" if record.looks is None else f" (analysis {record.looks})"
        yield f"forks were added after results could be seen{look}"
    yield from _setup_lines(plan)
    boots = [boot for fork in record.forks for boot in fork.boots]
    for when, shares in (
        ("before nodes start", [boot.resident for boot in boots]),
        ("when their tasks began", [boot.resident_begun for boot in boots]),
    ):
        if known := [share for share in shares if share is not None]:
            bounds = f"{100 * min(known):.1f} to {100 * max(known):.1f}% of the index"
            yield f"page cache ({plan.page_cache}) {when}: {bounds}"
    if plan.origin == "prepared" or plan.corpus.documents:
        yield _corpus_line(plan.corpus)
    if plan.origin == "empty" and plan.micro is None:
        yield "every fork began without data: the challenge indexes it"


def _setup_lines(plan: Plan) -> Iterator[str]:
    """Yield what not every plan has."""
    if plan.way:
        yield plan.way
    if plan.warmup_challenges:
        yield f"warm-up after every boot: {', '.join(challenge.name for challenge in plan.warmup_challenges)}"
    for name, own in plan.variant_warmups.items():
        yield f"warm-up of {name} before that: {', '.join(challenge.name for challenge in own)}"
    if plan.pollution is not None:
        yield f"polluted: after {counted(len(plan.pollution.schedule), 'other task')}, not measured"
    if plan.evidence is not None:
        extra = f"{counted(plan.evidence.extra_forks, 'further fork')} of every variant"
        where = extra if plan.evidence.extra_forks else "all forks"
        yield f"evidence: {', '.join(plan.evidence.kinds)}, in {where}"
    if plan.pin is not None:
        yield f"pinned: nodes to CPUs {cpu_list(plan.pin.node)}, driver to CPUs {cpu_list(plan.pin.driver)}"
    if plan.track_source is not None:
        yield plan.track_source.text
    if plan.plugin is not None:
        yield f"executed the track's plug-in {plan.plugin.path}, digest {plan.plugin.digest[:12]}"


def _measured_lines(plan: Plan) -> Iterator[str]:
    names = ", at ".join(filter(None, (", ".join(plan.challenges), " x ".join(plan.sweep))))
    if plan.micro is not None:
        micro = plan.micro
        yield f"microbenchmarks of {micro.source}, SHA-256 {micro.digest[:12]}; a JVM for each per fork"
        if micro.dependencies:
            yield f"with dependencies {', '.join(micro.dependencies)}"
        if micro.arguments:
            yield f"JMH's arguments: {' '.join(micro.arguments)}"
    elif plan.redline is not None:
        yield from redline_lines(plan, plan.redline)
    else:
        restart = "once per fork" if plan.restart == "never" else f"for every {plan.restart}"
        what = f"challenges: {names}; fresh node: {restart}"
        yield what if names else f"{counted(plan.index_builds, 'index build')} of every variant, and no forks"


def _load_lines(record: RunRecord) -> Iterator[str]:
    """Yield where it came from, unless from this host."""
    if record.plan.load_hosts:
        yield f"from {', '.join(record.plan.load_hosts)}, as in {record.plan.hosts}"
    for name, host in record.load_hosts.items():
        versions = ", ".join(f"{what} {version}" for what, version in host.versions.items())
        yield (
            f"{name}: {counted(host.cores, 'CPU')}, {mebibytes(host.memory_bytes)}, "
            f"round trip {host.round_trip_ns / _NS_PER_MS:.2f} ms; {versions}"
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


def objective_text(search: RedlineSpec) -> str:
    """Return `p90 of latency within 50 ms`."""
    return f"p{search.percentile:g} of latency within {search.limit_ns / 1e6:g} ms"


def redline_lines(plan: Plan, search: RedlineSpec) -> Iterator[str]:
    """Yield what is searched for, and how."""
    bound = "" if search.max_per_s is None else f", at most {search.max_per_s:g}/s"
    fresh = " on a fresh node per fork" if all(spec.target is None for spec in plan.variants) else ""
    yield f"red-line of {search.operation}{fresh}: {objective_text(search)}{bound}"
    yield (
        f"{search.warm_up_s:g} s closed loop, then for each rate {search.step_s:g} s after "
        f"{search.settle_s:g} s, {search.schedule} arrivals, {counted(search.clients, 'client')}, "
        f"rates {100 * search.tolerance:g}% apart"
    )


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
    of_node = record.plan.micro is None
    for facts in record.engines:
        parts = [f"version {facts.version}", f"build {facts.build[:12]}"] if of_node else []
        parts += [f"Lucene {facts.lucene}"] if facts.lucene else []
        parts.append(f"Java {facts.jdk}")
        if facts.start and of_node:
            parts.append(f"started {'by script' if facts.start == 'script' else facts.start}")
        if facts.verified_by and of_node:
            unchecked = facts.verified_by == "none"
            parts.append("no published checksum" if unchecked else f"checksum {facts.verified_by}")
        yield f"{facts.variant}: {', '.join(parts)}"
        for name, sha256 in facts.jars.items():
            yield f"  {f'lib/{name} replaced' if of_node else name}, SHA-256 {sha256[:12]}"
        for name, version in facts.plugins.items():
            yield f"  plug-in {name} {version}"
        if facts.switched_off:
            switches = (f"{name}={str(value).lower()}" for name, value in facts.switched_off.items())
            yield f"  switched off: {' '.join(switches)}"
        for name, jars in facts.added_modules.items():
            digests = ", ".join(f"{coordinates} {sha256[:12]}" for coordinates, sha256 in jars.items())
            yield f"  module {name} added: {digests}"


def _difference_lines(record: RunRecord) -> Iterator[str]:
    """Yield how variants differ, what nobody asked for first."""
    found = side_differences(resolved(record))
    for kind, words in DIFFERENCES.items():
        for difference in found:
            if difference.kind == kind:
                yield f"{words}: {difference.text(_WHOLE)}"


def _geometry(facts: IndexFacts) -> str:
    """Return number and kind of segments, and size: `2 segments (1 compound), 295.7 MB`."""
    compound = sum(segment.compound for segment in facts.segments)
    some = f" ({compound:,} compound)" if compound else ""
    return f"{counted(len(facts.segments), 'segment')}{some}, {megabytes(facts.store_bytes)}"


def _index_lines(record: RunRecord) -> Iterator[str]:
    for name in record.indices:
        builds = record.builds_of(name)
        for number, facts in enumerate(builds, 1):
            build = "" if len(builds) == 1 else f", build {number} of {len(builds)}"
            lucene = ", ".join(sorted({segment.lucene for segment in facts.segments}))
            cached = ", from the cache" if facts.cached else ""
            yield f"{name}{build}: {facts.documents:,} documents, {_geometry(facts)}, Lucene {lucene}{cached}"
            yield f"  {_ingest_text(facts.ingest)}"


def _ingest_text(ingest: IngestReport) -> str:
    if ingest.clients == 0:
        return "an existing index of the cluster, not built by this run"
    rate = f"{ingest.docs_per_s:,.0f} docs/s, " if ingest.ingest_s > 0 else ""
    return (
        f"ingest: {rate}{ingest.ingest_s:.1f} s with {counted(ingest.clients, 'sender')}; refresh "
        f"{ingest.refresh_s:.1f} s, merge {ingest.force_merge_s:.1f} s, flush {ingest.flush_s:.1f} s"
    )


def _answer_lines(record: RunRecord) -> Iterator[str]:
    check = record.answers
    if record.plan.micro is not None:
        return
    if check is None:
        yield "not compared: the variants may not do the same work"
        return
    if not check.operations:
        yield "none compared: these operations vary their requests, or do not search"
    elif not check.findings:
        where = f", compared on the first of {record.plan.index_builds} index builds" if record.builds else ""
        count = len(check.operations)
        yield f"the same for {'the only operation' if count == 1 else f'all {count} operations'}{where}"
    samples = [one.answers for fork in record.forks for one in fork.summaries if one.answers is not None]
    if samples:
        checked, repeated, changed = (
            sum(getattr(sample, name) for sample in samples) for name in ("checked", "repeated", "changed")
        )
        yield (
            f"while measured, {checked:,} were read: {repeated:,} to a request that was answered before, of "
            f"which {changed or 'none'} changed"
        )
    if left_out := record.left_out_of_pollution:
        yield f"excluded from the pollution of all variants: {', '.join(sorted(left_out))}"
    for finding in check.findings:
        if finding.kind == "unsupported":
            cause = f"{finding.detail}{remedy(finding.detail)}"
            yield f"{finding.operation}: {finding.variant} does not support it: {cause}"
        elif finding.kind == "failed":
            yield f"{finding.operation}: {finding.variant} rejects it: {finding.detail}"
        else:
            yield f"{finding.operation}: {finding.variant} differs from {finding.baseline}: {finding.detail}"


def _fork_lines(record: RunRecord) -> Iterator[str]:
    """Yield the order, and the forks that are unlike the others."""
    orders: dict[str, list[str]] = {}
    for block in sorted({fork.block for fork in record.forks}):
        members = [fork for fork in record.forks if fork.block == block]
        members.sort(key=lambda fork: fork.position)
        extra = " (only for evidence)" if record.plan.is_extra(block) else ""
        orders.setdefault(f"{', '.join(fork.variant for fork in members)}{extra}", []).append(str(block))
    for order, blocks in orders.items():
        yield f"block{'s' if len(blocks) > 1 else ''} {' '.join(blocks)}: {order}"
    busy: dict[str, OtherLoad] = {}
    for fork in record.forks:
        name = f"fork {fork.block} of {fork.variant}"
        if fork.status == "failed":
            yield f"{name} failed: {fork.reason}"
        # One search that benchctl did not send can change what the JIT learns.
        for boot in stray_boots(fork):
            counts = f"{boot.searches_counted or 0:,} searches, and {boot.searches_sent:,} were sent"
            yield f"{name}: the node counted {counts}"
        if fork.others is not None and fork.others.share > BUSY_SHARE:
            # Side by side, it is the same for all variants of a block.
            busy.setdefault(f"block {fork.block}" if record.plan.together else name, fork.others)
    for name, others in busy.items():
        yield f"{name}: other processes used {cpus_used([others])}"
    unknown = dict.fromkeys(fork.variant for fork in record.forks if fork.others is None)
    if unknown:
        yield f"CPU of other processes: unknown for forks of {', '.join(unknown)}"


def _time_lines(record: RunRecord) -> Iterator[str]:
    for spec in record.plan.variants:
        forks = record.compared(spec.name)
        boots = [boot for fork in forks for boot in fork.boots]
        if boots:
            share = "of every block" if record.plan.together else "per fork"
            yield (
                f"{spec.name}: {fmean(fork.wall_s for fork in forks):.2f} s {share}; requests "
                f"{fmean(fork.requests_s for fork in forks):.2f} s, copy "
                f"{fmean(fork.copy_s for fork in forks):.2f} s; node start "
                f"{fmean(boot.start_s for boot in boots):.2f} s, waiting until idle "
                f"{fmean(boot.idle_s for boot in boots):.2f} s, stop "
                f"{fmean(boot.stop_s for boot in boots):.2f} s"
            )
    if record.timings:
        yield "in all: " + ", ".join(
            f"{name.removesuffix('-s')} {seconds:.1f} s" for name, seconds in record.timings.items()
        )


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
            f"{_us(paced.lag_p99_ns)} us (p99), {_us(paced.lag_max_ns)} us (max)"
        )


def _us(span_ns: int) -> str:
    return f"{span_ns / _NS_PER_US:,.0f}"
