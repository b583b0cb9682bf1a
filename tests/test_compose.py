"""docker-compose.yml without Docker: each service's command runs in its environment as written, and all work together.

Only what Docker would provide is replaced: hosts' names become addresses of this machine, and the interpreter is ours.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import psycopg
import pytest
import yaml

from kueueweb.embedded import children
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey
from tests.services_plugin import short_temporary_folder

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = ROOT / "docker-compose.yml"
PRODUCTION = ROOT / "deploy" / "compose.production.yml"
WAIT_SECONDS = 90
# In the order in which compose starts them, by depends_on.
LASTING = ("web", "scheduler", "push", "beat", "studio", "watcher", "webhook", "simulated-cluster", "jobs")


def interpolated(path: Path) -> dict[str, Any]:
    """The file as compose reads it when no variable is set: ${NAME:-default} is its default."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", path.read_text(encoding="utf-8"))
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def image_environment() -> dict[str, str]:
    """What the Dockerfile's last stage sets for every process."""
    stage = (ROOT / "Dockerfile").read_text(encoding="utf-8").rsplit("\nFROM ", 1)[1]
    line = re.search(r"^ENV (.+)$", stage, re.MULTILINE)
    assert line is not None
    return dict(pair.split("=", 1) for pair in line[1].split())


class Containers:
    """Runs services of the compose file as processes of this machine."""

    def __init__(self, folder: Path, replaced: dict[str, str]) -> None:
        self.services: dict[str, dict[str, Any]] = interpolated(COMPOSE)["services"]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = folder
        self._replaced = replaced

    def start(self, name: str) -> subprocess.Popen[bytes]:
        service = self.services[name]
        environment = {
            key: self._here(value) for key, value in {**image_environment(), **service["environment"]}.items()
        }
        command = [sys.executable if word == "python" else self._here(word) for word in service["command"]]
        with self.log(name).open("ab") as output:
            base = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
            self.running[name] = children.start(
                command, output=output, environment={**base, **environment}, directory=ROOT
            )
        return self.running[name]

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def stop(self) -> dict[str, int]:
        """Stop all as Docker does, the last started first; their exit codes."""
        for child in reversed(self.running.values()):
            children.stop(child, patience_seconds=30)
        return {name: child.returncode for name, child in self.running.items()}

    def fail_if_any_ended(self) -> None:
        for name, child in self.running.items():
            if child.poll() is not None:
                pytest.fail(f"{name} ended with {child.returncode}:\n{self.log(name).read_text()[-3000:]}")

    def wait_for(self, what: str, look: Callable[[], Any]) -> Any:
        """What `look` finds, as soon as it is something."""
        deadline = time.monotonic() + WAIT_SECONDS
        pause = threading.Event()
        while time.monotonic() < deadline:
            self.fail_if_any_ended()
            if found := look():
                return found
            pause.wait(0.2)
        logs = "\n".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self._folder.glob("*.log")))
        pytest.fail(f"waited {WAIT_SECONDS} s for {what}\n{logs}")

    def _here(self, text: str) -> str:
        names = "|".join(re.escape(there) for there in self._replaced)
        return re.sub(names, lambda found: self._replaced[found[0]], text)


@pytest.fixture
def web_port() -> int:
    return free_port()


@pytest.fixture
def containers(web_port: int) -> Iterator[Containers]:
    with ExitStack() as stack:
        folder = stack.enter_context(short_temporary_folder())
        postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
        stack.callback(postgres.stop, gracefully=False)
        postgres.start()
        stack.callback(valkey.stop)
        valkey.start()
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
            assert connection.info.server_version >= 140000
        cluster_port, webhook_port = free_port(), free_port()
        replaced = {
            "postgresql://kueueweb:kueueweb@postgres:5432/kueueweb": postgres.url(),
            "redis://:kueueweb@redis:6379/0": valkey.url(),
            "http://web:8000": f"http://127.0.0.1:{web_port}",
            "http://simulated-cluster:8001": f"http://127.0.0.1:{cluster_port}",
            "https://webhook:9443": f"https://127.0.0.1:{webhook_port}",
            "9443": str(webhook_port),
            "0.0.0.0": "127.0.0.1",
            "8000": str(web_port),
            "8001": str(cluster_port),
            "/kueueweb/static": str(folder / "static"),
        }
        containers = Containers(folder, replaced)
        stack.callback(containers.stop)
        yield containers


def test_the_services_of_the_compose_file_work_together(containers: Containers, web_port: int) -> None:
    assert containers.start("prepare").wait() == 0, containers.log("prepare").read_text()
    del containers.running["prepare"]  # it has done its work
    for name in LASTING:
        containers.start(name)

    containers.wait_for("a page", lambda: answer(web_port, "/readyz"))
    assert b'<div id="root">' in urlopen(f"http://127.0.0.1:{web_port}/").read()
    token = post(web_port, "auth/token/", {"username": "admin", "password": "admin"})["token"]

    # A job that ran to its end has passed every one: submitted, decided, pushed, bound, run, seen by the watcher.
    containers.wait_for("a job that has run", lambda: finished_workloads(web_port, token))
    containers.fail_if_any_ended()
    assert set(containers.stop().values()) <= {0, -15}


