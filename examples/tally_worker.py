# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One rank in one run of a job: sends again what is lost, and makes the calls."""
import secrets
import select
import time
from array import array
from dataclasses import dataclass
from typing import Callable, Optional

from tally_job import PORT, Job, Membership, bind
from tally_wire import (ASK, BITS, CONTRIBUTION, EVERYONE, FLUSH, FORMATS, K, L_BYTES, L_NONE,
                        LARGE, M32, M64, MISMATCH, OVERTAKEN, PARTIAL, REJECT, REPAIR, RESULT,
                        VERBS, WIDE, WIDE_AHEAD, Message, TallyError, check_of, describe,
                        from_payload, has_scales, is_fixed, is_wide, lanes_of, mix, point_of,
                        ranks_text, scale_of, shape, signed, to_payload, weight, words_of)

WRONG_SUMS = 8                          # of one chunk, then the call fails


@dataclass
class Piece:
    """A chunk of a call: where its elements are, who has them, who gets the sum."""
    values: Optional[array]             # this rank's, if it contributes any
    n: int
    at: int                             # first element in what comes out
    recipient: int

    def range(self, form: int, per: int) -> tuple[int, int]:
        """The elements that go with a form: all, or so many of the chunk in each wide piece."""
        return ((form - 1) * per, min(form * per, self.n)) if form else (0, self.n)


@dataclass
class Entry:
    """What a round sends under one sequence number, and what has become of it."""
    message: Message
    identity: int
    sum_blocks: int                     # payload of the sum
    piece: Piece
    form: int
    scale: int                          # in which the payload was made
    wants_payload: bool
    result: Optional[Message] = None
    good: bool = True                   # otherwise the next round sends the piece again
    sent: int = 0                       # how often
    order: int = 0                      # the number of the last sending, among all
    sent_at: float = 0.0
    timeouts: int = 0
    wrong: int = 0                      # sums with another check
    answered_at: float = 0.0            # an ask, when the chunk was finished


