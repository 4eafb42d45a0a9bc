#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Workers and agents that mean harm, or stand on the way, when a job is joined.

    joiner.py join AGENT JOB TOKEN-FILE                 says what the agent answers at once
    joiner.py stay AGENT JOB TOKEN-FILE RANK            joins, says its epoch, and does nothing until
                                                        its standard input ends
    joiner.py leave AGENT JOB TOKEN-FILE EPOCH RANK...  says over new connections that ranks leave
    joiner.py guess AGENT JOB COUNT SECONDS             tries wrong tokens, on 50 connections at once
    joiner.py crowd AGENT JOB COUNT                     says wrong tokens on all these connections, and
                                                        in which order they are answered
    joiner.py hang-up AGENT JOB COUNT                   says wrong tokens on all these connections, and
                                                        hears no answer
    joiner.py replay AGENT RECORDED                     says again what a worker once said
    joiner.py relay [ADDRESS:]PORT AGENT RECORD [SIDE:BYTE...]
                                                        stands between a worker and AGENT, and records
                                                        what the worker says; on the first connection
                                                        changes this byte of what SIDE (worker, agent)
                                                        says, on the second one the next, and so on
    joiner.py peer AGENT ROOT SECRET-FILE MESSAGE       says MESSAGE as the agent of ROOT to that of the
                                                        node AGENT, and prints the answer
    joiner.py listen INTERFACE                          all frames there, in hex, until it is told to end
