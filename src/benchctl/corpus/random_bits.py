"""Counter-based random bits: the value of (seed, field, number) depends on no other value.

The mixer is SplitMix64's (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), in plain
64-bit integer arithmetic. Library generators are avoided because their distributions may change between
versions; these bits decide the corpus byte for byte.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint64]
Indices: TypeAlias = npt.NDArray[np.intp]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mix(value: int) -> int:
    """Apply SplitMix64's output function: a bijection of 64-bit integers; input is taken modulo 2^64."""
    value &= _MASK
    value = (value ^ (value >> 30)) * _FIRST & _MASK
    value = (value ^ (value >> 27)) * _SECOND & _MASK
    return value ^ (value >> 31)


def key(*parts: int) -> int:
    """Return one 64-bit key from several integers, in order."""
    state = 0
    for part in parts:
        state = mix(state + _GOLDEN + mix(part))
    return state


def words(stream: int, numbers: Words) -> Words:
    """Return 64 random bits for every counter, shape (n,), of a stream, which is a key.

    The result has shape (n,); it is equal for equal (stream, number), at any position in the array.
    """
    state = numbers * np.uint64(_GOLDEN)
    state += np.uint64(stream)
    state ^= state >> np.uint64(30)
    state *= np.uint64(_FIRST)
    state ^= state >> np.uint64(27)
    state *= np.uint64(_SECOND)
    state ^= state >> np.uint64(31)
    return state


def below(stream: int, numbers: Words, bound: int) -> Indices:
    """Return uniform integers of [0, bound), bound from 1 to 2^32, for counters of a stream; shape (n,).

    The upper 32 bits are scaled by multiplication; the bias of at most bound / 2^32 is far below what a
    corpus can reveal.
    """
    state = words(stream, numbers)
    state >>= np.uint64(32)
    state *= np.uint64(bound)
    state >>= np.uint64(32)
    return state.astype(np.intp)
