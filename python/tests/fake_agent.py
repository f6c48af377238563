"""An agent of tests: the API of `longwire serve --agent`, without anything behind it."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, Optional

CONSERVED = {"name": "packets accounted for", "expected": 10, "measured": 10, "pass": True}


class FakeAgent:
    """Serves on a port of loopback; a request without its token is refused."""

    def __init__(self, version: str, *, port: int = 0) -> None:
        self.version, self.token = version, "t" * 32
        self.parts: Dict[str, Dict[str, Any]] = {}
        #: Why parts are refused, if they are.
        self.refuses: Optional[str] = None
        self.connected = True
        #: Cleared, it hangs: requests wait for their answers.
        self.answers = threading.Event()
        self.answers.set()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def answer(self) -> None:
                agent.answers.wait()
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                status, answer = agent.answer(self.command, self.path, body, self.headers["Authorization"])
                data = json.dumps(answer).encode()
                with contextlib.suppress(ConnectionError):
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_PUT = do_DELETE = answer

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self) -> None:
        """Ends it; its port refuses connections."""
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: Any, bearer: Optional[str]) -> Any:
        """Status and body of an answer."""
        if bearer != f"Bearer {self.token}":
            return 401, {"detail": "send a token"}
        if path == "/v1/agent":
            parts = [{"name": name, **part} for name, part in self.parts.items()]
            return 200, {"version": self.version, "pid": 1, "started_ns": 1, "cores": 2, "parts": parts}
        if path.startswith("/parts/"):
            return self._of_instance(path)
        name = path.rpartition("/")[2]
        if method == "PUT":
            if self.refuses is not None:
                return 422, {"detail": self.refuses, "key": "toml"}
            about = {"run": body["run"], "condition": "running", "load_ppm": body["load_ppm"]}
            self.parts[name] = {**about, "body": body}
            return 202, {"name": name, **self.parts[name]}
        if name not in self.parts:
            return 404, {"detail": f'there is no part "{name}" here'}
        part = self.parts[name]
        if method == "DELETE" and part["condition"] == "running":
            part.update(condition="ended", report={**report(), "command": "run"})
        elif method == "DELETE":
            del self.parts[name]
        return 200, {"name": name, **part}

    def _of_instance(self, path: str) -> Any:
        if path.endswith("/v1/ports"):
            port = {"name": "cut0-x", "stats": {"underlay": {"connected": self.connected}}}
            return 200, {"total": 1, "from": 0, "counted_ns": 1, "objects": [port, {"name": "a"}]}
        return 200, report()


def report() -> Dict[str, Any]:
    """A report of a node on which nothing was late."""
    fidelity = {"faithful": True, "causes": [], "packets": 5, "late": 0, "lateness_ns": {}, "brief": None}
    rows = [{"name": "wan", "kind": "link", "in_packets": 5}, CONSERVED]
    return {"fidelity": fidelity, "rows": rows, "dropped": {"loss": 1}, "pass": True, "version": "0.1.0"}
