# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a worker knows of its job: from a job file, or from an agent that it joins."""
import hashlib
import hmac
import os
import secrets
import socket
import time
from dataclasses import dataclass
from typing import Optional, Union

from tally_wire import TallyError

PORT = 31249

# ---- The job ----------------------------------------------------------------------------------

@dataclass
class Job:
    """What all workers and nodes agree on, and what an agent says besides."""
    number: int
    service: str
    workers: list[tuple[str, int]]
    epoch: int = 1
    window: int = 128
    payload: int = 0
    rank: int = -1
    nonce: int = 0
    key: bytes = b""        # of this rank; empty: the job has no keys


def parse_address(text: str, port: Optional[int] = None) -> tuple[str, int]:
    """10.77.1.1:40000, [fd77::1]:40000, or without a port if there is a default."""
    host, colon, number = text.rpartition(":")
    if not colon or number.endswith("]") or ":" in host and not host.startswith("["):
        host, number = text, ""
    if not number and port is None:
        raise TallyError(f"address {text}: the port is missing")
    return host.strip("[]"), int(number or port or 0)


def parse_job(lines: list[str], where: str) -> Job:
    """A job file, or the end of a joining answer."""
    keys: dict[str, str] = {}
    workers: list[tuple[str, int]] = []
    for at, line in enumerate(lines, 1):
        key, _, value = line.split("#")[0].strip().partition(" ")
        value = value.strip()
        if key == "worker":
            workers.append(parse_address(value))
        elif key in ("job", "epoch", "window", "payload", "service", "rank", "nonce"):
            if key in keys:
                raise TallyError(f"{where}: line {at}: {key} is there twice")
            keys[key] = value
        elif key:
            raise TallyError(f"{where}: line {at}: no such key: {key}")
    if not workers or "job" not in keys or "service" not in keys:
        raise TallyError(f"{where}: job, service and workers are needed")
    fits = 1408 if ":" not in keys["service"] and len(workers) <= 64 else 1344
    return Job(int(keys["job"]), keys["service"], workers, int(keys.get("epoch", 1)),
               int(keys.get("window", 128)), int(keys.get("payload", fits)),
               int(keys.get("rank", -1)), int(keys.get("nonce", "0"), 16))


def bind(address: tuple[str, int]) -> socket.socket:
    udp = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET,
                        socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    udp.bind(address)
    return udp


# ---- Joining ----------------------------------------------------------------------------------

def prove(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def token_key(token: str) -> bytes:
    return prove(token.encode(), b"tally token")


def x25519(secret: bytes, share: bytes = (9).to_bytes(32, "little")) -> bytes:
    """RFC 7748: of a secret its share; of the other one's share what both know. (Not secret from
    who can measure on this machine how long it takes.)"""
    p = 2**255 - 19
    u = int.from_bytes(share, "little") & 2**255 - 1
    k = int.from_bytes(secret, "little") & 2**255 - 8 | 2**254
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in reversed(range(255)):
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % p, b * b % p, d * a % p, c * b % p
        x3, z3 = (da + cb)**2 % p, u * (da - cb)**2 % p
        x2, z2 = aa * bb % p, (aa - bb) * (aa + 121665 * (aa - bb)) % p
        if k >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, p - 2, p) % p).to_bytes(32, "little")


class Session:
    """A connection on which each message has a proof that its speaker knows the token."""

    def __init__(self, stream: socket.socket, name: str, key: bytes) -> None:
        self.stream, self.tail, self.said = stream, b"", {"worker": 0, "agent": 0}
        opening = f"tally-join 4\njob {name}\nchallenge {secrets.token_hex(16)}\n\n".encode()
        stream.sendall(opening)
        stream.settimeout(10)
        while not self.tail.endswith(b"\n\n"):
            self.receive()
        if not self.tail.startswith(b"tally-join 4\nchallenge "):
            raise TallyError(f"the agent says: {self.tail.decode('ascii', 'replace').strip()}")
        self.key = prove(key, opening + self.tail)
        self.tail = b""

    def receive(self) -> None:
        more = self.stream.recv(4096)
        if not more:
            raise ConnectionError("the agent ended the connection")
        self.tail += more

    def proof(self, who: str, message: bytes) -> str:
        place = f"{who} {self.said[who]}\n".encode()
        self.said[who] += 1
        return prove(self.key, place + message).hex()

    def say(self, message: str) -> None:
        text = message.encode()
        self.stream.sendall(f"proof {self.proof('worker', text)} {len(text)}\n".encode() + text)

    def take(self) -> Optional[list[str]]:
        """The lines of the next message, if all of it has come."""
        line, end, rest = self.tail.partition(b"\n")
        if self.tail.startswith(b"error ") and not self.said["agent"]:
            raise TallyError(f"the agent says: {line[6:].decode('ascii', 'replace')}")
        if not end:
            return None
        word, proof, length = line.decode("ascii").split(" ")
        if len(rest) < int(length):
            return None
        text, self.tail = rest[:int(length)], rest[int(length):]
        if word != "proof" or not hmac.compare_digest(proof, self.proof("agent", text)):
            raise TallyError("the agent does not know the token, or bytes were changed on the way")
        return text.decode("ascii").split("\n")

    def opened(self, key: bytes, secret: bytes) -> bytes:
        """The rank's key: sealed, behind the agent's share."""
        pad = prove(self.key, b"rank key\n" + x25519(secret, key[:32]))
        return bytes(a ^ b for a, b in zip(key[32:], pad))


