#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Tally worker in plain Python, written from docs/protocol.md (version 2).

Read this file first. It sums numbers that are made from a seed, so that every rank can check what
comes back. The protocol is in tally_wire.py (messages), tally_job.py (job files, joining) and
tally_worker.py (loss, calls), to be read beside that page, in this order:

    worker.py --job-file job.conf --rank 0 allreduce --count 1000 --type float32
    worker.py --join resnet --agent 10.77.0.1 --token-file resnet.token allreduce barrier
"""
import argparse
import hashlib
import os
import struct
import sys
from array import array
from fractions import Fraction

from tally_job import Membership, parse_job
from tally_wire import (BITS, CODES, FORMATS, M64, OPS, TYPES, VERBS, Format, TallyError, dtype_of,
                        from_payload, has_scales, lanes_of, mix, rounded, scale_of, signed,
                        to_payload, words_of)
from tally_worker import Worker


# ---- Numbers to check -------------------------------------------------------------------------

def make_data(kind: str, dtype: int, seed: int, rank: int, n: int) -> array:
    """The input of a rank in a call with this seed: any program can make the same."""
    base = mix(mix(0, seed), rank)
    h = [mix(base, i) for i in range(n)]
    code, f = CODES[dtype & 15], FORMATS.get(dtype & 15)
    size = array(code).itemsize
    if not f:
        keep = 8 * size if kind == "wild" else 5 * size
        return array(code, [x & (1 << keep) - 1 if code.isupper() else signed(x, keep) for x in h])
    bits = float_bits(kind, f, h)
    return array(code, b"".join(x.to_bytes(size, "little") for x in bits))


def float_bits(kind: str, f: Format, h: list[int]) -> list[int]:
    if kind == "tame":
        tame = [Fraction(signed(x, 24), 2**20) for x in h]
        return [rounded(x, x < 0, f) for x in tame]
    sign = 1 << f.bits - 1
    if kind == "tiny":
        return [x & (sign | 7) for x in h]
    bits = [x & 2 * sign - 1 for x in h]
    bits = [x if (x & sign - 1) < f.infinity() else x & sign for x in bits]
    if kind == "nonfinite":
        odd = (f.infinity() | 1 << f.precision - 2, f.infinity(), f.infinity() | sign)
        bits = [odd[(x >> 40) % 3] if x >> 58 == 0 else b for x, b in zip(h, bits)]
    return bits


def expected(name: str, dtype: int, op: int, data: list[array], payload: int, rank: int,
             root: int) -> array:
    """What a call must give, from the inputs of all ranks; chunks are as packets have room."""
    n = len(data)
    if name == "broadcast":
        return data[root]
    if name == "all_gather":
        return sum(data[1:], data[0])
    size = len(data[0]) // n if name == "reduce_scatter" else len(data[0])
    out, skip = array(data[0].typecode), rank * size if name == "reduce_scatter" else 0
    if name == "reduce" and rank != root:
        return array(out.typecode, bytes(size * out.itemsize))
    first, wide = lanes_of(dtype, n)
    lane, per = wide or first, payload * 8 // BITS[first]
    for at in range(skip, skip + size, per):
        parts = [d[at:min(at + per, skip + size)] for d in data]
        scale = max(scale_of(p, dtype, n) for p in parts) if has_scales(dtype) else 0
        words = [sum(w) & M64 for w in zip(*(words_of(to_payload(p, dtype, lane, scale, n))
                                             for p in parts))]
        out += from_payload(struct.pack(f"<{len(words)}Q", *words), lane, len(parts[0]), scale, n,
                            dtype, op == 2)
    return out


def run_check(w: Worker, args: argparse.Namespace) -> int:
    """Makes the calls of the command line, and says how many elements were wrong."""
    wrong, calls = 0, 0
    for repeat in range(args.repeat):
        for text in args.verb:
            verb, *own = text.split(":")
            kind, count, of, made = own + [args.type, args.count, args.op, args.data][len(own):]
            seed, dtype, op, n = args.seed + calls, dtype_of(kind), OPS.index(of), w.n
            if verb == "barrier":
                w.barrier()
                calls += 1
                continue
            size = int(count) * (n if verb == "reduce_scatter" else 1)
            ranks = range(n) if not args.no_check else [w.job.rank]
            data = [make_data(made, dtype, seed, r, size) for r in ranks]
            mine = data[w.job.rank] if not args.no_check else data[0]
            more = {"allreduce": (op,), "reduce": (op, args.root), "broadcast": (args.root,),
                    "reduce_scatter": (op,), "all_gather": ()}[verb]
            got = getattr(w, verb)(mine, dtype, *more)
            if not args.no_check:
                want = expected(verb, dtype, op, data, w.job.payload, w.job.rank, args.root)
                a, b = got.tobytes(), want.tobytes()
                bad = sum(a[i:i + got.itemsize] != b[i:i + got.itemsize]
                          for i in range(0, len(b), got.itemsize))
                wrong += bad
            calls += 1
            if args.hash:
                print(verb, kind, len(got), hashlib.sha256(got.tobytes()).hexdigest()[:16])
    print(f"rank {w.job.rank}: {calls} calls, {wrong} wrong elements, "
          f"{w.retransmissions} sent again, {w.repairs} repairs", flush=True)
    return wrong


def main() -> int:
    env = os.environ.get
    p = argparse.ArgumentParser(description="A Tally worker: calls collectives, checks their sums.")
    p.add_argument("verb", nargs="+", help=", ".join(VERBS[1:7]) + "; or VERB:TYPE:COUNT:OP:DATA")
    p.add_argument("--job-file")
    p.add_argument("--join", nargs="?", const=env("TALLY_JOB"), help="a job of an agent")
    p.add_argument("--agent", default=env("TALLY_AGENT", "/run/tally/join.sock"))
    p.add_argument("--token-file", default=env("TALLY_TOKEN_FILE"))
    p.add_argument("--rank", default=env("TALLY_RANK", "any"))
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--type", default="float32",
                   help=", ".join(TYPES[1:]) + "; floats with a point as float32@20")
    p.add_argument("--op", choices=OPS[1:], default="sum")
    p.add_argument("--root", type=int, default=0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--data", choices=("tame", "tiny", "wild", "nonfinite"), default="tame")
    p.add_argument("--repeat", type=int, default=1, help="all calls, so many times")
    p.add_argument("--timeout", type=float, default=30, help="of a call, in seconds")
    p.add_argument("--hash", action="store_true", help="print a hash of what each call gave")
    p.add_argument("--no-check", action="store_true")
    args = p.parse_args()
    worker, wrong, failed = None, 0, False
    try:
        if args.job_file:
            with open(args.job_file, encoding="ascii") as f:
                job = parse_job(f.read().split("\n"), args.job_file)
            job.rank = int(args.rank)
            worker = Worker(job, None, args.timeout)
        else:
            member = Membership(args.agent, args.join, args.token_file, args.rank,
                                env("TALLY_ADDRESS", ""))
            worker = Worker(member.job, member, args.timeout)
        try:
            wrong = run_check(worker, args)
        except TallyError:
            failed = True
            raise
        finally:
            worker.close(failed)
    except (TallyError, OSError) as error:
        print(f"worker.py: {error}", file=sys.stderr)
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
