"""A server that listens, and schemathesis over every operation of it, once for each role."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx

from kueueweb.demo.processes import environment, processes, seed
from kueueweb.demo.supervisor import Supervisor
from kueueweb.embedded.postgres import Postgres
from kueueweb.embedded.sockets import free_port
from kueueweb.embedded.valkey import Valkey
from tests.acceptance.processes import wait_for

ROOT: Final = Path(__file__).resolve().parents[3]
CONFIGURATION: Final = Path(__file__).with_name("schemathesis.toml")
CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
ENDS_LOGIN: Final = ("auth_tokens_revoke_all", "auth_logout")
"""They revoke the token that the tests carry, and are tried last."""
ROLES: Final = ("admin", "tenant", "no role", "no login")
_LIMITS: Final = ("MAX_SUBMISSIONS_PER_MINUTE", "MAX_UNFINISHED_PER_USER", "MAX_UNFINISHED_PER_NAMESPACE")


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """A web process with the demo's queues on servers of its own; yields its address."""
    folder.chmod(0o711)  # started by root, PostgreSQL runs as another user and has to reach its own folder
    port = free_port()
    with contextlib.ExitStack() as stack:
        valkey, postgres = Valkey(folder / "valkey"), Postgres(folder / "postgres")
        stack.callback(valkey.stop)
        valkey.start()
        stack.callback(postgres.stop)
        postgres.start()
        told = environment(
            os.environ,
            database_url=postgres.url(),
            redis_url=valkey.url(),
            secret_key=secrets.token_hex(),
            cluster_port=free_port(),
        )
        told |= dict.fromkeys(_LIMITS, "0")
        supervisor = stack.enter_context(Supervisor(ROOT, told, folder / "logs", say))
        supervisor.run(seed())
        started = processes(
            host="127.0.0.1", port=port, cluster_port=free_port(), time_scale=1, snapshot=folder / "cluster.json"
        )
        supervisor.start(next(process for process in started if process.name == "web"))
        address = f"http://127.0.0.1:{port}"
        wait_for("the first answer", lambda: answers(address))
        yield address


def answers(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{address}/healthz", timeout=5).is_success
    return False


def who_asks(address: str) -> Mapping[str, str]:
    """Each role's token; an empty one is no login."""
    with httpx.Client(base_url=f"{address}/api/v1/", timeout=30) as client:

        def token(path: str, body: Mapping[str, str], as_whom: str = "") -> str:
            headers = {"Authorization": f"Bearer {as_whom}"} if as_whom else {}
            answer = client.post(path, json=body, headers=headers)
            answer.raise_for_status()
            return str(answer.json().get("token", ""))

        admin, tenant = (token("auth/token/", {"username": name, "password": name}) for name in ("admin", "researcher"))
        token("service-accounts/", {"name": "roleless"}, admin)
        roleless = token("service-accounts/roleless/tokens/", {"name": "fuzz"}, admin)
    return dict(zip(ROLES, (admin, tenant, roleless, ""), strict=True))


def schemathesis(address: str, token: str, options: Sequence[str]) -> int:
    """Its exit code; 0 if every answer was as promised."""
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION), "run",
        str(ROOT / "docs" / "openapi.json"), "--url", address,
        "--checks", ",".join(CHECKS), "--continue-on-failure", "--suppress-health-check", "all", *options,
    ]  # fmt: skip
    if token:
        command += ["--header", f"Authorization: Bearer {token}"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def run(address: str, roles: Collection[str], options: Sequence[str]) -> list[str]:
    """The roles for which an answer was not as the schema promises."""
    last = [word for name in ENDS_LOGIN for word in ("--exclude-operation-id", name)]
    broken = []
    for role, token in who_asks(address).items():
        if role in roles:
            say(f"== {role}")
            if schemathesis(address, token, [*options, *last]):
                broken.append(role)
    return broken


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
