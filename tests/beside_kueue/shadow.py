"""kueueweb in mode shadow: the processes that follow another scheduler, with rights to read alone."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import urllib.request
from typing import Any, Final

import yaml

from kueueweb.embedded.sockets import free_port
from tests.acceptance.processes import ROOT, Processes, wait_for
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.real_kueue import install
from tests.kubernetes.system import documents

_FILES: Final = ("namespace.yaml", "rbac.yaml", "observer.yaml")
_MANAGE: Final = ("-m", "kueueweb")
_MAKE_TOKEN: Final = """
from django.contrib.auth.models import User
from accounts.services.tokens import create_token
print(create_token(User.objects.create_superuser("shadow"), "shadow")[0])
"""
_START_SECONDS: Final = 300.0
_PAGE: Final = 500


class ShadowSystem:
    """Its watcher, leader and REST API, on a database of their own."""

    def __init__(self, plane: ControlPlane, processes: Processes) -> None:
        self._plane = plane
        self._processes = processes
        self._web = free_port()
        self._token = ""

    def start(self, configuration: str) -> None:
        """Start the processes as docs/switching.md describes; return when REST answers."""
        install(self._plane, [item for file in _FILES for item in documents(file)])
        kubeconfig = self._processes.folder / "watcher.kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump(self._plane.kubeconfig(self._plane.token_of("kueueweb", "kueueweb-watcher")))
        )
        self._processes.settings |= {
            "SECRET_KEY": secrets.token_urlsafe(48), "ALLOWED_HOSTS": "127.0.0.1", "SERVE_UNCOLLECTED_STATIC": "true",
            "KUBECONFIG": str(kubeconfig),
        }  # fmt: skip
        self._manage("migrate", "--verbosity", "0", "--no-input")
        self._manage("set_cluster", "--mode", "shadow")
        self._manage("apply", "-f", "-", text=configuration)
        self._token = self._manage("shell", "--verbosity", "0", "--command", _MAKE_TOKEN).strip()
        self._processes.start_scheduler()
        self._processes.start_beat()
        self._processes.start("watcher", *_MANAGE, "watch_cluster")
        self._processes.start("web", *_MANAGE, "serve", "--host", "127.0.0.1", "--port", str(self._web))
        wait_for("REST's answer", self._answers, _START_SECONDS)

    def counts(self) -> dict[str, int]:
        """How many decisions agreed and differed so far."""
        found: dict[str, int] = self._get("shadow/")["totals"]
        return found

    def differences(self) -> list[dict[str, Any]]:
        """Each difference, the earliest first."""
        found: list[dict[str, Any]] = self._get(f"shadow/differences/?limit={_PAGE}")["results"]
        return sorted(found, key=lambda difference: difference["id"])

    def check(self) -> None:
        """Fails if one of the processes has ended."""
        ended = [name for name in ("scheduler", "beat", "watcher", "web") if self._processes.ended(name)]
        assert not ended, f"{ended}: {[self._processes.log(name)[-2000:] for name in ended]}"

    def _answers(self) -> bool:
        self.check()
        try:
            self._get("shadow/")
        except OSError:
            return False
        return True

    def _get(self, path: str) -> Any:
        address = f"http://127.0.0.1:{self._web}/api/v1/{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"Token {self._token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def _manage(self, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            (sys.executable, *_MANAGE, *arguments),
            cwd=ROOT, env=self._processes.environment, input=text, text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout
