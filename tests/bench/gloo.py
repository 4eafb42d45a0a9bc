#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Times allreduces of float32 by Gloo as PyTorch runs it, the way tally-perf times its own.

    gloo.py RENDEZVOUS-FILE RANK WORKERS INTERFACE BYTES:WARMUPS:CALLS...

Prints an object for each size, with the keys of tally-perf --json. Calls follow each other
directly; sums are checked in one more call, which is not timed.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

UNFILLED_MAX = 32  # calls on the sums of those before: eight ranks make 2^-4 2^92 of it


def retransmitted() -> int:
    """Segments that TCP has sent again in this network namespace."""
    with open("/proc/self/net/snmp") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


PERIOD = 256  # elements, after which they come again


def elements(ranks: range, count: int) -> torch.Tensor:
    """The sums over these ranks of multiples of 1/4096 below 1/16: their order does not matter."""
    period = torch.zeros(PERIOD)
    for rank in ranks:
        period += ((torch.arange(PERIOD) * 7 + rank * 13) % PERIOD).to(torch.float32) / 4096
    return period.repeat(-(-count // PERIOD))[:count]


def wrong(workers: int, rank: int, count: int) -> int:
    values = elements(range(rank, rank + 1), count).clone()
    dist.all_reduce(values)
    return int((values != elements(range(workers), count)).sum())


def timed(values: torch.Tensor, source: torch.Tensor, calls: int):
    """Nanoseconds of each call, and the seconds of processors of all."""
    times, cpu = [], 0
    for i in range(calls):
        if i % UNFILLED_MAX == 0:
            values.copy_(source)
        cpu_before, before = time.process_time_ns(), time.perf_counter_ns()
        dist.all_reduce(values)
        times.append(time.perf_counter_ns() - before)
        cpu += time.process_time_ns() - cpu_before
    return sorted(times), cpu / 1e9


def measure(rank: int, workers: int, size: int, warmups: int, calls: int) -> dict:
    count = max(size // 4, 1)
    source = elements(range(rank, rank + 1), count)
    values = source.clone()
    timed(values, source, warmups)
    dist.barrier()
    before, began = retransmitted(), time.time()
    times, cpu_s = timed(values, source, calls)
    ended, after = time.time(), retransmitted()
    us = [t / 1e3 for t in times]
    median = us[calls // 2]
    return {
        "verb": "allreduce", "rank": rank, "workers": workers, "bytes": 4 * count,
        "count": count, "type": "float32", "op": "sum", "in_place": True, "iterations": calls,
        "min_us": us[0], "p50_us": median, "max_us": us[-1],
        "slow_calls": sum(t > 2 * median for t in us),
        "began_s": began, "ended_s": ended, "cpu_s": cpu_s, "retransmitted": after - before,
        "wrong": wrong(workers, rank, count),
    }


def main() -> None:
    rendezvous, interface = sys.argv[1], sys.argv[4]
    rank, workers = int(sys.argv[2]), int(sys.argv[3])
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank,
                            world_size=workers)
    for size in sys.argv[5:]:
        row = measure(rank, workers, *map(int, size.split(":")))
        print(json.dumps(row), flush=True)
    dist.barrier()
    os._exit(0)  # PyTorch's own way out may wait for ever for one of its threads


if __name__ == "__main__":
    main()
