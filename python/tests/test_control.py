"""A control process above a router, in Python."""

from __future__ import annotations

import threading

import pytest

from longwire import Lab
from longwire.control import SEND, Control, Decision, Ended, Facts, reflected

pytestmark = pytest.mark.usefixtures("labs")

ASK = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
for attempt in range(30):
    s.sendto(b"word", ("10.0.2.9", 9))
    try:
        print(s.recv(100).decode())
        break
    except OSError:
        pass
"""


def test_a_process_echoes() -> None:
    seen = []

    def decide(facts: Facts, head: bytes) -> Decision:
        seen.append(facts.length)
        return Decision(SEND, facts.in_port, reflected(head))

    def serve(control: Control) -> None:
        with pytest.raises(Ended):
            control.serve(decide)

    with Lab() as lab:
        a = lab.host("a", "10.0.1.9/24")
        lab.host("b", "10.0.2.9/24")
        ports = [{"port": "a", "addresses": "10.0.1.1/24"}, {"port": "b", "addresses": "10.0.2.1/24"}]
        router = lab.router("r1", ports)
        key = {"destination": "10.0.2.9", "destination-port": 9, "protocol": "udp"}
        # A packet is not taken back before a process has had a processor.
        promise = {"where": "control", "name": "echo", "packets": 1000, "cycles": 50_000, "within": "1 s"}
        lab.section("forwarder", router="r1", key=key, **promise)
        thread = threading.Thread(target=serve, args=(router.control("echo"),))
        thread.start()
        answer = a.run(["python3", "-c", ASK], capture_output=True, text=True)
        assert answer.stdout == "word\n", answer.stderr
        assert any("10.0.2.0/24" in route for route in router.routes())
    thread.join()
    assert seen and set(seen) == {14 + 20 + 8 + 4}
