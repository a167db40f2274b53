"""The words that documents consist of, and lookup tables of ready-made bytes.

Names are a modifier and a noun joined (`luckcrafter`); messages are nouns and such names. A change of any
list changes the corpus, so it needs a new `GENERATOR_VERSION`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS: tuple[str, ...] = _words(
    """
    acorn actor adder admiral agent alley almond anchor angel anklet ant anvil apple apron arch archer
    arm armor arrow artist ash aspen atlas aunt author autumn award axe badger bag baker ball bandit
    bank bard bark barn baron barrel basin basket bat beacon beak beam bean bear beard beast beaver
    beetle bell belt bench berry birch bird bison blade blanket blaze blossom boar board boat bolt bone
    book boot bottle bow bowl boxer branch brand bread breeze brick bride bridge bringer broom brother
    brow brush bucket buckle bud buffalo bug bugle bull bullet burrow bush butcher button cabin cable
    cactus cake camel candle cannon canoe canyon cap cape caper captain card cargo carp carpet cart
    castle cat cave cellar chain chair chalk chaser cheek cheese cherry chest chick chief child chime
    chin chip cider cinder citadel clam claw clay cliff cloak clock cloud clover coach coal coast coat
    cobra coin collar colt comet compass condor cook copper coral cord core cork corn cottage couch
    cougar cow cowl coyote crab crafter crane crater creek crest cricket crow crown crystal cub cup
    curtain curve cutter dagger daisy dancer dart dawn deer desk devil dew diamond dingo doctor dog doll
    dolphin donkey door dove dragon drawer dream dress drifter driver drop drum duck duke dune dust
    eagle ear earl echo edge eel egg elbow elder elephant elk elm ember engine ermine eye face falcon
    fang farmer feather fence fern ferret ferry fiddle field fig finch finger fir fire fish fist flag
    flame flank flask fleece flier flower flute fly foal foot forest forge fork fort fox friend frog
    frost fruit galley garden garnet gate gaze gazelle gecko ghost giant gift ginger giraffe glacier
    glass glazer glider glove gnat goat goblet goose gopher grain grape grass griffin grin grip grouse
    grove guard guest guide gull hair hammer hand hare harp hat hawk hazel head healer heart hearth
    heath hedge heel helm hen herald heron hill hinge hip hippo hood hoof hook horn horse hound house
    hunter ice iguana ink iris island ivy jackal jacket jaguar jar jasper jaw jay jester jewel joker
    judge jug jumper kernel kettle key kicker king kite kitten knave knee knife knight knot lace ladder
    lady lake lamb lamp lance lantern lark lash laurel leader leaf leaper legend lemon leopard lifter
    light lily limb lion lip lizard llama loaf lock locket locust loon lord lotus lute lynx mage magpie
    mallet mammoth mane mantle maple march marble mare mark marmot marsh marten mask mast meadow melon
    mermaid meteor mill mind mink minnow mint mirror mist mole monkey monarch moon moose moss moth
    mountain mouse mouth mule muse mustang nail neck needle nest newt nibbler night nose nutmeg oak
    oasis ocean ocelot olive opal orange orbit orca orchid osprey otter owl oxbow oyster paladin palm
    panda panther paper parrot patch path paw pea peach peak pearl pebble pelican pen pepper petal
    pigeon piper pixie plane planet plate plume poet pond pony poppy porter potato prince puma puppy
    python quail quartz queen quill quiver rabbit racer rain ranger raven razor reaper reed reef rider
    ring river roarer robe robin rock rook root rose rover ruby runner saddle sage sailor salmon scale
    scarf scout sealion seeker seer servant shadow shark shell shield shoe shore shoulder shrew shriek
    singer sister skin skull sky slayer sled sloth snail snake snapper snout song spark sparrow spear
    speaker spider spirit sprite spruce squid stag stalker star stallion stealer stone storm stork
    stream swan sword tail talon tapir thief thistle thorn thunder tiger toad toe tongue tooth torch
    tortoise touch tower traveler tree trout trunk tulip turner turtle twister valley vest viper voice
    vulture walker walrus warlock warrior wasp watcher wave weasel weaver whale wheel whip whisker
    whisper willow wing wizard wolf wombat wood wren wrist yak zebra zephyr
    """
)

MODIFIERS: tuple[str, ...] = _words(
    """
    agate alder alpine amber ancient arctic ashen atomic aqua azure balsam bald basalt big bitter black
    blond blue bold bony bramble brass brave brazen briar bright brindle broad broken bronze brown calm
    candy carnelian cedar chalky charm chestnut chip citrine clever cloudy cobalt cold cosmic crimson
    crocus cyan damp dapper dapple dark deep desert digger dirt diver dotted dull dusky early ebony
    electric emerald even fading faint fancy fast fate feral fierce flannel flax flint flicker foggy
    frosty frozen full garnet gentle gilded glassy gleam glimmer gloomy glossy gold golden grand granite
    gravel gray great green half handy harvest hazy heather heavy hidden hollow holy honey humble icy
    iron ivory jade jagged jet jolly jungle keen kind laced large lavender leather lemony light lilac
    lime linen little lively long loud lucky luck lunar luminous magenta mahogany marbled maroon marred
    massive meadowy merry midnight mild misty molten mossy motley muddy mulberry narrow navy neat nimble
    noble noisy north obsidian ochre odd old onyx opaline orchid pale paper pastel patient peaceful
    pearly peppery pewter phantom pine pink plain playful plum pointed polar polished pollen prairie
    proud purple quick quiet quilled rainy rapid rare red regal ripple roan rocky rough round royal
    ruddy rugged russet rusty sable saffron salty sandy sapphire sassy scarlet seagreen secret shadowy
    shaded sharp shimmer shiny short showy silent silk silver simple sky slate sleek sleepy slow small
    smoky smooth snow snowy soft somber sour south sparkling speckled spice spiral splendid spotted
    spring steady steel stellar stormy stout strong sudden sugar summer sun sunny sunset swamp sweet
    swift tabby tall tan tangy tart tawny teal thin thorn thunderous tidal tiny topaz torn tough
    translucent truth turquoise twilight twisted umber valiant vanilla vast velvet verdant violet vivid
    warm wax weak western wheat white wide wild wind winter wise wooden wool worn yellow young zinc
    """
)

PROCESSES: tuple[str, ...] = ("journal", "kernel", "systemd", "cron", "sshd", "httpd", "udev")

REGIONS: tuple[str, ...] = _words(
    """
    af-south-1 ap-east-1 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2
    ap-southeast-1 ap-southeast-2 ap-southeast-3 ca-central-1 eu-central-1 eu-north-1 eu-south-1
    eu-south-2 eu-west-1 eu-west-2 eu-west-3 me-central-1 me-south-1 sa-east-1 us-east-1 us-east-2
    us-west-1 us-west-2
    """
)

# The streams that operations search for. No modifier above yields one of them, so only the generator decides
# their share.
RARE_STREAMS: tuple[str, ...] = ("fuschiashoulder", "solarshark", "indigodagger")

AGENT_IDS: tuple[str, ...] = (
    "4732c68c-75f1-493f-8a59-1fd6a7c1b36a",
    "124c64c2-e423-4cec-8030-aacc07791627",
    "88017620-7c81-4058-be42-a7d57a67d6c3",
    "ae4c212d-3beb-4174-923a-570110b42e9f",
    "bfa69507-8c29-4cb7-86d6-ed150166c763",
    "3cbe86fd-28ed-44f3-b458-15b397c5cf14",
    "6f47e0e8-cfb4-4f7e-8e94-3b999eb97782",
    "78bbaa5a-67c9-4e4c-8f59-360ba935cc37",
    "fa772fb6-e16f-4591-beb6-3d41b46df04b",
    "2d083b14-2b4c-493d-b427-200c292e4cc4",
)


# Every table is a read-only array of fixed-width byte strings, padded with NUL, built once per process.

Texts: TypeAlias = npt.NDArray[np.bytes_]

NAMES = len(MODIFIERS) * len(NOUNS)
NOUN_PAIRS = len(NOUNS) ** 2


def _read_only(table: Texts) -> Texts:
    table.setflags(write=False)
    return table


def _table(texts: Iterable[str]) -> Texts:
    return _read_only(np.array([text.encode("ascii") for text in texts]))


@cache
def table(texts: tuple[str, ...]) -> Texts:
    """Return words such as REGIONS as a table, in order."""
    return _table(texts)


def _joined(first: Iterable[str], second: Iterable[str]) -> Texts:
    """Return all concatenations of two lists, the second changing faster; shape (n * m,)."""
    return np.strings.add(_table(first)[:, np.newaxis], _table(second)).ravel()


@cache
def streams() -> Texts:
    """Return every name (modifier and noun joined), then the rare streams; shape (NAMES + 3,)."""
    return _read_only(np.concatenate([_joined(MODIFIERS, NOUNS), _table(RARE_STREAMS)]))


@cache
def noun_pairs() -> Texts:
    """Return the empty string, then " noun noun" for all pairs of nouns; shape (1 + NOUN_PAIRS,)."""
    words = [f" {noun}" for noun in NOUNS]
    return _read_only(np.concatenate([_table([""]), _joined(words, words)]))


@cache
def closing_words() -> Texts:
    """Return the empty string, then " name" for every name; shape (1 + NAMES,)."""
    return _read_only(
        np.concatenate([_table([""]), _joined([f" {modifier}" for modifier in MODIFIERS], NOUNS)])
    )


@cache
def optional_nouns() -> Texts:
    """Return every noun, then as many empty strings; shape (2 * nouns,)."""
    return _table([*NOUNS, *([""] * len(NOUNS))])


@cache
def clock() -> Texts:
    """Return `HH:MM:SS` of every second of a day, shape (86400,)."""
    return _table(f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(86_400))


@cache
def thousandths() -> Texts:
    """Return `000` to `999`, shape (1000,)."""
    return _table(f"{n:03d}" for n in range(1000))


@cache
def integers(stop: int) -> Texts:
    """Return decimal numbers from 0 up to, not including, `stop`."""
    return _table(str(n) for n in range(stop))


@cache
def octet_pairs() -> Texts:
    """Return `0-0` to `255-255`, shape (65536,)."""
    return _table(f"{n >> 8}-{n & 255}" for n in range(1 << 16))


# The common part of generators: slices of a corpus, part files, and text templates filled in bulk.

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PADDING = b"\0"
_MARKER = re.compile("<([a-z0-9-]+)>")


@dataclass(frozen=True)
class Span:
    """A part file: documents [start, stop), numbered within the whole corpus."""

    name: str
    start: int
    stop: int


def check_slice(start: int, stop: int, documents: int) -> None:
    """Check that documents [start, stop) are among so many.

    Raises:
        ValueError: If they are not.
    """
    if not 0 <= start <= stop <= documents:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of {documents}")


def blocks_of(start: int, stop: int, size: int) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the numbers of documents [start, stop), `size` at a time."""
    for first in range(start, stop, size):
        yield np.arange(first, min(first + size, stop), dtype=np.uint64)


