# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What goes over the wire, as docs/protocol.md says: hashes, messages, shapes, lanes.

The parts are in the page's order, and use its words. Nothing here knows a socket or a clock.
"""
import math
import struct
from array import array
from dataclasses import dataclass
from operator import mul
from typing import Optional

M32, M64 = 2**32 - 1, 2**64 - 1
K = 0x9e3779b97f4a7c15
EVERYONE = 0xffff
CONTRIBUTION, RESULT, ASK, REPAIR, MISMATCH, OVERTAKEN = 1, 2, 3, 4, 5, 6
FLUSH, WIDE, WIDE_AHEAD, REJECT, MARKED, SPILLED, PARTIAL, LARGE = (1 << b for b in range(8))
VERBS = ["end", "allreduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "barrier",
         "opening"]
TYPES = ["nothing", "int32", "int64", "float32"]
OPS = ["", "sum", "avg"]
CODES = {1: "i", 2: "q", 3: "f"}        # what array.array calls our types
L_NONE, L_INT32, L_INT32_WIDE, L_INT64, L_FLOAT, L_FLOAT_WIDE, L_BYTES = range(7)


class TallyError(Exception):
    """What went wrong, in words."""


# ---- Hashes -----------------------------------------------------------------------------------

def mix(h: int, w: int) -> int:
    x = (h ^ w) * K & M64
    return x ^ x >> 32


def weight(rank: int) -> int:
    return mix(K, rank) | 1


def check_of(words: tuple[int, ...]) -> int:
    return sum(map(mul, range(1, 2 * len(words), 2), words)) & M64


def siphash13(key: bytes, text: bytes) -> int:
    """SipHash-1-3, of whole 64-bit words."""
    k0, k1 = words_of(key)
    v0, v1 = k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d
    v2, v3 = k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573

    def turned(x: int, bits: int) -> int:
        return (x << bits | x >> 64 - bits) & M64
    words = [*words_of(text), len(text) << 56 & M64]
    for i, w in enumerate(words + [0, 0, 0]):
        v2 ^= 0xff if i == len(words) else 0    # three rounds more, without words
        v3 ^= w
        v0, v2 = v0 + v1 & M64, v2 + v3 & M64
        v1, v3 = turned(v1, 13) ^ v0, turned(v3, 16) ^ v2
        v0 = turned(v0, 32)
        v2, v0 = v2 + v1 & M64, v0 + v3 & M64
        v1, v3 = turned(v1, 17) ^ v2, turned(v3, 21) ^ v0
        v2 = turned(v2, 32)
        v0 ^= w
    return v0 ^ v1 ^ v2 ^ v3


# ---- Messages ---------------------------------------------------------------------------------

HEADER = struct.Struct("<BBBBIHHIHBBBBBBQQQHHB3sQ")


@dataclass
class Message:
    """One datagram. Fields are in the order of the header."""
    kind: int
    flags: int
    job: int
    epoch: int
    seq: int
    recipient: int = EVERYONE
    lane: int = L_NONE
    scale: int = 0
    scale_ahead: int = 0
    call: int = 0
    check: int = 0
    about: int = 0
    sender: int = EVERYONE
    edition: int = 0
    set: int = 0
    payload: bytes = b""
    boot: int = 0
    priority: int = 0

    def pack(self, key: bytes = b"") -> bytes:
        def header(blocks: int, tag: int) -> bytes:
            fixed = HEADER.pack(0xa7, 2, self.kind, self.flags, self.job, self.epoch, self.boot,
                                self.seq, self.recipient, blocks, self.lane, self.scale,
                                self.scale_ahead, self.priority, 0, self.call, self.check, tag,
                                self.about, self.sender, self.edition, bytes(3), self.set & M64)
            more = (self.set >> 64).to_bytes(24, "little") + bytes(8)
            return fixed + (more if self.flags & LARGE else b"")
        blocks = len(self.payload) // 64
        return header(blocks, tag_of(header(blocks, 0), key)) + self.payload

    @staticmethod
    def unpack(data: bytes, key: bytes = b"") -> Optional["Message"]:
        """The message, or nothing if it is malformed, or its tag is wrong. Key: the rank's."""
        if len(data) < 64 or data[:2] != b"\xa7\2":
            return None
        (_, _, kind, flags, job, epoch, boot, seq, recipient, blocks, lane, scale, ahead, priority,
         shard, call, check, tag, about, sender, edition, rest, low) = HEADER.unpack_from(data)
        size = 96 if flags & LARGE else 64
        if len(data) != size + 64 * blocks or shard or any(rest) or any(data[88:size]):
            return None
        if tag != tag_of(data[:size], key):
            return None
        high = int.from_bytes(data[64:88], "little") << 64 if flags & LARGE else 0
        return Message(kind, flags, job, epoch, seq, recipient, lane, scale, ahead, call, check,
                       about, sender, edition, high | low, data[size:], boot, priority)


def tag_of(header: bytes, key: bytes = b"") -> int:
    """The tag of a header; with the rank key, in a job that has some."""
    if key:
        return siphash13(key, header[:40] + header[48:])
    tag = 0
    for i, w in enumerate(words_of(header[:18] + b"\0" + header[19:])):
        if i not in (5, 11):            # the tag itself, and what is reserved
            w = w * (2 * i + 1) * K & M64
            tag += w ^ w >> 29 + i
    return tag & M64


