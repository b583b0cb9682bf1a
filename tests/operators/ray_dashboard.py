"""In the place of the programs in the head pods of Ray clusters, which KubeRay's operator asks for its jobs.

An HTTP proxy on loopback: the operator asks each head by the name of its Service, which no name server knows here, and
takes this proxy for all of them (HTTP_PROXY). The requests and answers are those of Ray's REST API of jobs.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import urlsplit

_JOBS: Final = "/api/jobs/"


class RayDashboard:
    """The jobs of all clusters, by the name of the head's Service and the job's id. They run until `end`."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"dashboard": self}))
        self._thread = threading.Thread(target=self._server.serve_forever, name="ray-dashboard", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def submit(self, host: str, request: dict[str, Any]) -> dict[str, Any]:
        """Start a job in a cluster; return its id."""
        name = request["submission_id"]
        job = {"submission_id": name, "entrypoint": request["entrypoint"], "status": "RUNNING", "start_time": _now()}
        with self._lock:
            self._jobs[host, name] = job
        return {"submission_id": name, "job_id": name}

    def job(self, host: str, name: str) -> dict[str, Any] | None:
        """A job of a cluster."""
        with self._lock:
            return self._jobs.get((host, name))

    def end(self, status: str) -> int:
        """Have all running jobs end as SUCCEEDED, FAILED or STOPPED; return how many ran."""
        with self._lock:
            running = [key for key, job in self._jobs.items() if job["status"] == "RUNNING"]
            for key in running:
                message = f"The job has ended: {status}"
                self._jobs[key] = {**self._jobs[key], "status": status, "message": message, "end_time": _now()}
        return len(running)

    def stop(self, host: str, name: str) -> dict[str, Any]:
        """Stop a job of a cluster; return whether it ran."""
        with self._lock:
            job = self._jobs.get((host, name))
            if job is None or job["status"] != "RUNNING":
                return {"stopped": False}
            self._jobs[host, name] = {**job, "status": "STOPPED", "end_time": _now()}
        return {"stopped": True}


class _Handler(BaseHTTPRequestHandler):
    """One request to a head."""

    dashboard: RayDashboard

    def do_GET(self) -> None:
        """A job."""
        host, path = self._asked()
        self._answer(self.dashboard.job(host, path.removeprefix(_JOBS)) if path.startswith(_JOBS) else None)

    def do_POST(self) -> None:
        """Submit or stop a job."""
        host, path = self._asked()
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == _JOBS:
            self._answer(self.dashboard.submit(host, json.loads(content)))
        elif path.startswith(_JOBS) and path.endswith("/stop"):
            self._answer(self.dashboard.stop(host, path.removeprefix(_JOBS).removesuffix("/stop")))
        else:
            self._answer(None)

    def _asked(self) -> tuple[str, str]:
        asked = urlsplit(self.path)
        return asked.netloc, asked.path

    def _answer(self, found: dict[str, Any] | None) -> None:
        content = json.dumps(found or {}).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing: the operator's log has its requests."""


def _now() -> int:
    return int(time.time() * 1000)
