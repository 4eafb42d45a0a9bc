#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes and reads with examples/tally_wire.py all that docs/vectors.md shows: vectors.py PAGE"""
import os
import re
import struct
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples"))
from tally_wire import *  # noqa: E402,F403
from worker import expected  # noqa: E402

JOB, EPOCH, WINDOW, PAYLOAD = 7, 3, 4, 64
KINDS = {"result": RESULT, "ask": ASK, "mismatch": MISMATCH, "overtaken": OVERTAKEN}
bad, seen = [], {"values": 0, "frames": 0, "made": 0, "sums": 0}


def same(kind: str, where: str, got: object, page: object) -> None:
    seen[kind] += 1
    if got != page:
        words = [f"{x:#x}" if isinstance(x, int) else x for x in (got, page)]
        bad.append(f"{where}: {words[0]} is not {words[1]}")


def run_of(nonce: int) -> int:
    return mix(mix(0, nonce), (JOB << 16) + EPOCH)


def numbers(text: str, dtype: int) -> array:
    code = CODES[dtype & 15]
    if format_of(dtype):
        return array(code, b"".join(int(w, 16).to_bytes(array(code).itemsize, "little")
                                    for w in text.split()))
    return array(code, [int(w, 0) for w in text.split()])


class Section:
    """A part of the page: one call, or messages without."""

    def __init__(self, title: str, nonce: int) -> None:
        self.title, self.n, self.run, self.call = title, 3, run_of(nonce), 0
        self.inputs, self.place, self.identity, self.key = {}, 0, None, b""
        self.name, self.dtype, self.op, self.count, self.root = "", 0, 0, 0, 0
        m = re.match(r"(\w+) of (\d+) (halved|\w+)(?: float32)?(?: with point (-?\d+))?"
                     r"(?: (?:to|from) rank (\d))?(, average)?", title)
        if m:
            self.name, self.count = m[1], int(m[2])
            self.dtype = dtype_of(m[3] + (f"@{m[4]}" if m[4] else ""))
            self.op = 0 if m[1] in ("broadcast", "all_gather") else 2 if m[6] else 1
            self.root = int(m[5] or 0)
        elif title in ("barrier", "The opening"):
            self.name = title.split()[-1]
            self.dtype, self.count = (2, 3) if self.name == "opening" else (0, 0)
        elif title == "tally_close":
            self.name = VERBS[0]
        found = re.match(r"A job of (\d+)", title)
        self.n = int(found[1]) if found else 3

    def shape(self, text: str) -> None:
        self.call = int(text, 16)
        same("values", self.title, shape(VERBS.index(self.name), self.dtype, self.op, self.root,
                                         WINDOW, PAYLOAD, self.count), self.call)

    def payload_of(self, m: Message) -> bytes:
        """What the rank that sent m has in this chunk."""
        part, scale = self.place >> 32, self.place >> 8 & 255
        values = self.inputs.get(m.sender, array("q"))
        if self.name == "reduce_scatter":
            values = values[part * self.count:(part + 1) * self.count]
        form = self.place & 255
        if form:
            each = PAYLOAD * 8 // BITS[m.lane]
            values = values[(form - 1) * each:form * each]
        silent = {"broadcast": m.sender != self.root, "all_gather": m.sender != part}
        if silent.get(self.name) or not self.dtype:
            return b""
        return to_payload(values, self.dtype, m.lane, scale, self.n)

    def contribution(self, where: str, m: Message) -> None:
        """Makes the whole message from the inputs."""
        values = self.inputs.get(m.sender, array("f"))
        first = self.dtype and not self.place >> 16 & 0xffff
        wide = first and self.op and is_wide(values, self.dtype, self.n)
        payload = self.payload_of(m)
        to = self.root if self.name == "reduce" else \
            self.place >> 32 if self.name == "reduce_scatter" else EVERYONE
        scale = 0
        if first and self.op and has_scales(self.dtype):
            scale = scale_of(values, self.dtype, self.n)
        check = check_of(words_of(payload)) + self.identity * weight(m.sender) & M64
        made = Message(CONTRIBUTION, WIDE if wide else 0, JOB, EPOCH, m.seq, to, m.lane, scale,
                       call=self.call, check=check, sender=m.sender, set=1 << m.sender,
                       payload=payload)
        same("made", where, made.pack().hex(), m.pack().hex())

    def frame(self, who: str, check: int, tag: int, data: bytes) -> None:
        where = f"{self.title}: {who}"
        data += bytes((96 if data[3] & LARGE else 64) + 64 * data[18] - len(data))
        m = Message.unpack(data, self.key)
        if not m:
            bad.append(f"{where}: this is no message")
            return
        same("frames", where, (m.pack(self.key), m.check, struct.unpack_from("<Q", data, 40)[0]),
             (data, check, tag))
        if who in KINDS:
            same("values", where, m.kind, KINDS[who])
        else:
            same("values", where, m.sender, int(who[5:]))
        if m.kind not in (CONTRIBUTION, RESULT, REPAIR):
            return
        identity = self.identity or mix(mix(mix(self.run, m.seq), m.call), 0) | 1
        ranks = [r for r in range(self.n) if m.kind != CONTRIBUTION or r == m.sender]
        same("values", where, check_of(words_of(m.payload)) +
             identity * sum(map(weight, ranks)) & M64, m.check)
        if m.kind == CONTRIBUTION and self.call:
            self.contribution(where, m)

    def all_get(self, rank: int, text: str) -> None:
        inputs = [self.inputs.get(r, array(CODES[self.dtype & 15])) for r in range(self.n)]
        got = expected(self.name, self.dtype, self.op, inputs, PAYLOAD, rank, self.root)
        same("sums", f"{self.title}: rank {rank}", got.tobytes(),
             numbers(text, self.dtype).tobytes())


