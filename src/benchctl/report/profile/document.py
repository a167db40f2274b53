"""What `benchctl profile --format json` prints."""

from collections.abc import Sequence

import msgspec

from benchctl.jvm.profile.shares import Difference, Share
from benchctl.report.profile.text import Form, Heading


class ShareEntry(msgspec.Struct, frozen=True):
    """One line of a profile.

    Attributes:
        stack: the frame, then its callers outwards: `Class.method`, or `Class.method:line`.
        samples: of all forks.
        share: of the counted samples, 0 to 1.
        least, most: of the forks' own shares.
    """

    stack: Sequence[str]
    samples: int
    share: float
    least: float
    most: float


class DifferenceEntry(msgspec.Struct, frozen=True):
    """One line of a difference.

    Attributes:
        stack: as in `ShareEntry`.
        baseline, contender: shares of each side's samples, 0 to 1.
        difference: contender minus baseline.
        chance: 95 % of the differences that sampling alone makes are smaller, at least.
    """

    stack: Sequence[str]
    baseline: float
    contender: float
    difference: float
    chance: float


class VariantProfile(msgspec.Struct, frozen=True):
    """One variant's samples.

    Attributes:
        name: the variant.
        forks: that they come from.
        samples: that were counted.
        total: that were recorded.
        cut: of those counted, how many stacks go on where they were cut.
        unread: lines of the recordings that were not understood.
        native: samples of threads in native code that did not wait there.
        caveat: that there are too few samples to rank methods; empty when there are enough.
        shares: most first; those that were asked for.
    """

    name: str
    forks: int
    samples: int
    total: int
    cut: int
    unread: int
    native: int
    caveat: str = ""
    shares: tuple[ShareEntry, ...] = ()


class ProfileDocument(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        run: its id.
        mode, stack_size, line_numbers, inclusive, thread, task, recorded: how samples were counted.
        variants: those that were asked for.
        differences: of the second variant from the first; None where none was asked for.
    """

    run: str
    mode: str
    stack_size: int
    line_numbers: bool
    inclusive: bool
    thread: str
    task: str
    recorded: bool
    variants: tuple[VariantProfile, ...]
    differences: tuple[DifferenceEntry, ...] | None = None


def variant_entry(heading: Heading, found: Sequence[Share] = ()) -> VariantProfile:
    """One variant's part."""
    shares = tuple(ShareEntry(one.stack, one.samples, one.share, one.least, one.most) for one in found)
    return VariantProfile(
        name=heading.name,
        forks=heading.forks,
        samples=heading.samples,
        total=heading.total,
        cut=heading.cut,
        unread=heading.unread,
        native=heading.native,
        caveat=heading.shortage,
        shares=shares,
    )


def profile_json(
    run: str,
    form: Form,
    variants: Sequence[VariantProfile],
    differences: Sequence[Difference] | None = None,
) -> str:
    """The document as text."""
    entries = None
    if differences is not None:
        entries = tuple(
            DifferenceEntry(one.stack, one.baseline.share, one.contender.share, one.difference, one.noise)
            for one in differences
        )
    found = ProfileDocument(
        run,
        form.mode,
        form.size,
        form.lines,
        form.inclusive,
        form.thread,
        form.task,
        form.recorded,
        tuple(variants),
        entries,
    )
    return msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n"
