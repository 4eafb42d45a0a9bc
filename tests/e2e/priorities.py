#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Contributions in what `joiner.py listen` has written, of a job without rank keys: priorities.py
FILE prints, for each that is sent for the first time, its elements (0: a barrier) and priority."""
import sys

sys.path.insert(0, "examples")
from tally_wire import Message  # noqa: E402

HEADERS = 14 + 20 + 8
CONTRIBUTION = 1
COUNT_BIT = 27  # of the shape, docs/protocol.md

seen = set()
with open(sys.argv[1], encoding="ascii") as frames:
    for line in frames:
        if line.startswith("there") or not line.endswith("\n"):
            continue
        message = Message.unpack(bytes.fromhex(line.strip())[HEADERS:])
        if message and message.kind == CONTRIBUTION and message.seq not in seen:
            seen.add(message.seq)
            print(message.call >> COUNT_BIT, message.priority)