def value(text: str, page: int, nonce: int) -> None:
    """A line of the first block: mix(0, 1), weight(0)."""
    m = re.match(r"(mix|weight)\(([\d, ]+)\)|all weights|run with", text)
    arguments = [int(x) for x in (m[2] or "").split(",") if x]
    got = {"mix": lambda: mix(*arguments), "weight": lambda: weight(*arguments)}.get(
        m[1], lambda: sum(map(weight, range(3))) & M64 if text[0] == "a" else run_of(nonce))()
    same("values", text, got, page)


def read(lines: list[str]) -> None:
    nonce, s, at = 0, Section("the top", 0), 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("## "):
            s = Section(line[3:], nonce)
        elif m := re.match(r"(mix\(.*\)|weight\(.*\)|all weights|run with.*)\s+0x(\w+)$", line):
            value(m[1], int(m[2], 16), nonce)
        elif m := re.match(r"rank (\d) has drawn 0x(\w+)", line):
            r = int(m[1])
            s.inputs[r] = array("q", [int(m[2], 16) if i == r else 0 for i in range(3)])
        elif m := re.match(r"nonce 0x(\w+)", line):
            for values in s.inputs.values():
                nonce = mix(nonce, sum(values) & M64)
            same("values", "nonce", nonce, int(m[1], 16))
        elif re.match(r"rank \d has ", line):
            for r, text in re.findall(r"rank (\d) has ([^;]+)", line):
                s.inputs[int(r)] = numbers(text, s.dtype)
        elif m := re.match(r"rank key (\w+)", line):
            s.key = bytes.fromhex(m[1])
        elif m := re.match(r"shape 0x(\w+)", line):
            s.shape(m[1])
        elif m := re.match(r"chunk (\d+): place 0x(\w+), identity 0x(\w+)", line):
            s.place, s.identity = int(m[2], 16), int(m[3], 16)
            same("values", f"{s.title}: identity",
                 mix(mix(mix(s.run, int(m[1])), s.call), s.place) | 1, s.identity)
        elif m := re.match(r"all get (.*)", line):
            for r in range(3):
                s.all_get(r, m[1])
        elif re.match(r"rank \d gets ", line):
            for r, text in re.findall(r"rank (\d) gets ([^;]+)", line):
                s.all_get(int(r), text)
        elif m := re.match(r"(rank \d+|\w+): check 0x(\w+), tag 0x(\w+)$", line):
            rows = ""
            while re.fullmatch("[0-9a-f]{64}", lines[at]):
                rows += lines[at]
                at += 1
            s.frame(m[1], int(m[2], 16), int(m[3], 16), bytes.fromhex(rows))


with open(sys.argv[1], encoding="ascii") as page:
    text = page.read()
read(text.split("\n"))
same("values", "messages read", seen["frames"], text.count(", tag 0x"))
print(*bad, seen, sep="\n")
sys.exit(bool(bad) or min(seen.values()) < 20)
