"""A control process whose router goes away."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from longwire.control import (
    FACTS,
    HELLO,
    MAGIC,
    PACKET,
    SEND,
    UP_HEAD,
    VERSION,
    WELCOME,
    Control,
    Decision,
    Ended,
    Refused,
)

#: Time limit for what must happen, in seconds.
TIME = 60.0


def outcome(act: Callable[[], object]) -> List[BaseException]:
    """What is raised, on a thread of its own: some of this once lasted for ever."""
    raised: List[BaseException] = []

    def call() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(TIME)
    assert not thread.is_alive()
    return raised


def router(path: Path, serve: Callable[[socket.socket], None]) -> None:
    """Serves one process at a socket, and closes the connection."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()

    def accept() -> None:
        with listening, listening.accept()[0] as peer:
            peer.recv(HELLO.size, socket.MSG_WAITALL)
            serve(peer)

    threading.Thread(target=accept, daemon=True).start()


@pytest.mark.parametrize("said", [b"", MAGIC, WELCOME.pack(MAGIC, VERSION, 1, 0, 9) + b"not now"])
def test_a_router_that_closes_while_it_answers_refuses(tmp_path: Path, said: bytes) -> None:
    router(tmp_path / "sock", lambda peer: peer.sendall(said))
    (error,) = outcome(lambda: Control(str(tmp_path / "sock"), "echo"))
    assert isinstance(error, Refused)
    assert str(error) == ("not now" if len(said) > WELCOME.size else "the router has closed the connection")


def test_a_process_without_room_for_its_answer_notices_the_end(tmp_path: Path) -> None:
    # A page, a ring of two lines up with a packet in it, and one of one line down.
    memory = bytearray(4096 + 3 * 64)
    words = memoryview(memory).cast("Q")
    words[2], words[3], words[4], words[5] = 4096, 2, 4096 + 128, 1
    words[UP_HEAD] = 1
    FACTS.pack_into(memory, 4096, PACKET, 1, 0, 7, 0, 100, 0, 0, 0, 0, 60, 1, 0, 0)
    shared = os.memfd_create("ring")
    os.write(shared, memory)

    def serve(peer: socket.socket) -> None:
        welcome = WELCOME.pack(MAGIC, VERSION, 0, len(memory), 0)
        socket.send_fds(peer, [welcome], [shared])
        os.close(shared)

    router(tmp_path / "sock", serve)
    control = Control(str(tmp_path / "sock"), "echo")
    (error,) = outcome(lambda: control.serve(lambda facts, head: Decision(SEND, 0, bytes(64))))
    assert isinstance(error, Ended) and str(error) == "the router is gone"
    assert len(list(open_files("/memfd:ring"))) == 1, "what the map has, and no other"


def open_files(name: str) -> Iterator[str]:
    """The descriptors of files with this name that this process has open."""
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{number}").startswith(name):
                yield number


def test_a_name_that_does_not_fit_is_not_cut() -> None:
    with pytest.raises(ValueError, match="at most 32 bytes"):
        Control("/nonexistent", "x" * 33)
