#!/usr/bin/env python3
"""A control process above a Longwire router, with nothing but Python's standard library.

    python3 control.py SOCKET NAME [PACKETS_PER_SECOND]

sends every packet back out of the port it came in by, UDP packets with their addresses and ports turned
round. The class `Control` is all that another program needs; crates/punt/PROTOCOL.md describes the
layout of the memory. Version 1.

Python has no memory fences: the order of writes is right on x86-64, where processors keep it, and not
promised elsewhere.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import sys
from typing import Callable, Iterator, NamedTuple, Union

MAGIC = b"LONGWIRE"
VERSION = 1
LINE = 64
# Words of the first page, by their place in it.
UP_HEAD, UP_TAIL, DOWN_HEAD, DOWN_TAIL, ASLEEP, ENDED, NOW = 8, 16, 24, 32, 40, 48, 56
PACKET, BODY = 1, 2
VERDICT, FETCH, NEW, RETURN = 1, 2, 3, 4
DROP, PASS, SEND = 0, 1, 2
NO_BAND = 0xFFFF
LONGEST_NAME = 32
REASONS = ["left", "broken", "stalled", "flood", "panicked", "stopped", "overrun"]

HELLO = struct.Struct("<8sIIQQ32s")
WELCOME = struct.Struct("<8sIIQI36x")
# kind, lines, bytes, token, time, expires, in port, class, fid, flow, length, segments, network header,
# transport header
FACTS = struct.Struct("<HHIQQQHHIQIH2xHH4x")
# kind, lines, bytes, token, action, port, band, from, count
SAID = struct.Struct("<HHIQHHH2xII32x")


class Refused(Exception):
    """Longwire does not let the process in."""


class Ended(Exception):
    """Longwire has cut the process off, or is gone."""


class Facts(NamedTuple):
    """What is known of a packet."""

    token: int
    #: When it arrived, and when the default forwarder takes it: nanoseconds of the machine's monotonic clock.
    time_ns: int
    expires_ns: int
    in_port: int
    #: Why it came up.
    reason: int
    fid: int
    flow: int
    #: Bytes of the frame.
    length: int
    segments: int
    #: Offsets of the headers, or 0.
    network: int
    transport: int


class Decision(NamedTuple):
    """What becomes of a packet: DROP, PASS or SEND out of `port`; `head` replaces its first bytes."""

    action: int
    port: int = 0
    head: bytes = b""


class Packet(NamedTuple):
    """A packet that has come up, with its first bytes."""

    facts: Facts
    head: bytes


class Body(NamedTuple):
    """Requested bytes of a packet, from `start` on."""

    token: int
    start: int
    data: bytes


class Control:
    """The process's end of the memory that it shares with the router."""

    def __init__(self, path: str, name: str, packets: int = 0, cycles: int = 0, share: int = 1) -> None:
        """Asks to be let in by `name`, for so many packets a second, each of so many cycles.

        0 means what was promised beforehand.
        """
        if len(name.encode()) > LONGEST_NAME:
            raise ValueError(f"{name!r} is too long: a name has at most {LONGEST_NAME} bytes")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)
            self.socket.sendall(HELLO.pack(MAGIC, VERSION, share, packets, cycles, name.encode()))
            self.memory = self._welcomed()
        except BaseException:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self.words = memoryview(self.memory).cast("Q")
        _, _, up, self.up_lines, down, self.down_lines, self.longest, _ = self.words[:8]
        self.up = memoryview(self.memory)[up : up + self.up_lines * LINE]
        self.down = memoryview(self.memory)[down : down + self.down_lines * LINE]
        self.up_tail = self.down_head = 0

    def _welcomed(self) -> mmap.mmap:
        """The shared memory, once the router has let this process in."""
        welcome, fds, _, _ = socket.recv_fds(self.socket, WELCOME.size, 1)
        try:
            welcome += self._received(WELCOME.size - len(welcome))
            if len(welcome) < WELCOME.size:
                raise Refused("the router has closed the connection")
            magic, version, status, size, text = WELCOME.unpack(welcome)
            if (magic, version) != (MAGIC, VERSION):
                raise Refused("not this version of the protocol")
            if status or not fds:
                raise Refused(self._received(text).decode() or "the router gave no reason")
            return mmap.mmap(fds[0], size)
        finally:
            for fd in fds:
                os.close(fd)

    def _received(self, count: int) -> bytes:
        """So many bytes, or fewer if the connection is closed before."""
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                break
            data += more
        return data

    def serve(self, decide: Callable[[Facts, bytes], Decision]) -> None:
        """Gives each packet's facts and first bytes to `decide`, and does as it says, until `Ended` is
        raised.

        Packets that would be late are given back without it. Requested bodies are left out: who fetches them
        reads `events`.
        """
        while True:
            heard = 0
            for event in self.events():
                heard += 1
                if isinstance(event, Body):
                    continue
                facts, head = event
                if self.is_hopeless(facts):
                    while not self.give_back(facts.token):
                        self.wait(0.001)
                else:
                    action, port, head = decide(facts, head)
                    while not self.answer(facts.token, action, port, head=head):
                        self.wait(0.001)
                if heard % 64 == 0:
                    self.flush()
            if heard:
                self.flush()
            else:
                self.wait(1)

    def events(self) -> Iterator[Union[Packet, Body]]:
        """What has come up."""
        head, size = self.words[UP_HEAD], len(self.up)
        if head == self.up_tail and self.words[ENDED]:
            raise Ended(REASONS[self.words[ENDED] - 1])
        while self.up_tail != head:
            at = self.up_tail % self.up_lines * LINE
            fields = FACTS.unpack_from(self.up, at)
            kind, lines, count, token = fields[:4]
            begin = (at + LINE) % size
            data = bytes(self.up[begin : begin + count])
            data += bytes(self.up[: count - len(data)])
            self.up_tail += lines
            if kind == PACKET:
                yield Packet(Facts._make(fields[3:]), data)
            elif kind == BODY:
                yield Body(token, fields[5] & 0xFFFFFFFF, data)

    def answer(self, token: int, action: int, port: int = 0, band: int = NO_BAND, head: bytes = b"") -> bool:
        """Says what becomes of a packet; `head` replaces its first bytes.

        False if there is no room: wait, and try again.
        """
        return self._say(VERDICT, token, action, port, band, head)

    def is_hopeless(self, facts: Facts) -> bool:
        """Whether less than a quarter of a packet's time is left: given back, it lets others be in time."""
        time, expires = facts[1:3]
        return expires - self.words[NOW] < (expires - time) // 4

    def give_back(self, token: int) -> bool:
        """Says nothing about a packet."""
        return self._say(RETURN, token)

    def fetch(self, token: int, start: int, count: int) -> bool:
        """Asks for bytes of a packet; they come as a `Body`."""
        return self._say(FETCH, token, start=start, count=count)

    def send(self, port: int, frame: bytes) -> bool:
        """Sends a new frame out of a port of the router."""
        return self._say(NEW, 0, SEND, port, NO_BAND, frame)

    def flush(self) -> None:
        """Lets Longwire see what was said, and write over what was read."""
        self.words[UP_TAIL] = self.up_tail
        self.words[DOWN_HEAD] = self.down_head

    def wait(self, seconds: float) -> None:
        """Flushes, and sleeps until something comes."""
        self.flush()
        self.words[ASLEEP] = 1
        if self.words[UP_HEAD] == self.up_tail:
            # A wake-up that slipped through for want of a fence costs ten milliseconds.
            select.select([self.socket], [], [], min(seconds, 0.01))
        self.words[ASLEEP] = 0
        try:
            if not self.socket.recv(64):
                why = self.words[ENDED]
                raise Ended(REASONS[why - 1] if why else "the router is gone")
        except BlockingIOError:
            pass

    def _say(
        self,
        kind: int,
        token: int,
        action: int = 0,
        port: int = 0,
        band: int = 0,
        data: bytes = b"",
        start: int = 0,
        count: int = 0,
    ) -> bool:
        lines = 1 + (len(data) + LINE - 1) // LINE
        if self.down_head - self.words[DOWN_TAIL] + lines > self.down_lines:
            return False
        at, size = self.down_head % self.down_lines * LINE, len(self.down)
        SAID.pack_into(self.down, at, kind, lines, len(data), token, action, port, band, start, count)
        if data:
            begin = (at + LINE) % size
            fits = min(len(data), size - begin)
            self.down[begin : begin + fits] = data[:fits]
            self.down[: len(data) - fits] = data[fits:]
        self.down_head += lines
        return True


def reflected(head: bytes) -> bytes:
    """The beginning of a UDP packet over plain IPv4 with addresses and ports turned round; of others,
    nothing.

    Checksums stay right.
    """
    if len(head) < 38 or head[12:15] != b"\x08\x00\x45" or head[23] != 17 or head[20] & 0x3F or head[21]:
        return b""
    return head[6:12] + head[:6] + head[12:26] + head[30:34] + head[26:30] + head[36:38] + head[34:36]


def main() -> None:
    """Sends every packet back."""
    path, name = sys.argv[1:3]
    control = Control(path, name, packets=int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    try:
        control.serve(lambda facts, head: Decision(SEND, facts.in_port, reflected(head)))
    except Ended as ended:
        print(f"cut off: {ended}")


if __name__ == "__main__":
    main()
