#!/usr/bin/env python3
"""A control process above a Longwire router, with nothing but Python's standard library.

    python3 control.py SOCKET NAME [PACKETS_PER_SECOND]

sends every packet back out of the port it came in by, UDP packets with their addresses and ports turned round. The class Control is all that another program needs; the layout of the memory is
described in the book, under "Levels above the data path". Version 1.

Python has no memory fences: the order of writes is right on x86-64, where processors keep it, and not promised elsewhere.
"""

import mmap
import select
import socket
import struct
import sys

MAGIC = b"LONGWIRE"
VERSION = 1
LINE = 64
# Words of the first page, by their place in it.
UP_HEAD, UP_TAIL, DOWN_HEAD, DOWN_TAIL, ASLEEP, ENDED, NOW = 8, 16, 24, 32, 40, 48, 56
PACKET, BODY = 1, 2
VERDICT, FETCH, NEW, RETURN = 1, 2, 3, 4
DROP, PASS, SEND = 0, 1, 2
NO_BAND = 0xFFFF
REASONS = ["left", "broken", "stalled", "flood", "panicked", "stopped"]

HELLO = struct.Struct("<8sIIQQ32s")
WELCOME = struct.Struct("<8sIIQI36x")
# kind, lines, bytes, token, time, expires, in port, class, fid, flow, length, segments, network header, transport header
FACTS = struct.Struct("<HHIQQQHHIQIH2xHH4x")
# kind, lines, bytes, token, action, port, band, from, count
SAID = struct.Struct("<HHIQHHH2xII32x")


class Refused(Exception):
    """Longwire does not let the process in."""


class Ended(Exception):
    """Longwire has cut the process off, or is gone."""


class Control:
    def __init__(self, path, name, packets=0, cycles=0, share=1):
        """Asks to be let in by NAME, for so many packets a second, each of so many cycles; for 0, what was promised beforehand."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.socket.sendall(HELLO.pack(MAGIC, VERSION, share, packets, cycles, name.encode()))
        welcome, fds, _, _ = socket.recv_fds(self.socket, WELCOME.size, 1)
        while 0 < len(welcome) < WELCOME.size:
            welcome += self.socket.recv(WELCOME.size - len(welcome))
        magic, version, status, size, text = WELCOME.unpack(welcome)
        if (magic, version) != (MAGIC, VERSION):
            raise Refused("not this version of the protocol")
        if status:
            why = b""
            while len(why) < text and (more := self.socket.recv(text - len(why))):
                why += more
            raise Refused(why.decode())
        self.memory = mmap.mmap(fds[0], size)
        self.socket.setblocking(False)
        self.words = memoryview(self.memory).cast("Q")
        _, _, up, self.up_lines, down, self.down_lines, self.longest, _ = self.words[:8]
        self.up = memoryview(self.memory)[up : up + self.up_lines * LINE]
        self.down = memoryview(self.memory)[down : down + self.down_lines * LINE]
        self.up_tail = self.down_head = 0

    def events(self):
        """What has come up: ("packet", facts, first bytes) or ("body", token, from, bytes)."""
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
                yield "packet", fields[3:], data
            elif kind == BODY:
                yield "body", token, fields[5] & 0xFFFFFFFF, data

    def answer(self, token, action, port=0, band=NO_BAND, head=b""):
        """Says what becomes of a packet; head replaces its first bytes. False if there is no room: flush, and try again."""
        return self._say(VERDICT, token, action, port, band, head)

    def is_hopeless(self, facts):
        """Whether less than a quarter of a packet's time is left: who gives such ones back does the others in time."""
        time, expires = facts[1:3]
        return expires - self.words[NOW] < (expires - time) // 4

    def give_back(self, token):
        """Says nothing about a packet."""
        return self._say(RETURN, token)

    def fetch(self, token, start, count):
        """Asks for bytes of a packet; they come as a "body"."""
        return self._say(FETCH, token, start=start, count=count)

    def send(self, port, frame):
        """Sends a new frame out of a port of the router."""
        return self._say(NEW, 0, SEND, port, NO_BAND, frame)

    def flush(self):
        """Lets Longwire see what was said, and write over what was read."""
        self.words[UP_TAIL] = self.up_tail
        self.words[DOWN_HEAD] = self.down_head

    def wait(self, seconds):
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

    def _say(self, kind, token, action=0, port=0, band=0, data=b"", start=0, count=0):
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


def reflected(head):
    """The beginning of a UDP packet over plain IPv4 with addresses and ports turned round, which leaves checksums as they are; of others, nothing."""
    if len(head) < 38 or head[12:15] != b"\x08\x00\x45" or head[23] != 17 or head[20] & 0x3F or head[21]:
        return b""
    return head[6:12] + head[:6] + head[12:26] + head[30:34] + head[26:30] + head[36:38] + head[34:36]


def main():
    path, name = sys.argv[1:3]
    control = Control(path, name, packets=int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    try:
        while True:
            heard = 0
            for event in control.events():
                heard += 1
                if event[0] == "packet":
                    token, in_port = event[1][0], event[1][3]
                    if control.is_hopeless(event[1]):
                        while not control.give_back(token):
                            control.flush()
                    else:
                        while not control.answer(token, SEND, in_port, head=reflected(event[2])):
                            control.flush()
                    if heard % 64 == 0:
                        control.flush()
            if heard:
                control.flush()
            else:
                control.wait(1)
    except Ended as ended:
        print(f"cut off: {ended}")


if __name__ == "__main__":
    main()
