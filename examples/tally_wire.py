# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What goes over the wire, as docs/protocol.md says: hashes, messages, shapes, lanes.

The parts are in the page's order, and use its words. Nothing here knows a socket or a clock.
"""
import math
import struct
from array import array
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Optional

M32, M64 = 2**32 - 1, 2**64 - 1
K = 0x9e3779b97f4a7c15
EVERYONE = 0xffff
CONTRIBUTION, RESULT, ASK, REPAIR, MISMATCH, OVERTAKEN = 1, 2, 3, 4, 5, 6
FLUSH, WIDE, WIDE_AHEAD, REJECT, MARKED, SPILLED, PARTIAL, LARGE = (1 << b for b in range(8))
VERBS = ["end", "allreduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "barrier",
         "opening"]
TYPES = ["nothing", "int32", "int64", "float32", "int8", "int16", "uint8", "uint16", "uint32",
         "uint64", "bfloat16", "float16", "float64", "halved"]
INT32, INT64, FLOAT32, BFLOAT16, FLOAT16, FLOAT64, HALVED = 1, 2, 3, 10, 11, 12, 13
OPS = ["", "sum", "avg"]
CODES = " iqfbhBHIQHHdf"                # what array.array calls our types; of 16 bits: the bits
L_NONE, L_BYTES, L_FLOAT32_WIDE, L_FLOAT64_WIDE = 0, 6, 5, 25


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
    if op and is_fixed(dtype):
        op, root = 3 if op == 1 else 0, point_of(dtype) & 255
    return (verb | (dtype & 15) << 3 | op << 7 | root << 9 | log2 << 17 | payload // 64 << 21 |
            count << 27)


def describe(call: int) -> str:
    """A shape in words: what a rank calls."""
    verb, dtype, op, count = VERBS[call & 7], call >> 3 & 15, call >> 7 & 3, call >> 27
    if verb in ("end", "barrier", "opening"):
        text = {"end": "the end of the run", "barrier": "a barrier"}.get(
            verb, f"the opening of {count} workers")
    else:
        text = f"{verb} of {count:,} {TYPES[dtype] if dtype < len(TYPES) else dtype}"
        if verb not in ("broadcast", "all_gather") and op in (0, 3):
            text += f" ({'sum' if op else 'avg'}, point {signed(call >> 9, 8)})"
        else:
            text += f" ({OPS[op]})" if op else ""
            text += f", root {call >> 9 & 255}" if verb in ("reduce", "broadcast") else ""
    return text + f", window {1 << (call >> 17 & 15)}, payload {64 * (call >> 21 & 63)}"


def ranks_text(bits: int) -> str:
    """1,3-4 for a set."""
    ranks = [r for r in range(256) if bits >> r & 1]
    starts = [r for r in ranks if r - 1 not in ranks]
    ends = [r for r in ranks if r + 1 not in ranks]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends))


# ---- Types ------------------------------------------------------------------------------------

def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def fixed(dtype: int, point: int) -> int:
    """A type of floats with a binary point, as one number."""
    return dtype | 1 << 8 | (point & 255) << 16


def is_fixed(dtype: int) -> bool:
    return dtype >> 8 > 0


def point_of(dtype: int) -> int:
    return signed(dtype >> 16, 8)


def dtype_of(name: str) -> int:
    """float32, or with a point float32@20."""
    kind, _, point = name.partition("@")
    return fixed(TYPES.index(kind), int(point)) if point else TYPES.index(kind)


@dataclass(frozen=True)
class Format:
    """Floats of a type: numbers as IEEE 754 has them, and the scales of their lanes."""
    bits: int
    precision: int                      # bits of a number with its hidden one
    least: int                          # exponent of the smallest that is not subnormal
    step: int                           # e(s) = step * (s - bias), s from smallest on
    bias: int
    smallest: int
    sum_bits: int                       # of a sum of q, without its sign

    def infinity(self) -> int:
        return (1 << self.bits - 1) - (1 << self.precision - 1)


FORMATS = {FLOAT32: Format(32, 24, -126, 4, 64, 27, 30),
           FLOAT64: Format(64, 53, -1022, 9, 120, 1, 62),
           BFLOAT16: Format(16, 8, -126, 1, 127, 1, 15),
           FLOAT16: Format(16, 11, -14, 1, 127, 104, 15),
           HALVED: Format(32, 24, -126, 1, 126, 1, 15)}


def format_of(dtype: int) -> Optional[Format]:
    return FORMATS.get(dtype & 15)


def floats_of(values: array, dtype: int) -> list[float]:
    """The numbers that they are."""
    data = values.tobytes()
    if dtype & 15 == BFLOAT16:
        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
    code = {BFLOAT16: "f", FLOAT16: "e"}.get(dtype & 15, values.typecode)
    return list(struct.unpack(f"<{len(values)}{code}", data))


def rounded(x: Fraction, negative: bool, f: Format) -> int:
    """The bits of the float that is nearest to |x|; ties to even."""
    if x:
        e = x.numerator.bit_length() - x.denominator.bit_length()   # 2^(e-1) < |x| < 2^(e+1)
        e = max(e - (abs(x) < Fraction(2)**e), f.least)
        last = e - f.precision + 1
        x = round(abs(x) * Fraction(2)**-last) + (e - f.least << f.precision - 1)
    return min(int(x), f.infinity()) | negative << f.bits - 1


# ---- Lanes ------------------------------------------------------------------------------------

# Bits of an element on the wire.
BITS = {1: 32, 2: 64, 3: 64, 4: 32, 5: 64, 6: 8, 7: 8, 8: 16, 9: 16, 10: 32, 11: 8, 12: 16, 13: 16,
        14: 32, 15: 32, 16: 64, 17: 64, 18: 16, 19: 32, 20: 64, 21: 16, 22: 32, 23: 64, 24: 64,
        25: 128, 26: 64, 27: 64, 28: 64, 29: 64, 30: 16, 31: 64}
UNSIGNED = (11, 12, 13, 14, 15, 16, 17)
COUNTING = (5, 20, 23, 25, 31)          # NaNs and infinities
# Of a type, in jobs of up to so many ranks: the lane that sums begin in, and the wide one.
LANES = {1: [(256, 1, 2)], 2: [(256, 3, 0)], 3: [(256, 4, 5)], 4: [(127, 7, 8), (256, 8, 0)],
         5: [(256, 9, 10)], 6: [(255, 11, 12), (256, 12, 0)], 7: [(256, 13, 14)],
         8: [(256, 15, 16)], 9: [(256, 17, 0)], 10: [(128, 18, 20), (256, 19, 20)],
         11: [(16, 21, 23), (256, 22, 23)], 12: [(256, 24, 25)], 13: [(128, 30, 31)]}
FIXED = {FLOAT32: 26, FLOAT64: 27, BFLOAT16: 28, FLOAT16: 29}


def lanes_of(dtype: int, workers: int) -> tuple[int, int]:
    """The lane that sums begin in, and the wide one; 0: none."""
    if is_fixed(dtype):
        return FIXED[dtype & 15], 0
    for most, first, wide in LANES[dtype]:
        if workers <= most:
            return first, wide
    raise TallyError(f"{TYPES[dtype]} cannot be summed over {workers} ranks")


def has_scales(dtype: int) -> bool:
    return format_of(dtype) is not None and not is_fixed(dtype)


def q_bits(dtype: int, workers: int) -> int:
    f = format_of(dtype)
    bits = f.sum_bits - (workers - 1).bit_length()
    return bits + 16 if f.bits == 16 and bits < f.precision else bits


def scale_of(values: array, dtype: int, workers: int) -> int:
    """The smallest s with |x| < 2^e(s) for all finite values; 0 if all of these are 0."""
    f = format_of(dtype)
    biggest = max((abs(x) for x in floats_of(values, dtype) if math.isfinite(x)), default=0.0)
    part, e = math.frexp(biggest)
    if dtype == HALVED and part > 1 - 2**-q_bits(dtype, workers):
        e += 1                          # at most 2^bits - 1 steps
    return max(f.bias - -e // f.step, f.smallest) if biggest else 0


def is_wide(values: array, dtype: int, workers: int) -> bool:
    """Does a chunk need the wide lane? With a fixed point: it does not fit at all."""
    if is_fixed(dtype):
        below = 62 - (workers - 1).bit_length() - point_of(dtype)
        return any(not math.isfinite(x) or x and math.frexp(x)[1] > below
                   for x in floats_of(values, dtype))
    if format_of(dtype):
        return not all(map(math.isfinite, floats_of(values, dtype)))
    first, wide = lanes_of(dtype, workers)
    limit = ((1 << 8 * values.itemsize - (first not in UNSIGNED)) - 1) // workers
    return wide > 0 and any(abs(x) > limit for x in values)


def exponent(dtype: int, scale: int, workers: int) -> int:
    """q = x * 2^exponent."""
    if is_fixed(dtype):
        return point_of(dtype)
    f = format_of(dtype)
    return q_bits(dtype, workers) - f.step * (scale - f.bias)


def quantize(x: float, dtype: int, scale: int, workers: int) -> int:
    if not scale and not is_fixed(dtype) or not math.isfinite(x):
        return 0
    e = exponent(dtype, scale, workers)
    # Ties to even. A float64 may be too large or small for it as float64.
    q = round(Fraction(x) * Fraction(2)**e) if dtype & 15 == FLOAT64 else round(math.ldexp(x, e))
    return min(max(q, -2**63), 2**63 - 1)  # out of range only if the scale was a bad guess


def counters(x: float) -> int:
    return 1 if x != x else 1 << 9 if x == math.inf else 1 << 18 if x == -math.inf else 0


def to_payload(values: array, dtype: int, lane: int, scale: int, workers: int) -> bytes:
    if lane == L_BYTES:
        data = values.tobytes()
        return data + bytes(-len(data) % 64)
    ints = values.tolist()
    if format_of(dtype):
        floats = floats_of(values, dtype)
        ints = [quantize(x, dtype, scale, workers) for x in floats]
        if lane == L_FLOAT64_WIDE:
            ints = [w for q, x in zip(ints, floats) for w in (q, counters(x))]
        elif lane in COUNTING:
            ints = [q + (counters(x) << 37) for q, x in zip(ints, floats)]
    per = 64 // min(BITS[lane], 64)
    ints += [0] * (-len(ints) % (8 * per))
    words = [sum(x << 64 // per * i for i, x in enumerate(ints[at:at + per]))
             for at in range(0, len(ints), per)]
    return struct.pack(f"<{len(words)}Q", *[w & M64 for w in words])


def numbers_of(word: int, bits: int, unsigned: bool) -> list[int]:
    """A word has several; a negative one has taken 1 from the one above it."""
    out = []
    for _ in range(64 // bits):
        out.append(word & (1 << bits) - 1 if unsigned else signed(word, bits))
        word = word - out[-1] >> bits
    return out


def sums_of(payload: bytes, lane: int) -> list[tuple[int, int]]:
    """Of each element the sum, and the counters."""
    words = words_of(payload)
    if lane == L_FLOAT64_WIDE:
        return [(signed(q, 64), c) for q, c in zip(words[::2], words[1::2])]
    if lane in COUNTING:
        return [(signed(w, 32), w - signed(w, 32) >> 37 & M64 >> 37) for w in words]
    return [(x, 0) for w in words for x in numbers_of(w, BITS[lane], lane in UNSIGNED)]


def integer(total: int, size: int, unsigned: bool, divisor: int) -> int:
    """An average is rounded towards zero. Then the type has as many bits as it has."""
    total = abs(total) // divisor * (1 if total > 0 else -1)
    return total & (1 << 8 * size) - 1 if unsigned else signed(total, 8 * size)


def float_bits(q: int, counts: int, dtype: int, e: int, divisor: int) -> int:
    """Of q / divisor * 2^e, rounded once; of float32 an average is a float64 first."""
    f = format_of(dtype)
    nan, plus, minus = counts & 511, counts >> 9 & 511, counts >> 18 & 511
    if nan or plus and minus:
        return f.infinity() | 1 << f.precision - 2
    if plus or minus:
        return f.infinity() | (minus > 0) << f.bits - 1
    x = Fraction(q, divisor)
    if dtype == FLOAT32 and divisor > 1:
        x = Fraction(q * (1 / divisor))
    return rounded(x * Fraction(2)**e, q < 0, f)


def from_payload(payload: bytes, lane: int, n: int, scale: int, workers: int, dtype: int,
                 average: bool) -> array:
    """The sums, or averages, of n elements."""
    code = CODES[dtype & 15]
    size = array(code).itemsize
    if lane == L_BYTES:
        return array(code, payload[:n * size])
    sums, divisor, f = sums_of(payload, lane)[:n], workers if average else 1, format_of(dtype)
    if not f:
        return array(code, [integer(x, size, code.isupper(), divisor) for x, _ in sums])
    e = -exponent(dtype, scale, workers)
    bits = [float_bits(q if scale or is_fixed(dtype) else 0, c, dtype, e, divisor)
            for q, c in sums]
    return array(code, b"".join(x.to_bytes(size, "little") for x in bits))