# What an answer says besides the job, and needs not be known; and what needs to be.
IGNORED = ("other", "which", "share")
REFUSED = {"roots": "the job has several roots, and this worker knows one only",
           "sealed": "the job is sealed, and this worker cannot open what is"}


def parse_answer(lines: list[str]) -> tuple[Job, str]:
    """Of an agent, when the run begins: the job, and this rank's key as it was said."""
    kept, rank_key = [], "none"
    for line in lines:
        key, _, value = line.partition(" ")
        if key in REFUSED:
            raise TallyError(REFUSED[key])
        if key == "key":
            rank_key = value
        elif key not in IGNORED:
            kept.append(line)
    return parse_job(kept, "joining answer"), rank_key


class Membership:
    """One membership in one run of a job, which an agent gives.

    Where the connection ends before the answer, as when the agent is restarted, there is no place,
    and this raises an error: start the worker again. libtally asks again by itself.
    """

    def __init__(self, agent: str, name: str, token_file: str, rank: str, address: str) -> None:
        if os.stat(token_file).st_mode & 0o006:
            raise TallyError(f"{token_file}: everybody may read or write this file")
        with open(token_file, encoding="ascii") as f:
            self.key = token_key(f.readline().strip())
        self.agent, self.name, self.ending, self.ended_at = agent, name, "", 0.0
        here, port = parse_address(address, 0) if address else ("", 0)
        stream = self.connect(here)
        if not agent.startswith("/"):
            here = stream.getsockname()[0]
        elif not here:
            raise TallyError("TALLY_ADDRESS is needed on a socket of this machine")
        self.udp = bind((here, port))
        port = self.udp.getsockname()[1]
        where = f"[{here}]:{port}" if ":" in here else f"{here}:{port}"
        self.session = Session(stream, name, self.key)
        self.secret = secrets.token_bytes(32)
        self.session.say(f"join\nrank {rank}\naddress {where}\n"
                         f"share {x25519(self.secret).hex()}\n\n")
        self.job = self.answer(time.monotonic() + 60)
        self.alive = True
        if self.job.workers[self.job.rank] != (here, port):
            raise TallyError(f"the agent sees {self.job.workers[self.job.rank]}, not {where}: "
                             "addresses are translated on the way")
        stream.setblocking(False)

    def connect(self, here: str = "") -> socket.socket:
        if self.agent.startswith("/"):
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(self.agent)
            return stream
        return socket.create_connection(parse_address(self.agent, PORT), 10,
                                        (here, 0) if here else None)

    def answer(self, deadline: float) -> Job:
        missing = "unknown"
        while True:
            lines = self.session.take()
            if lines is None:
                self.session.stream.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    self.session.receive()
                except TimeoutError:
                    raise TallyError(f"ranks did not join: {missing}") from None
            elif lines[0] == "run":
                job, key = parse_answer(lines[1:])
                if key != "none":
                    job.key = self.session.opened(bytes.fromhex(key), self.secret)
                return job
            elif lines[0].startswith("waiting "):
                missing = lines[0][8:]
            else:
                raise TallyError(f"the agent says: {lines[0]}")

    def look(self) -> None:
        """Looks what has come during the run; fails when the run is over."""
        try:
            self.session.receive()
        except BlockingIOError:
            return
        except OSError:
            self.alive = False  # without agent the run goes on
        while lines := self.session.take():
            if lines[0].startswith("ending "):
                self.ending, self.ended_at = lines[0][7:], time.monotonic()
            elif lines[0].startswith("error "):
                raise TallyError(f"the agent says: {lines[0][6:]}")

    def leave(self) -> None:
        try:
            if not self.alive:
                self.session = Session(self.connect(), self.name, self.key)
            self.session.stream.setblocking(True)
            self.session.say(f"leave\nrank {self.job.rank}\nepoch {self.job.epoch}\n\n")
        except (OSError, TallyError):
            pass  # the agent has gone, and asks when it is there again
