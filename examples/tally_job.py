# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a worker knows of its job: from a job file, or from an agent that it joins."""
import os
import socket
import time
from dataclasses import dataclass
from typing import Optional

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

class Membership:
    """A connection to an agent: one membership in one run of a job."""

    def __init__(self, agent: str, name: str, token_file: str, rank: str, address: str) -> None:
        if os.stat(token_file).st_mode & 0o006:
            raise TallyError(f"{token_file}: everybody may read or write this file")
        with open(token_file, encoding="ascii") as f:
            token = f.readline().strip()
        self.agent, self.tail, self.ending, self.ended_at = agent, b"", "", 0.0
        self.who = f"job {name}\ntoken {token}\n"
        here, port = parse_address(address, 0) if address else ("", 0)
        self.stream = self.connect(here)
        if not agent.startswith("/"):
            here = self.stream.getsockname()[0]
        elif not here:
            raise TallyError("TALLY_ADDRESS is needed on a socket of this machine")
        self.udp = bind((here, port))
        port = self.udp.getsockname()[1]
        where = f"[{here}]:{port}" if ":" in here else f"{here}:{port}"
        self.stream.sendall(f"tally-join 2\n{self.who}rank {rank}\naddress {where}\n\n".encode())
        self.job = self.answer(time.monotonic() + 60)
        self.alive = True
        if self.job.workers[self.job.rank] != (here, port):
            raise TallyError(f"the agent sees {self.job.workers[self.job.rank]}, not {where}: "
                             "addresses are translated on the way")
        self.stream.setblocking(False)

    def connect(self, here: str = "") -> socket.socket:
        if self.agent.startswith("/"):
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(self.agent)
            return stream
        return socket.create_connection(parse_address(self.agent, PORT), 10,
                                        (here, 0) if here else None)

    def line(self, deadline: float) -> str:
        while b"\n" not in self.tail:
            self.stream.settimeout(max(deadline - time.monotonic(), 0.001))
            more = self.stream.recv(4096)
            if not more:
                raise TallyError("the agent ended the connection")
            self.tail += more
        line, self.tail = self.tail.split(b"\n", 1)
        return line.decode("ascii")

    def answer(self, deadline: float) -> Job:
        missing, lines = "", []
        while True:
            try:
                line = self.line(deadline)
            except TimeoutError:
                raise TallyError(f"ranks did not join: {missing or 'unknown'}") from None
            if line.startswith("error "):
                raise TallyError(f"the agent says: {line[6:]}")
            if line.startswith("waiting "):
                missing = line[8:]
            elif not line:
                break
            else:
                lines.append(line)
        if lines[:1] != ["tally-join 2"]:
            raise TallyError(f"the agent says: {lines[:1]}")
        return parse_job(lines[1:], "joining answer")

    def look(self) -> None:
        """Looks what has come during the run; fails when the run is over."""
        try:
            more = self.stream.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        self.alive = bool(more)  # without agent the run goes on
        self.tail += more
        while b"\n" in self.tail:
            line, _, self.tail = self.tail.partition(b"\n")
            if line.startswith(b"ending "):
                self.ending, self.ended_at = line[7:].decode(), time.monotonic()
            elif line.startswith(b"error "):
                raise TallyError(f"the agent says: {line[6:].decode()}")

    def leave(self) -> None:
        try:
            if not self.alive:
                self.stream = self.connect()
            self.stream.setblocking(True)
            self.stream.sendall(f"tally-leave 2\n{self.who}rank {self.job.rank}\n"
                                f"epoch {self.job.epoch}\n\n".encode())
        except OSError:
            pass  # the agent has gone, and asks when it is there again
        self.stream.close()
