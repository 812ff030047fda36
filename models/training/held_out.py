"""Which windows are held out of a fit, by a hash of their job and time: the same ones for every training.

So a champion and its challenger are scored on windows that neither was trained on.  The hash is xxHash64 as Spark's SQL
has it (Collet, specification of XXH64, public domain), one column after the other, the hash so far as the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from models.arrays import Bools, Ints

BUCKETS: Final = 10_000
_SEED: Final = 42
_MASK: Final = 2**64 - 1
_PRIMES: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P1, _P2, _P3, _P4, _P5 = _PRIMES


def find_held(job: tuple[str, str], start_s: Ints, share: float) -> Bools:
    """Return (W,) which windows of a job, that begin at (W,) epoch seconds, are held out: a share of them, 0..1."""
    return np.asarray(hash_numbers(start_s, _chain(job)) % BUCKETS < int(share * BUCKETS))


def hash_texts(texts: Sequence[str]) -> int:
    """Return the signed hash of several texts, one after the other.

    >>> hash_texts(("eu", "orders", "map")) == hash_texts(("eu", "orders", "sink"))
    False
    """
    result = _chain(texts)
    return result - 2**64 if result >= 2**63 else result


def _chain(texts: Sequence[str]) -> int:
    result = _SEED
    for text in texts:
        result = hash_text(text, result)
    return result


def hash_numbers(values: Ints, seed: int = _SEED) -> Ints:
    """Return (n,) signed hashes of numbers, (n,); remainders of it are of a floor division, as pmod of SQL.

    >>> hash_numbers(np.array([0, 1_700_000_000])).tolist()
    [-5252525462095825812, 8343929026310743817]
    """
    with np.errstate(over="ignore"):
        number = np.asarray(values, np.int64).astype(np.uint64)
        mixed = np.uint64((seed + _P5 + 8) & _MASK) ^ (_rotate(number * np.uint64(_P2), 31) * np.uint64(_P1))
        mixed = _rotate(mixed, 27) * np.uint64(_P1) + np.uint64(_P4)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(_P2)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(_P3)
        return np.asarray((mixed ^ (mixed >> np.uint64(32))).astype(np.int64))


def _rotate(value: np.ndarray, bits: int) -> np.ndarray:
    return np.asarray((value << np.uint64(bits)) | (value >> np.uint64(64 - bits)))


def hash_text(text: str, seed: int = _SEED) -> int:
    """Return the hash, 0..2**64-1, of a text's UTF-8 bytes.

    >>> hash_text("")
    11002672306508523268
    """
    data = text.encode()
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data) - 7, 8)]
    stripes = len(data) // 32 * 4
    mixed = _mix_stripes(words[:stripes], seed) if stripes else (seed + _P5) & _MASK
    mixed = (mixed + len(data)) & _MASK
    for word in words[stripes:]:
        mixed = (_turn(mixed ^ _take(0, word), 27) * _P1 + _P4) & _MASK
    rest = data[8 * len(words) :]
    if len(rest) >= 4:
        mixed = (_turn(mixed ^ (int.from_bytes(rest[:4], "little") * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        rest = rest[4:]
    for byte in rest:
        mixed = _turn(mixed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    mixed = (mixed ^ (mixed >> 33)) * _P2 & _MASK
    mixed = (mixed ^ (mixed >> 29)) * _P3 & _MASK
    return mixed ^ (mixed >> 32)


def _mix_stripes(words: list[int], seed: int) -> int:
    lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
    for at, word in enumerate(words):
        lanes[at % 4] = _take(lanes[at % 4], word)
    mixed = sum(_turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        mixed = ((mixed ^ _take(0, lane)) * _P1 + _P4) & _MASK
    return mixed


def _take(lane: int, word: int) -> int:
    return _turn((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turn(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK
