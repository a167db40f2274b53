"""Ids for documents, of which some repeat: who gets a new one, and who that of an earlier document."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated.bits import Indices, Words, key, words

# Rally's: with full recency the last thirtieth of the ids gets most of the repetitions.
_RECENCY_SLOPE = 30.0
_ROUNDS = 4
_WORD = 2.0**64

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ConflictPlan:
    """How ids repeat.

    Attributes:
        documents: how many ids there are, at least one; behind them all repeat.
        probability: 0 to 1, of a document to get an id that was given before.
        shuffled: new ids come in random order; otherwise they count up.
        recency: 0 to 1; 0 repeats all earlier ids alike, more prefers those given last.
    """

    documents: int
    probability: float
    shuffled: bool = False
    recency: float = 0.0


class ConflictingIds:
    """Gives out ids; equal ones for equal seeds, however many are taken at a time.

    Args:
        plan: how they repeat.
        seed: 64 bits.
    """

    def __init__(self, plan: ConflictPlan, seed: int) -> None:
        self._plan = plan
        self._chances = key(seed, 1)
        self._choices = key(seed, 2)
        self._order = [key(seed, 3, number) for number in range(_ROUNDS)]
        self._taken = 0
        self._new = 0

    def take(self, count: int) -> tuple[Indices, Flags]:
        """The ids of the next documents.

        Args:
            count: how many documents, at least one.

        Returns:
            Their ids, and whether each was given before; both of shape (count,).
        """
        numbers = np.arange(self._taken, self._taken + count, dtype=np.uint64)
        self._taken += count
        repeated = words(self._chances, numbers) / _WORD < self._plan.probability
        if not self._new:
            repeated[0] = False  # there is nothing to repeat yet
        given = self._new + np.cumsum(~repeated)
        # A corpus that is sent again has no new ids left.
        repeated |= given > self._plan.documents
        given = np.minimum(given, self._plan.documents)
        self._new = int(given[-1])
        places = given - 1
        places[repeated] = self._choose(numbers[repeated], given[repeated])
        return (self._shuffle(places) if self._plan.shuffled else places), repeated

    def _choose(self, numbers: Words, given: Indices) -> Indices:
        """Which of the ids given so far to repeat."""
        chance = words(self._choices, numbers) / _WORD
        if self._plan.recency:
            # How far back, as a share of all: an exponential distribution cut off at the oldest id. Rally
            # gives that id the whole tail instead, which is most of all for a recency near 0.
            rate = _RECENCY_SLOPE * self._plan.recency
            chance = 1.0 + np.log1p(chance * np.expm1(-rate)) / rate
        return np.clip((chance * given).astype(np.intp), 0, given - 1)

    def _shuffle(self, places: Indices) -> Indices:
        """A permutation of [0, documents), without a table of it.

        A Feistel network permutes the next even power of two; what falls outside goes through it again, until
        it is inside ("cycle walking", Black and Rogaway: Ciphers with Arbitrary Finite Domains, 2002).
        """
        half = np.uint64((max(self._plan.documents, 2) - 1).bit_length() + 1) // np.uint64(2)
        found = places.astype(np.uint64)
        outside = np.ones(len(found), dtype=np.bool_)
        while outside.any():
            found[outside] = self._feistel(found[outside], half)
            outside = found >= self._plan.documents
        return found.astype(np.intp)

    def _feistel(self, values: Words, half: np.uint64) -> Words:
        mask = (np.uint64(1) << half) - np.uint64(1)
        left, right = values >> half, values & mask
        for stream in self._order:
            left, right = right, left ^ (words(stream, right) & mask)
        return (left << half) | right
