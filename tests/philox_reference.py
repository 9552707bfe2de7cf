"""Philox4x32-10 as its paper has it, one block at a time in Python's integers, and what draws make of its words."""

import numpy as np

LOW = 0xFFFFFFFF


def philox(counter, key):
    """The four words of a block."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & LOW, a >> 32 ^ c3 ^ k1, a & LOW
        k0, k1 = k0 + 0x9E3779B9 & LOW, k1 + 0xBB67AE85 & LOW
    return [c0, c1, c2, c3]


def words(seed, position, count):
    """The first words of a draw: the number of the block is the lower half of the counter, the position the upper one."""
    key, place = (seed & LOW, seed >> 32), (position & LOW, position >> 32)
    return [word for block in range(-(-count // 4)) for word in philox((block & LOW, block >> 32, *place), key)][:count]


def dropout_mask(seed, position, shape, rate):
    """Element i is decided by half a word, the lower one first."""
    size = int(np.prod(shape))
    halves = [half for word in words(seed, position, -(-size // 2)) for half in (word & 0xFFFF, word >> 16)][:size]
    kept = np.array([half >= round(rate * 65536) for half in halves])
    return np.where(kept, np.float32(1 / (1 - rate)), np.float32(0)).reshape(shape)
