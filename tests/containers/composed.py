"""docker-compose.yml, carried out one container at a time, with Docker or podman.

Only what the file uses is known here; anything else in it fails, so that nothing in it goes untried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tests.acceptance.processes import wait_for

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".run" / "containers"
PREFIX: Final = "kueueweb-test"
START_SECONDS: Final = 180.0
_FLAGS: Final = {
    "read_only": "--read-only", "tmpfs": "--tmpfs", "cap_drop": "--cap-drop", "security_opt": "--security-opt",
    "mem_limit": "--memory", "restart": "--restart",
}  # fmt: skip
_ELSEWHERE: Final = {
    "build", "image", "command", "env_file", "environment", "depends_on", "healthcheck", "ports", "volumes",
}  # fmt: skip


def services() -> dict[str, dict[str, Any]]:
    """The services as compose reads them when no variable is set."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (ROOT / "docker-compose.yml").read_text())
    content: dict[str, Any] = yaml.safe_load(text.replace("$$", "$"))
    return dict(content["services"])


class Composed:
    """The services as containers on a network of their own; leaving the context removes them all."""

    def __init__(self, port: int) -> None:
        self.services = services()
        self._port = port
        self._images = {"kueueweb": "kueueweb"}
        for line in (FOLDER / "images").read_text().splitlines():
            image, there = line.split()
            self._images[image] = there
        configuration = FOLDER / "containers.conf"
        self._engine = "podman" if configuration.exists() else "docker"
        self._environment = {**os.environ, "CONTAINERS_CONF": str(configuration)}

    def __enter__(self) -> Self:
        self._remove()
        self.do("network", "create", PREFIX)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for name in self.services:
                sys.stdout.write(f"--- {name}\n{self.log(name)[-2000:]}\n")
        self._remove()

    def _remove(self) -> None:
        for name in reversed(self.services):
            self._call("rm", "--force", "--volumes", "--time", "5", _container(name))
        self._call("volume", "rm", "--force", PREFIX)
        self._call("network", "rm", PREFIX)

    def up(self) -> None:
        """Start all, each when those that it depends on are as it wants them."""
        started: list[str] = []
        while len(started) < len(self.services):
            name = next(
                name for name, each in self.services.items()
                if name not in started and set(each.get("depends_on", {})) <= set(started)
            )  # fmt: skip
            for needed, condition in self.services[name].get("depends_on", {}).items():
                self._wait(needed, condition["condition"])
            self._start(name)
            started.append(name)

    def _wait(self, name: str, condition: str) -> None:
        if condition == "service_healthy":
            wait_for(f"health of {name}", lambda: self.is_healthy(name), START_SECONDS)
        else:
            assert condition == "service_completed_successfully"
            assert self.do("wait", _container(name)).strip() == "0", self.log(name)

    def _start(self, name: str) -> None:
        service = self.services[name]
        assert set(service) <= {*_FLAGS, *_ELSEWHERE}, "a key that is not tried here"
        words = ["--detach", "--name", _container(name), "--network", PREFIX, "--network-alias", name]
        for key, value in service.get("environment", {}).items():
            words += ["--env", f"{key}={value}"]
        for key in set(service) & set(_FLAGS):
            values = service[key] if isinstance(service[key], list) else [service[key]]
            # podman: what says only the option's name takes no value.
            words += [_FLAGS[key] if value is True else f"{_FLAGS[key]}={value}" for value in values]
        for volume in service.get("volumes", ()):
            words += ["--volume", f"{PREFIX}:{volume.partition(':')[2]}"]
        for port in service.get("ports", ()):
            words += ["--publish", f"127.0.0.1:{self._port}:{port.rpartition(':')[2]}"]
        self.do("run", *words, self._images[service["image"]], *map(str, service.get("command", ())))

    def is_healthy(self, name: str) -> bool:
        """Whether it runs, and its own health check says so, if it has one."""
        if not self.is_running(name):
            return False
        check = self.services[name].get("healthcheck")
        return check is None or self._call("exec", _container(name), *map(str, check["test"][1:])).returncode == 0

    def is_running(self, name: str) -> bool:
        return self._call("inspect", "--format", "{{.State.Running}}", _container(name)).stdout.strip() == "true"

    def restart(self, name: str) -> None:
        """Stop it in order and start it again."""
        self.do("restart", "--time", "10", _container(name))

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in a service's container, whatever comes of it."""
        return self._call("exec", _container(name), *command)

    def log(self, name: str) -> str:
        done = self._call("logs", _container(name))
        return done.stdout + done.stderr

    def do(self, *words: str) -> str:
        """What the engine says; fails where it fails."""
        done = self._call(*words)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._engine, *words],
            env=self._environment, capture_output=True, text=True, check=False, timeout=START_SECONDS,
        )  # fmt: skip


def _container(name: str) -> str:
    return f"{PREFIX}-{name}"