class Worker:
    """One rank in one run of a job."""

    def __init__(self, job: Job, membership: Optional[Membership] = None,
                 timeout: float = 30.0) -> None:
        self.job, self.membership, self.timeout = job, membership, timeout
        self.n = len(job.workers)
        if not 0 <= job.rank < self.n:
            raise TallyError(f"rank {job.rank}: the job has ranks 0 to {self.n - 1}")
        self.everyone = (1 << self.n) - 1
        self.large = LARGE if self.n > 64 else 0
        self.all_weights = sum(map(weight, range(self.n))) & M64
        self.udp = membership.udp if membership else bind(job.workers[job.rank])
        self.udp.connect((job.service, PORT))
        self.udp.setblocking(False)
        self.seq = 0                    # of the next entry
        self.orders = 0                 # of sendings
        self.waiting: dict[int, Entry] = {}
        self.kept: dict[int, Entry] = {}        # finished ones, by seq mod 2W
        self.free: list[int] = []       # sequence numbers that results let out
        self.newest = 0                 # largest order of an entry that is finished
        self.srtt = self.rttvar = 0.0
        self.rtt_min = 0.25
        self.missing = 0                # as the last ask said
        self.asked_at = 0.0
        self.heard_at = 0.0             # a result
        self.refused = False            # an ICMP error came
        self.version = 2                # the last one that was not ours
        self.retransmissions = self.repairs = 0
        self.guesses = {dtype: [[f.bias] * job.window for _ in range(16)]
                        for dtype, f in FORMATS.items()}
        self.run = self.run_hash()
        self.opened = job.nonce != 0

    def run_hash(self) -> int:
        return mix(mix(0, self.job.nonce), (self.job.number << 16) + self.job.epoch)

    def open(self) -> None:
        """Ranks that have no nonce from an agent make one, before the first call with a chunk."""
        self.opened = True
        mine = [0] * self.n
        mine[self.job.rank] = signed(secrets.randbits(64), 64)
        got = self.collective(7, 2, 0, array("q", mine), self.n)
        if got[self.job.rank] != mine[self.job.rank]:
            raise TallyError(f"epoch {self.job.epoch} of job {self.job.number} has been used by an "
                             "earlier run: every run needs another epoch")
        for element in got:
            self.job.nonce = mix(self.job.nonce, element & M64)
        self.run = self.run_hash()

    # -- Loss ------------------------------------------------------------------------------------

    def rto(self) -> float:
        return min(max(self.srtt + 4 * self.rttvar, 0.01), 0.25) if self.srtt else 0.25

    def deadline(self, e: Entry) -> float:
        return e.sent_at + min(self.rto() * 2 ** min(e.timeouts, 10), 0.25)

    def send(self, message: Message) -> None:
        try:
            self.udp.send(message.pack(self.job.key))
        except (BlockingIOError, ConnectionRefusedError):
            pass  # as good as lost
        except OSError as error:
            raise TallyError(f"cannot send to {self.job.service}: {error.strerror}") from None

    def transmit(self, e: Entry, flags: int = 0, edition: int = 0) -> None:
        """Sends a contribution, and asks on the way about the oldest one that was overtaken."""
        m = Message(**vars(e.message))
        m.flags |= flags
        m.edition = edition
        for seq, other in self.waiting.items():
            if other.order < self.newest and m.about < (m.seq - seq & M32) < 65536:
                m.about = m.seq - seq & M32
        if e.sent and not m.payload:
            m.payload = bytes(64 * e.sum_blocks)  # room for the sum
        self.retransmissions += e.sent > 0
        self.orders += 1
        e.sent, e.order, e.sent_at = e.sent + 1, self.orders, time.monotonic()
        self.send(m)

    def receive(self, until: float) -> None:
        """Waits for messages, and acts on all that are there."""
        streams = [self.udp]
        if self.membership and self.membership.alive:
            streams.append(self.membership.session.stream)
        ready = select.select(streams, [], [], max(until - time.monotonic(), 0))[0]
        if len(ready) > (self.udp in ready):
            self.membership.look()
        for _ in range(64 if self.udp in ready else 0):
            try:
                data = self.udp.recv(65536)
            except BlockingIOError:
                return
            except ConnectionRefusedError:
                self.refused = True
                continue
            if data[:1] == b"\xa7" and data[1] != 2:
                self.version = data[1]  # a node of another version, or a flipped bit
            m = Message.unpack(data, self.job.key)
            if m and (m.job, m.epoch) == (self.job.number, self.job.epoch) and \
                    m.flags & LARGE == self.large:
                self.act(m)

    def act(self, m: Message) -> None:
        e = self.waiting.get(m.seq)
        if m.kind == RESULT:
            if e and not e.result:
                self.take(e, m)
            if m.about:
                self.hear(self.waiting.get(m.seq - m.about & M32), e or
                          self.kept.get(m.seq % (2 * self.job.window)), m.set)
        elif m.kind == ASK:
            self.answer(m, e)
        elif m.kind == MISMATCH and e:
            other, sender = describe(m.check), m.sender
            if m.check == m.call:
                other += " in another form"
            raise TallyError(f"ranks make different calls: rank {sender} calls {other}; "
                             f"{ranks_text(m.set)} {describe(m.call)}; "
                             f"this is rank {self.job.rank}, {describe(e.message.call)}")
        elif m.kind == OVERTAKEN and e:
            raise TallyError(f"the node is at chunk {m.check} already, this rank at {m.seq}: "
                             "another process uses, or has used, the same rank in the same epoch")

    def take(self, e: Entry, m: Message) -> None:
        """Takes a result, if it is right."""
        mine = e.message
        if (m.call, m.lane, m.recipient) != (mine.call, mine.lane, mine.recipient) or \
                m.flags & (PARTIAL | FLUSH | REJECT):
            return
        if len(m.payload) != (64 * e.sum_blocks if e.wants_payload else 0):
            return
        if e.wants_payload or not e.sum_blocks:
            if m.check != check_of(words_of(m.payload)) + e.identity * self.all_weights & M64:
                e.wrong += 1
                if e.wrong >= WRONG_SUMS:
                    raise TallyError(f"{e.wrong} wrong sums of chunk {m.seq}")
                self.transmit(e, *((REJECT | FLUSH, m.edition) if e.wrong > 1 else ()))
                return
        now = time.monotonic()
        if e.sent == 1:
            rtt = now - e.sent_at
            self.rtt_min = min(self.rtt_min, rtt)
            self.rttvar = 0.75 * self.rttvar + 0.25 * abs(self.srtt - rtt) if self.srtt else rtt / 2
            self.srtt = 0.875 * self.srtt + 0.125 * rtt if self.srtt else rtt
        e.result = m
        self.newest = max(self.newest, e.order)
        self.heard_at = now
        self.missing = 0
        del self.waiting[m.seq]
        self.kept[m.seq % (2 * self.job.window)] = e
        self.free.append(m.seq + self.job.window & M32)

    def hear(self, e: Optional[Entry], bearer: Optional[Entry], ranks: int) -> None:
        """News of e's chunk came with the result of a later one, the bearer."""
        if e and bearer and e.order < bearer.order and \
                (ranks == self.everyone or not ranks >> self.job.rank & 1):
            self.transmit(e)

    def answer(self, m: Message, e: Optional[Entry]) -> None:
        """Answers an ask: contributes again, or repairs."""
        now = time.monotonic()
        self.asked_at = now
        if e:
            self.missing = self.everyone & ~m.set
            mine_is_missing = not m.set >> self.job.rank & 1
            if m.set == self.everyone or mine_is_missing and now - e.sent_at > self.rtt_min:
                self.transmit(e, FLUSH)
            return
        e = self.kept.get(m.seq % (2 * self.job.window))
        if not e or (e.message.seq, e.message.call) != (m.seq, m.call) or \
                now - e.answered_at < self.rto() / 2:
            return
        e.answered_at = now
        if e.wants_payload or not e.sum_blocks:
            r = Message(**vars(e.result))
            r.kind, r.boot, r.about, r.sender, r.set = REPAIR, 0, 0, self.job.rank, self.everyone
            self.repairs += 1
            self.send(r)
        else:
            self.transmit(e, FLUSH)

    # -- Rounds ----------------------------------------------------------------------------------

    def round(self, count: int, make: Callable[[int, int], Entry]) -> list[Entry]:
        """Sends entries 0 to count - 1 under the next sequence numbers, until all are finished."""
        window, entries = self.job.window, {}
        given_up = (now := time.monotonic()) + self.timeout
        base, self.seq, self.heard_at = self.seq, self.seq + count & M32, now
        self.free = [base + k & M32 for k in range(min(count, window))]
        while len(entries) < count or self.waiting:
            if self.free:
                seq = self.free.pop(0)
                k = seq - base & M32
                if k < count:
                    entries[k] = e = make(k, seq)
                    self.kept.pop(seq % (2 * window), None)
                    self.waiting[seq] = e
                    self.transmit(e)
                self.receive(0)
            else:
                self.receive(min(map(self.deadline, self.waiting.values())))
                self.time_out(given_up)
        return [entries[k] for k in range(count)]

    def time_out(self, given_up: float) -> None:
        """Sends again what is late, and looks whether the call should fail."""
        now = time.monotonic()
        late = [e for e in self.waiting.values() if self.deadline(e) <= now]
        for e in late[:2]:              # silence is more often a late rank than a lost packet
            e.timeouts += 1
            self.transmit(e, FLUSH if e.timeouts > 1 else 0)
        for e in late[2:]:
            e.sent_at = now
        who = self.membership
        if who and who.ending and now - max(self.heard_at, who.ended_at) > 0.5:
            raise TallyError(f"the run is ending: {who.ending}")
        if now > given_up and self.waiting:
            why = f"ranks {ranks_text(self.missing)} are missing" if self.missing else \
                "nothing is known of the others"
            why += ", port unreachable" if self.refused else ""
            why += f", a message had version {self.version}" if self.version != 2 else ""
            call = next(iter(self.waiting.values())).message.call
            raise TallyError(f"{describe(call)}: no result in {self.timeout} s; {why}")

    # -- Collectives -----------------------------------------------------------------------------

    def collective(self, verb: int, dtype: int, op: int, values: array, count: int,
                   root: int = 0) -> array:
        """Any call. Count is that of the shape; ranks that contribute nothing have values, too."""
        name, window = VERBS[verb], self.job.window
        call = shape(verb, dtype, op, root, window, self.job.payload, count)
        lane, wide_lane = (L_NONE, 0) if not dtype else (L_BYTES, 0) if name in (
            "broadcast", "all_gather") else lanes_of(dtype, self.n)
        sums = lane not in (L_NONE, L_BYTES)
        scaled, asks = sums and has_scales(dtype), sums and (wide_lane > 0 or is_fixed(dtype))
        each = self.job.payload * 8 // BITS[wide_lane] if wide_lane else 0  # of a wide piece
        pieces = self.plan(name, values, count, root, lane)
        if pieces and not self.opened:
            self.open()
        scales = [scale_of(p.values, dtype, self.n) if scaled else 0 for p in pieces]
        wides = [asks and is_wide(p.values, dtype, self.n) for p in pieces]
        guesses = self.guesses[dtype][((count * 8 + verb) * K & M64) >> 60] if scaled else []
        out = array(values.typecode, [0]) * (count * self.n if name == "all_gather" else count)

        def entry(k: int, seq: int, rounds: int, p: Piece, form: int, scale: int) -> Entry:
            a, b = p.range(form, each)
            my_lane = wide_lane if form else lane
            payload = (to_payload(p.values[a:b], dtype, my_lane, scale, self.n) if p.values
                       else b"")
            bits = 0 if not dtype else BITS[my_lane] if sums else 8 * values.itemsize
            place = (k << 32) + (rounds << 16) + (scale << 8) + form
            identity = mix(mix(mix(self.run, seq), call), place) | 1
            check = check_of(words_of(payload)) + identity * weight(self.job.rank) & M64
            m = Message(CONTRIBUTION, self.large, self.job.number, self.job.epoch, seq, p.recipient,
                        my_lane, call=call, check=check, sender=self.job.rank,
                        set=1 << self.job.rank, payload=payload)
            return Entry(m, identity, -(-(b - a) * bits // 512), p, form, scale,
                         dtype > 0 and p.recipient in (EVERYONE, self.job.rank))

        def first(k: int, seq: int) -> Entry:
            """Round 0: by a guess, or as the result one window before said."""
            form, scale = 0, guesses[k] if scaled and k < window else 0
            if asks and k >= window:
                before = self.kept[(seq - window) % (2 * window)].result
                form, scale = int(before.flags & WIDE_AHEAD > 0), before.scale_ahead
                form = form if wide_lane else 0
            e = entry(k, seq, 0, pieces[k], form, scale)
            e.message.scale, e.message.flags = scales[k], self.large | (WIDE if wides[k] else 0)
            if k + window < len(pieces):
                e.message.scale_ahead = scales[k + window]
                e.message.flags |= WIDE_AHEAD if wides[k + window] else 0
            return e

        again: list[tuple[Piece, int, int]] = []        # piece, form, scale
        entries = self.round(len(pieces), first)
        for k, e in enumerate(entries if asks else ()):
            scale, wide = e.result.scale, e.result.flags & WIDE
            forms = -(-e.piece.n // each) if wide_lane else 0
            if wide and not wide_lane:
                raise TallyError(f"{describe(call)}: a value does not fit point {point_of(dtype)}")
            if scale and k < window and scaled:
                guesses[k] = scale
            if scale not in (0, e.scale) or wide and not e.form:
                e.good = False
                again += [(e.piece, f, scale) for f in (range(1, forms + 1) if wide else (0,))]
            elif e.form:
                again += [(e.piece, f, e.scale) for f in range(2, forms + 1)]
        entries += self.round(len(again), lambda k, seq: entry(k, seq, 1, *again[k]))
        for e in entries:
            if e.good and e.wants_payload:
                a, b = e.piece.range(e.form, each)
                out[e.piece.at + a:e.piece.at + b] = from_payload(
                    e.result.payload, e.message.lane, b - a, e.scale, self.n, dtype, op == 2)
        return out

    def plan(self, name: str, values: array, count: int, root: int, lane: int) -> list[Piece]:
        """The chunks of a call, in order."""
        if name in ("end", "barrier"):
            return [Piece(None, 0, 0, EVERYONE)]
        bits = 8 * values.itemsize if lane == L_BYTES else BITS[lane]
        per, pieces = self.job.payload * 8 // bits, []
        for part in range(self.n if name in ("reduce_scatter", "all_gather") else 1):
            to = {"reduce": root, "reduce_scatter": part}.get(name, EVERYONE)
            source = {"broadcast": root, "all_gather": part}.get(name, self.job.rank)
            skip_in = part * count if name == "reduce_scatter" else 0
            skip_out = part * count if name == "all_gather" else 0
            for at in range(0, count, per):
                n = min(per, count - at)
                mine = values[skip_in + at:skip_in + at + n] if source == self.job.rank else None
                pieces.append(Piece(mine, n, skip_out + at, to))
        return pieces

    def allreduce(self, values: array, dtype: int, op: int = 1) -> array:
        return self.collective(1, dtype, op, values, len(values))

    def reduce(self, values: array, dtype: int, op: int, root: int) -> array:
        """The sum on the rank root; zeros elsewhere."""
        return self.collective(2, dtype, op, values, len(values), root)

    def broadcast(self, values: array, dtype: int, root: int) -> array:
        return self.collective(3, dtype, 0, values, len(values), root)

    def reduce_scatter(self, values: array, dtype: int, op: int) -> array:
        """This rank's part of the sum of N parts."""
        return self.collective(4, dtype, op, values, len(values) // self.n)

    def all_gather(self, values: array, dtype: int) -> array:
        return self.collective(5, dtype, 0, values, len(values))

    def barrier(self) -> None:
        self.collective(6, 0, 0, array("q"), 0)

    # -- The end ---------------------------------------------------------------------------------

    def linger(self) -> None:
        """Answers asks until nobody has asked for four timeouts."""
        stay = max(4 * self.rto(), 0.02)
        self.asked_at = time.monotonic()
        while time.monotonic() < self.asked_at + stay:
            try:
                self.receive(self.asked_at + stay)
            except TallyError:
                break

    def close(self, failed: bool = False) -> None:
        """Ends with a barrier, and answers asks for a while; after a failure only the latter."""
        try:
            if not failed and self.orders:      # nobody misses a rank that has sent nothing
                self.collective(0, 0, 0, array("q"), 0)
        finally:
            self.waiting.clear()
            self.linger()
            if self.membership:
                self.membership.leave()
            self.udp.close()
