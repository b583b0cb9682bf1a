"""`kueueweb mcp` with the reference client of the protocol, against a process of its own and a real web server."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import yaml
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver.exceptions import ToolError

from accounts.models import AuditRecord, Cluster, Namespace, Role, RoleBinding
from kueueweb_client import Client, calls
from kueueweb_client.mcp_server import _Asked
from queues.models import Job, Workload
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.client.conftest import CLIENT, Run, start
from tests.users import EPOCH, make_user

READS = {
    "explain_workload", "list_workloads", "workload_history", "decisions", "queue_state", "cluster_state",
    "free_devices", "report", "read_manifests",
}  # fmt: skip
PLANS = {"plan_apply", "plan_submit", "plan_action"}


async def call(client: McpClient, tool: str, **arguments: Any) -> Any:
    """The answer of a tool, or the text of its refusal."""
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        return "".join(getattr(part, "text", "") for part in answer.content)
    return answer.structured_content


def stored() -> tuple[Any, ...]:
    """Everything that a tool could have changed."""
    workloads = Workload.objects.order_by("pk").values_list("name", "status", "active", "generation", "priority")
    return list(workloads), Job.objects.count(), AuditRecord.objects.count()


def test_an_assistant_reads_and_plans_and_nothing_changes(alice: Run, tmp_path: Path) -> None:
    for name in ("first", "second"):
        ran = alice("submit", "--image", "x", "-q", "queue", "--name", name, "--cpu", "6", "--memory", "")
        assert ran.code == 0, ran
    Engine(Cluster.objects.get(), "test").run()
    names = dict(Workload.objects.values_list("job__name", "name"))
    before = stored()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kueueweb_client.cli.app", "mcp"],
        env={"PYTHONPATH": str(CLIENT), "KUEUEWEB_CONFIG": str(tmp_path / "config.yaml")},
    )

    async def journey() -> None:
        async with McpClient(server) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == READS | PLANS
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            explained = await call(client, "explain_workload", namespace="team", name="second")
            assert explained["workload"]["name"] == names["second"]
            assert "cpu" in json.dumps(explained["explanation"])
            queue = await call(client, "queue_state", cluster_queue="main")
            assert [row["name"] for row in queue["pending"]["rows"]] == [names["second"]]
            listed = await call(client, "list_workloads", namespace="team", status="Admitted")
            assert [row["name"] for row in listed["rows"]] == [names["first"]]
            history = await call(client, "workload_history", namespace="team", name="first")
            assert history["events"]["rows"]
            assert history["decisions"]["rows"]
            assert "overview" in await call(client, "cluster_state")
            manifests = await call(client, "read_manifests", kind="cq")
            assert [item["metadata"]["name"] for item in manifests["items"]] == ["main"]
            assert "NotFound" in await call(client, "explain_workload", namespace="team", name="none")
            plan = await call(
                client,
                "plan_submit",
                namespace="team",
                queue="queue",
                image="x",
                command=["sleep", "60"],
                name="planned",
            )
            assert plan["done"] is False
            assert plan["apply_with"].startswith("kueueweb apply -f - <<")
            assert yaml.safe_load(plan["manifests"])["metadata"]["name"] == "planned"
            assert [each["outcome"] for each in plan["would"]["result"]["objects"]] == ["created"]
            action = await call(
                client, "plan_action", action="cancel", namespace="team", workloads=[names["first"], "none"]
            )
            assert [key["name"] for key in action["would"]["changed"]] == [names["first"]]
            assert [key["name"] for key in action["would"]["skipped"]] == ["none"]
            assert action["apply_with"] == f"kueueweb cancel -n team -- {names['first']} none"
            changed = texts.cluster_queue(cpu=20)
            assert (await call(client, "plan_apply", manifests=changed))["would"]["result"]["objects"]

    asyncio.run(journey())
    assert stored() == before


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_over_http_each_caller_has_its_own_rights(alice: Run, server: str, tmp_path: Path) -> None:
    Namespace.objects.create(cluster=Cluster.objects.get(), name="other", created_at=EPOCH)
    make_user("tina")
    RoleBinding.objects.create(name="tina", username="tina", role=Role.SUBMITTER, namespace="other")
    assert alice("submit", "--image", "x", "-q", "queue", "--name", "first").code == 0
    workload = Workload.objects.get().name
    with Client(server) as anonymous:
        tokens = {name: anonymous.send(calls.token(name, f"{name}-secret"))["token"] for name in ("alice", "tina")}
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    process = start(tmp_path, "mcp", "--http", f"127.0.0.1:{port}")

    async def listed(token: str) -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
            McpClient(streamable_http_client(url, http_client=http)) as client,
        ):
            return await call(client, "list_workloads"), await call(
                client, "explain_workload", namespace="team", name=workload
            )

    def first_answer() -> httpx.Response:
        for _ in range(300):
            try:
                return httpx.post(url, json={})
            except httpx.ConnectError:
                assert process.poll() is None, process.stderr and process.stderr.read()
                time.sleep(0.2)
        raise AssertionError("the server does not answer")

    try:
        refused = first_answer()
        assert (refused.status_code, refused.json()["reason"]) == (401, "NotAuthenticated")
        foreign = httpx.post(url, json={}, headers={"Host": "evil.example.org", "Authorization": "Bearer x"})
        assert foreign.status_code == 421
        rows, explained = asyncio.run(listed(tokens["alice"]))
        assert [row["name"] for row in rows["rows"]] == [workload]
        assert explained["workload"]["name"] == workload
        rows, explained = asyncio.run(listed(tokens["tina"]))
        assert rows["rows"] == []
        assert isinstance(explained, str)
        assert "NotPermitted" in explained or "NotFound" in explained
        refusal, _ = asyncio.run(listed("no-token-of-ours"))
        assert "AuthenticationFailed" in refusal
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize(
    "forbidden",
    [
        calls.apply("x"),
        calls.apply("x", dry_run=False),
        calls.act("cancel", []),
        calls.delete("cluster-queues", "main"),
        calls.patch("cluster-queues", "main", changes={}),
        calls.submit([]),
        calls.replace_object("apis/batch/v1", "jobs", {}, namespace="team", name="x"),
    ],
)
def test_a_call_that_would_write_is_refused_before_it_is_sent(forbidden: calls.Call[Any]) -> None:
    with Client("http://127.0.0.1:1") as nowhere, pytest.raises(ToolError, match="Forbidden"):
        _Asked(nowhere).send(forbidden)
