"""Rows of nodes as v1 Nodes, with the columns of Kubernetes' printer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import Cast, Coalesce, Concat, NullIf

from accounts.models import Cluster
from accounts.services.object_status import timestamp
from accounts.services.reach import Reach
from gpus.manifests import write_node
from gpus.models import Node
from gpus.services.node_manifests import node_spec
from kueueweb.wire.tables import AGE, NAME, Column

_ROLE: Final = "node-role.kubernetes.io/"


def rows(reach: Reach) -> QuerySet[Node]:
    """Return the nodes. As in REST, every user of a cluster sees them all."""
    # A node that was applied as a manifest may have no uid.
    uid = Coalesce(
        NullIf(Cast(F("uid"), TextField()), Value("", TextField())),
        Concat(Value("node-", TextField()), Cast(F("pk"), TextField()), output_field=TextField()),
    )
    return Node.objects.filter(reach.rows()).annotate(shown_uid=uid)


def objects(cluster: Cluster, found: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the nodes of rows, without annotations, as in REST. One that was cordoned in kueueweb is unschedulable as
    well."""
    return [_node_object(row) for row in found]


def _node_object(row: Any) -> dict[str, Any]:
    found = write_node(node_spec(row))
    metadata = {key: value for key, value in found["metadata"].items() if key != "annotations"}
    metadata |= {"uid": row.shown_uid, "creationTimestamp": timestamp(row.created_at)}
    spec = {**found["spec"], **({"unschedulable": True} if row.unschedulable or row.cordoned else {})}
    status = found["status"]
    if row.conditions:
        status = {**status, "conditions": [_condition(each) for each in row.conditions]}
    return {**found, "metadata": metadata, "spec": spec, "status": status}


def _condition(stored: Mapping[str, Any]) -> dict[str, Any]:
    names = {"last_transition_time": "lastTransitionTime"}
    return {names.get(key, key): value for key, value in stored.items()}


def _state(item: Mapping[str, Any], _: datetime) -> str:
    conditions = {each["type"]: each["status"] for each in item["status"].get("conditions") or ()}
    words = ["Ready" if conditions.get("Ready") == "True" else "NotReady"]
    return ",".join([*words, *(["SchedulingDisabled"] if item["spec"].get("unschedulable") else [])])


def _roles(item: Mapping[str, Any], _: datetime) -> str:
    labels = item["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))) or "<none>"


COLUMNS: Final[Sequence[Column]] = (
    NAME,
    Column("Status", "Whether it is ready, and whether pods may be scheduled on it", _state),
    Column("Roles", "Its roles, by its labels", _roles),
    AGE,
)