def test_every_service_of_ours_is_tried_here() -> None:
    services = interpolated(COMPOSE)["services"]
    ours = {name for name, service in services.items() if service["image"] == "kueueweb"}
    assert ours == {"prepare", "past", *LASTING}
    assert set(services) - ours == {"postgres", "redis"}


def test_the_image_has_what_its_processes_need() -> None:
    stage = (ROOT / "Dockerfile").read_text(encoding="utf-8").rsplit("\nFROM ", 1)[1]
    copied = set(re.findall(r"^COPY (?!--from)(\S+) ", stage, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {"manage.py", "requirements/runtime.lock", *packages, *included} == copied


def test_production_leaves_out_the_demo() -> None:
    production = yaml.safe_load(PRODUCTION.read_text(encoding="utf-8"))["services"]
    ours = {name for name, service in interpolated(COMPOSE)["services"].items() if service["image"] == "kueueweb"}
    assert set(production) == ours | {"redis"}
    assert any(word.startswith("${REDIS_PASSWORD:?") for word in production["redis"]["command"])
    for name in ours:
        service = production[name]
        if name in {"simulated-cluster", "past", "jobs"}:
            assert service == {"profiles": ["demo"]}
        else:
            assert service["environment"]["DEMO"] == "false"
            assert service["environment"]["SECRET_KEY"].startswith("${SECRET_KEY:?")
            assert service["environment"]["REDIS_URL"].startswith("redis://:${REDIS_PASSWORD:?")
            assert service["environment"]["KUBERNETES_API_URL"] == ""
    assert "demo_seed" not in production["prepare"]["command"]


FIXED = {"DATABASE_URL", "REDIS_URL", "DEMO", "KUBERNETES_API_URL", "KUBECONFIG", "HEARTBEAT_PATH", "BEHIND_TLS_PROXY"}
"""Variables of which the compose files decide: docs/operations.md says so."""


def documented_variables() -> set[str]:
    """The variables of the table in docs/operations.md."""
    table = (
        (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("## Variables")[2].partition("\n## ")[0]
    )
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ") and "| variable" not in line]
    return {name for row in rows for name in re.findall(r"[A-Z][A-Z_]+", row)}


def test_each_variable_of_the_settings_is_documented() -> None:
    settings = (ROOT / "kueueweb" / "settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r"\benv\.\w+\(\s*\"([A-Z][A-Z0-9_]+)\"", settings))
    assert len(read) > 50
    assert read - documented_variables() == set()


def test_each_variable_of_the_documents_reaches_every_process_from_env() -> None:
    """A service takes all of `.env`, and what the files set beside it is from `.env`, too, under the same name."""
    documented = documented_variables()
    assert {"OIDC_ISSUER", "EMAIL_HOST", "PUBLIC_URL", "LOG_FORMAT"} <= documented
    files = [yaml.safe_load(path.read_text(encoding="utf-8"))["services"] for path in (COMPOSE, PRODUCTION)]
    for name, service in files[0].items():
        if service.get("image") == "kueueweb":
            assert service["env_file"] == [{"path": ".env", "required": False}], name
            assert "env_file" not in files[1].get(name, {}), name
    for service in (service for file in files for service in file.values() if "POSTGRES_DB" not in str(service)):
        for variable, value in service.get("environment", {}).items():
            if variable in documented - FIXED:
                assert value.startswith(f"${{{variable}:"), variable


def test_docker_reads_the_files() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no docker compose here")
    needed = {
        "POSTGRES_PASSWORD": "p",
        "SECRET_KEY": "s",
        "REDIS_PASSWORD": "r",
        "ALLOWED_HOSTS": "h",
        "TRUSTED_PROXIES": "10.0.0.1",
        "CSRF_TRUSTED_ORIGINS": "https://h",
    }
    for files in (["-f", str(COMPOSE)], ["-f", str(COMPOSE), "-f", str(PRODUCTION)]):
        command = [docker, "compose", *files, "config", "--quiet"]
        done = subprocess.run(
            command,
            env={**os.environ, **needed, "KUBECONFIG_FILE": str(COMPOSE)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def answer(port: int, path: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}") as response:
            return bool(response.status == 200)
    except URLError:
        return False


def post(port: int, path: str, body: dict[str, str]) -> dict[str, Any]:
    request = Request(
        f"http://127.0.0.1:{port}/api/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request) as response:
        content: dict[str, Any] = json.load(response)
        return content


def finished_workloads(port: int, token: str) -> list[dict[str, Any]]:
    request = Request(
        f"http://127.0.0.1:{port}/api/v1/workloads/?status=Finished&limit=10",
        headers={"Authorization": f"Token {token}"},
    )
    with urlopen(request) as response:
        workloads: list[dict[str, Any]] = json.load(response)["results"]
    return workloads