"""
import collections
import hashlib
import hmac
import itertools
import secrets
import selectors
import socket
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from tally_job import PORT, Membership, Session, parse_address, token_key, x25519  # noqa: E402
from tally_wire import TallyError  # noqa: E402


SHARE = "ab" * 32


def connect(agent: str) -> socket.socket:
    return socket.create_connection(parse_address(agent, PORT), 10)


def everything(stream: socket.socket) -> bytes:
    stream.settimeout(10)
    said = b""
    while more := stream.recv(4096):
        said += more
    return said


def ask(agent: str, job: str, file: str, message: str) -> None:
    key = token_key(Path(file).read_text(encoding="ascii").strip())
    session = Session(connect(agent), job, key)
    session.say(message.format(address=session.stream.getsockname()[0]))
    while not (lines := session.take()):
        session.receive()
    print(lines[0])


def join(agent: str, job: str, file: str) -> None:
    ask(agent, job, file, "join\nrank any\naddress {address}:50000\nshare " + SHARE + "\n\n")


def stay(agent: str, job: str, file: str, rank: str) -> None:
    member = Membership(agent, job, file, rank, "")  # kept: its end would end the connection
    print("there", member.job.epoch, flush=True)
    sys.stdin.read()


def leave(agent: str, job: str, file: str, epoch: str, *ranks: str) -> None:
    for rank in ranks:
        ask(agent, job, file, f"leave\nrank {rank}\nepoch {epoch}\n\n")


def guess(agent: str, job: str, count: str, seconds: str) -> None:
    """What became of all, one line each: the error, how often, and its words when it came last."""
    said: collections.Counter[str] = collections.Counter()
    words: dict[str, str] = {}
    tried, end = 0, time.monotonic() + float(seconds)
    while tried < int(count) and time.monotonic() < end:
        sessions = []
        for _ in range(min(50, int(count) - tried)):
            tried += 1
            sessions.append(Session(connect(agent), job, token_key(f"{tried:048x}")))
        for session in sessions:
            address = session.stream.getsockname()[0]
            session.say(f"join\nrank any\naddress {address}:40000\nshare {SHARE}\n\n")
        for session in sessions:
            try:
                while not session.take():
                    session.receive()
                said["taken"] += 1
            except TallyError as error:
                what = str(error).split()[3]
                said[what] += 1
                words[what] = str(error)
            session.stream.close()
    for what, times in said.items():
        print(what, times, words.get(what))


def wrong(agent: str, job: str, count: str) -> list[Session]:
    sessions = [Session(connect(agent), job, token_key(f"{i:048x}")) for i in range(int(count))]
    for session in sessions:
        address = session.stream.getsockname()[0]
        session.say(f"join\nrank any\naddress {address}:40000\nshare {SHARE}\n\n")
    return sessions


def hang_up(agent: str, job: str, count: str) -> None:
    for session in wrong(agent, job, count):
        session.stream.close()


def crowd(agent: str, job: str, count: str) -> None:
    with selectors.DefaultSelector() as wait:
        for number, session in enumerate(wrong(agent, job, count)):
            wait.register(session.stream, selectors.EVENT_READ, number)
        while wait.get_map():
            for key, _ in wait.select():
                wait.unregister(key.fileobj)
                print(key.data)


def replay(agent: str, recorded: str) -> None:
    stream = connect(agent)
    stream.sendall(Path(recorded).read_bytes())
    print(everything(stream).decode("ascii"))


def relay(at: str, agent: str, record: str, *changes: str) -> None:
    address, _, port = at.rpartition(":")
    listener = socket.create_server((address or "0.0.0.0", int(port)))
    print("there", flush=True)
    for change in itertools.chain(changes, itertools.repeat(":0")):
        side, _, byte = change.partition(":")
        worker, _ = listener.accept()
        ends = {"worker": worker, "agent": connect(agent)}
        said = {"worker": b"", "agent": b""}
        with selectors.DefaultSelector() as wait:
            for who, stream in ends.items():
                wait.register(stream, selectors.EVENT_READ, who)
            while len(wait.get_map()) == 2:
                for key, _ in wait.select():
                    who = key.data
                    try:
                        more = bytearray(key.fileobj.recv(4096))  # type: ignore[union-attr]
                    except OSError:
                        more = bytearray()
                    if not more:
                        wait.unregister(key.fileobj)
                        continue
                    at = int(byte) - len(said[who])
                    said[who] += more
                    if who == side and 0 <= at < len(more):
                        more[at] ^= 1
                    ends["agent" if who == "worker" else "worker"].sendall(more)
        for stream in ends.values():
            stream.close()
        Path(record).write_bytes(said["worker"])


def peer(agent: str, root: str, file: str, message: str) -> None:
    stream, own = connect(agent), secrets.token_bytes(32)
    opening = (f"tally-peer 3\nroot {root}\nto {agent}\nchallenge {secrets.token_hex(16)}\n"
               f"share {x25519(own).hex()}\n\n").encode()
    stream.sendall(opening)
    while not opening.endswith(b"\nready\n"):
        more = stream.recv(4096)
        opening += more
        if not more:
            print(opening.decode())
            return
    opening, _, ready = opening.rpartition(b"proof ")
    key = token_key(Path(file).read_text(encoding="ascii").strip())
    session = hmac.digest(key, opening, hashlib.sha256)
    known = x25519(own, bytes.fromhex(opening.decode().rstrip().rsplit(" ", 1)[1]))
    hidden = hmac.digest(session, b"hidden\n" + known, hashlib.sha256)

    def prove(place: str, said: bytes) -> bytes:
        proof = hmac.digest(session, f"{place}\n".encode() + said, hashlib.sha256)
        return f"proof {proof.hex()} {len(said)}\n".encode() + said

    def mask(place: str, said: bytes) -> bytes:
        pad = b"".join(hmac.digest(hidden, f"{place}\nblock {i}\n".encode(), hashlib.sha256)
                       for i in range(len(said) // 32 + 1))
        return bytes(a ^ b for a, b in zip(said, pad))

    is_proven = b"proof " + ready == prove("agent 0", b"ready\n")
    print("ready" if is_proven else "its proof is wrong")
    stream.sendall(prove("worker 0", mask("worker 0", message.encode())))
    answer = everything(stream)
    hidden_answer = answer.partition(b"\n")[2]
    if answer == prove("agent 1", hidden_answer):
        answer = mask("agent 1", hidden_answer)
    elif not answer.startswith(b"error "):
        raise SystemExit("an answer without a right proof")
    print(answer.decode())


def listen(interface: str) -> None:
    stream = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    stream.bind((interface, 0))
    print("there", flush=True)
    while True:
        print(stream.recv(65536).hex(), flush=True)


if __name__ == "__main__":
    {"join": join, "stay": stay, "leave": leave, "guess": guess, "crowd": crowd, "hang-up": hang_up,
     "replay": replay, "relay": relay, "peer": peer, "listen": listen}[sys.argv[1]](*sys.argv[2:])