def words_of(payload: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(payload) // 8}Q", payload)


# ---- Shape ------------------------------------------------------------------------------------

def shape(verb: int, dtype: int, op: int, root: int, window: int, payload: int, count: int) -> int:
    log2 = window.bit_length() - 1
    return (verb | dtype << 3 | op << 7 | root << 9 | log2 << 17 | payload // 64 << 21 |
            count << 27)


def describe(call: int) -> str:
    """A shape in words: what a rank calls."""
    verb, dtype, op, count = VERBS[call & 7], call >> 3 & 15, call >> 7 & 3, call >> 27
    if verb in ("end", "barrier", "opening"):
        text = {"end": "the end of the run", "barrier": "a barrier"}.get(
            verb, f"the opening of {count} workers")
    else:
        text = f"{verb} of {count:,} {TYPES[dtype] if dtype < 4 else dtype}"
        text += f" ({OPS[op] if op < 3 else op})" if op else ""
        text += f", root {call >> 9 & 255}" if verb in ("reduce", "broadcast") else ""
    return text + f", window {1 << (call >> 17 & 15)}, payload {64 * (call >> 21 & 63)}"


def ranks_text(bits: int) -> str:
    """1,3-4 for a set."""
    ranks = [r for r in range(256) if bits >> r & 1]
    starts = [r for r in ranks if r - 1 not in ranks]
    ends = [r for r in ranks if r + 1 not in ranks]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends))


# ---- Lanes ------------------------------------------------------------------------------------

def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def scale_of(values: array) -> int:
    """The smallest s with |x| < 2^(4 (s - 64)) for all finite values; 0 if all of these are 0."""
    biggest = max((abs(x) for x in values if math.isfinite(x)), default=0.0)
    return 64 - -math.frexp(biggest)[1] // 4 if biggest else 0


def is_wide(values: array, dtype: int, workers: int) -> bool:
    if dtype == 3:
        return not all(map(math.isfinite, values))
    limit = (2**31 - 1) // workers
    return dtype == 1 and any(abs(x) > limit for x in values)


def exponent(scale: int, workers: int) -> int:
    """q = x * 2^exponent."""
    return 30 - (workers - 1).bit_length() - 4 * (scale - 64)


def quantize(x: float, scale: int, workers: int) -> int:
    if not scale or not math.isfinite(x):
        return 0
    q = round(math.ldexp(x, exponent(scale, workers)))  # ties to even
    return min(max(q, -2**31), 2**31 - 1)  # out of range only if the scale was a bad guess


def counters(x: float) -> int:
    return 1 << 37 if x != x else 1 << 46 if x == math.inf else 1 << 55 if x == -math.inf else 0


def to_payload(values: array, lane: int, scale: int, workers: int) -> bytes:
    if lane == L_BYTES:
        data = values.tobytes()
        return data + bytes(-len(data) % 64)
    ints = ([quantize(x, scale, workers) for x in values] if lane in (L_FLOAT, L_FLOAT_WIDE)
            else values.tolist())
    if lane in (L_INT32, L_FLOAT):
        ints += [0] * (len(ints) % 2)
        ints = [(hi << 32) + lo for lo, hi in zip(ints[::2], ints[1::2])]
    elif lane == L_FLOAT_WIDE:
        ints = [q + counters(x) for q, x in zip(ints, values)]
    ints += [0] * (-len(ints) % 8)
    return struct.pack(f"<{len(ints)}Q", *[w & M64 for w in ints])


def from_payload(payload: bytes, lane: int, n: int, scale: int, workers: int, dtype: int,
                 average: bool) -> array:
    """The sums, or averages, of n elements."""
    if lane == L_BYTES:
        return array(CODES[dtype], payload[:n * array(CODES[dtype]).itemsize])
    words = words_of(payload)
    if lane in (L_INT32, L_FLOAT):
        sums = []
        for w in words:
            lo = signed(w, 32)
            sums += [lo, signed(w - lo >> 32, 32)]
    elif lane == L_FLOAT_WIDE:
        sums = [signed(w, 32) for w in words]
    else:
        sums = [signed(w, 64) for w in words]
    del sums[n:]
    if dtype != 3:
        if average:
            sums = [abs(x) // workers * (1 if x > 0 else -1) for x in sums]
        return array(CODES[dtype], [signed(x, 32 if dtype == 1 else 64) for x in sums])
    factor = 1 / workers if average else 1.0
    e = -exponent(scale, workers)
    floats = [math.ldexp(q, e) * factor if q else 0.0 for q in sums]
    if lane == L_FLOAT_WIDE:
        for i, w in enumerate(words[:n]):
            w = w - sums[i] & M64
            nan, plus, minus = w >> 37 & 511, w >> 46 & 511, w >> 55
            if nan or plus and minus:
                floats[i] = math.nan
            elif plus or minus:
                floats[i] = math.inf if plus else -math.inf
    return array("f", floats)  # rounds once; what is too large becomes an infinity
