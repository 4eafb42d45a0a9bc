#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The command line, numbers and checks of examples/worker.py; the calls are libtally's."""
import ctypes as C
import os
import sys
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples"))
import tally_job  # noqa: E402
import worker  # noqa: E402

lib = C.CDLL(os.path.abspath(os.environ.get("TALLY_BUILD", "build") + "/libtally.so"))
lib.tally_error.restype = C.c_char_p


def checked(code: int) -> None:
    if code < 0:
        raise worker.TallyError(lib.tally_error().decode())


def zeros(like: array, count: int) -> array:
    return array(like.typecode, bytes(count * like.itemsize))


def memory(values: array):
    return (C.c_char * (len(values) * values.itemsize)).from_buffer(values)


class CMembership:
    """worker.Membership by libtally, which does not tell the payload: one chunk a call, please."""

    def __init__(self, agent, name, token_file, _rank, _address) -> None:
        os.environ.update(TALLY_AGENT=agent, TALLY_JOB=name, TALLY_TOKEN_FILE=token_file)
        self.tally = C.c_void_p()
        checked(lib.tally_join_sized(None, C.c_size_t(0), C.byref(self.tally)))
        workers = [("", 0)] * lib.tally_workers(self.tally)
        self.job = tally_job.Job(0, "", workers, payload=1344, rank=lib.tally_rank(self.tally))


class CWorker:
    """worker.Worker by libtally. The job file is the one of the command line."""

    def __init__(self, job, membership, _timeout) -> None:
        self.job, self.n, self.tally = job, len(job.workers), C.c_void_p()
        self.retransmissions = self.repairs = 0
        if membership:
            self.tally = membership.tally
            return
        path = sys.argv[sys.argv.index("--job-file") + 1]
        checked(lib.tally_open_file(path.encode(), C.c_uint16(job.rank), C.byref(self.tally)))

    def call(self, function, values: array, count: int, give: int, *more: int) -> array:
        out = zeros(values, give)
        checked(function(self.tally, memory(values), memory(out), C.c_size_t(count), *more))
        return out

    def allreduce(self, values, dtype, op):
        return self.call(lib.tally_allreduce, values, len(values), len(values), dtype, op)

    def reduce(self, values, dtype, op, root):
        return self.call(lib.tally_reduce, values, len(values), len(values), dtype, op, root)

    def broadcast(self, values, dtype, root):
        out = values[:] if self.job.rank == root else zeros(values, len(values))
        checked(lib.tally_broadcast(self.tally, memory(out), C.c_size_t(len(out)), dtype, root))
        return out

    def reduce_scatter(self, values, dtype, op):
        part = len(values) // self.n
        return self.call(lib.tally_reduce_scatter, values, part, part, dtype, op)

    def all_gather(self, values, dtype):
        count = len(values)
        return self.call(lib.tally_all_gather, values, count, count * self.n, dtype)

    def barrier(self):
        checked(lib.tally_barrier(self.tally))

    def close(self, failed):
        lib.tally_abort(self.tally) if failed else checked(lib.tally_close(self.tally))


worker.Membership, worker.Worker = CMembership, CWorker
sys.exit(worker.main())
