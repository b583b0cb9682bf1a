"""The configuration kinds: each declared once, all of them in one registry."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from accounts.kinds.namespace import NAMESPACE
from accounts.kinds.role_binding import ROLE_BINDING
from kinds.declaration import Kind
from queues.kinds import users
from queues.kinds.classes import PRIORITY_CLASS, RUNTIME_CLASS, WORKLOAD_PRIORITY_CLASS
from queues.kinds.flavors import ADMISSION_CHECK, RESOURCE_FLAVOR, TOPOLOGY
from queues.kinds.limits import LIMIT_RANGE, RESOURCE_QUOTA
from queues.kinds.multikueue import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from queues.kinds.provisioning import PROVISIONING_REQUEST_CONFIG
from queues.kinds.queues import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE
from queues.kinds.reservations import RESERVATION

KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        replace(NAMESPACE, users=users.of_namespace, is_used=users.namespace_is_used),
        WORKLOAD_PRIORITY_CLASS,
        PRIORITY_CLASS,
        RUNTIME_CLASS,
        LIMIT_RANGE,
        RESOURCE_QUOTA,
        TOPOLOGY,
        PROVISIONING_REQUEST_CONFIG,
        MULTIKUEUE_CLUSTER,
        MULTIKUEUE_CONFIG,
        ADMISSION_CHECK,
        RESOURCE_FLAVOR,
        COHORT,
        CLUSTER_QUEUE,
        LOCAL_QUEUE,
        RESERVATION,
        ROLE_BINDING,
    )
}
"""The kinds in the order in which they are applied: referenced kinds come first."""