class RowLayout:
    """Rows of one template as a structured array whose fields are constant pieces and gaps.

    The array is reused by the next call, so a layout must not be shared between threads. In the template,
    gaps are written `<name>`; all gaps of a name get the same text.
    """

    def __init__(self, template: str) -> None:
        pieces = _MARKER.split(template)
        self._constants = [piece.encode("ascii") for piece in pieces[0::2]]
        self._gaps = pieces[1::2]
        self._rows: npt.NDArray[np.void] = np.empty(0, np.dtype([]))

    def lines(self, count: int, columns: Mapping[str, Texts]) -> bytes:
        """Fill the template `count` times; return the concatenated rows, without padding.

        `columns` has the texts of every gap, shape (count,); widths must not change between calls.
        """
        if len(self._rows) < count:
            self._rows = self._empty_rows(count, columns)
        rows = self._rows[:count]
        for position, name in enumerate(self._gaps):
            rows[f"gap-{position}"] = columns[name]
        return rows.tobytes().translate(None, _PADDING)

    def _empty_rows(self, count: int, columns: Mapping[str, Texts]) -> npt.NDArray[np.void]:
        fields: list[tuple[str, str]] = []
        for position, constant in enumerate(self._constants):
            if constant:
                fields.append((f"constant-{position}", f"S{len(constant)}"))
            if position < len(self._gaps):
                fields.append((f"gap-{position}", f"S{columns[self._gaps[position]].itemsize}"))
        rows = np.empty(count, np.dtype(fields))
        for position, constant in enumerate(self._constants):
            if constant:
                rows[f"constant-{position}"] = constant
        return rows
