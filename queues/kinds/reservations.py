"""kueueweb.io/v1 Reservation: nodes that are kept free in windows of time."""

from collections.abc import Mapping
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Field, Group, Kind, Reading
from kinds.field_types import NO_MOMENT, Choice, Integer, Moment, Structure, Text, TextMap
from queues.models import Reservation
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.syntax import Syntax, dns_label, dns_subdomain, label_value, qualified_name
from scheduling.reservations import reservation as rules
from scheduling.reservations.reservation import PERIOD_SECONDS, BusyPolicy, Recurrence

_MAX_NAMES: Final = 1_000
_MAX_LABELS: Final = 8
_MAX_COMMENT: Final = 1_024
_MAX_USER: Final = 150


def _names(syntax: Syntax) -> Structure:
    """Return a list of different names."""

    def read(holder: FieldReader, key: str) -> list[str]:
        return holder.texts(key, max_items=_MAX_NAMES, syntax=syntax)

    return Structure(read, list, frozenset, of_texts=True, shape=openapi.listing(openapi.text()))


def _local_queue(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if slash and namespace and name and not dns_label(namespace) and not dns_subdomain(name):
        return ""
    return "must be the namespace and the name of a LocalQueue, like team/main"


def _user(text: str) -> str:
    return "" if text and len(text) <= _MAX_USER else f"must have between 1 and {_MAX_USER} characters"


def _check(reading: Reading) -> None:
    values = reading.values
    if not values["node_names"] and not values["node_labels"] and values["node_count"] is None:
        remedy = "Name nodes, or labels of nodes, or give a count of nodes."
        reading.error("node_names", "Required value", remedy, MistakeReason.REQUIRED)
    start, end, until = values["starts_at"], values["ends_at"], values["until"]
    if NO_MOMENT in (start, end):
        return  # a mistake that is noted already
    if end <= start:
        reading.error("ends_at", "must be later than the start")
    if until is not None and values["recurrence"] == Recurrence.NONE:
        rule = "Forbidden: there is only one window"
        reading.error("until", rule, "Remove it, or set recurrence.", MistakeReason.FORBIDDEN)
    elif until is not None and until <= start:
        reading.error("until", "must be later than the start")
    period = PERIOD_SECONDS.get(Recurrence(values["recurrence"]))
    if period is not None and (end - start).total_seconds() > period:
        reading.error(
            "ends_at", f"must be at most {period // 3600} hours after the start, so that windows do not overlap"
        )


def _core(row: Any, known: Mapping[str, Any]) -> rules.Reservation:
    fields = dict(known)
    nodes, allowed = fields.pop("nodes", {}), fields.pop("allowed", {})
    return rules.Reservation(
        row.name,
        node_names=nodes.get("names", frozenset()),
        node_labels=nodes.get("labels", {}),
        node_count=nodes.get("count"),
        allowed=rules.Admittance(**allowed),
        **fields,
    )


RESERVATION: Final = Kind(
    "Reservation",
    ("kueueweb.io/v1",),
    "reservations",
    ("resv",),
    description="A Reservation: nodes that are kept free in windows of time, for certain workloads or for maintenance.",
    model=Reservation,
    spec_required=True,
    check=_check,
    groups={
        "nodes": Group(
            "The reserved nodes: those with one of the names or with all the labels; with a count, as many of them."
        ),
        "allowed": Group(
            "A workload that matches any entry may use the nodes during the windows. Without entries, the windows "
            "are for maintenance."
        ),
    },
    fields=(
        Field(
            "starts_at",
            "spec.start",
            Moment(),
            required=True,
            always=True,
            help="When the first window starts.",
        ),
        Field(
            "ends_at",
            "spec.end",
            Moment(),
            required=True,
            always=True,
            help="When the first window ends; later ones last as long.",
        ),
        Field(
            "recurrence",
            "spec.recurrence",
            Choice(Recurrence, Recurrence.NONE),
            help="Daily or Weekly: the window recurs every 24 hours or every 7 days, regardless of daylight saving"
            " time.",
        ),
        Field(
            "until",
            "spec.until",
            Moment(optional=True),
            help="The end of the recurrence: no window starts at this time or later. Without it, the windows recur"
            " forever.",
        ),
        Field(
            "node_names",
            "spec.nodes.names",
            _names(dns_subdomain),
            json="nodes.names",
            help="Names of nodes.",
        ),
        Field(
            "node_labels",
            "spec.nodes.labels",
            TextMap(_MAX_LABELS, qualified_name, label_value),
            json="nodes.labels",
            help="Labels of nodes; a node with all of them is reserved, also if it is added later.",
        ),
        Field(
            "node_count",
            "spec.nodes.count",
            Integer(minimum=1),
            json="nodes.count",
            help="Reserve this many of these nodes, or of all nodes: the first by name that are ready, and not "
            "cordoned or tainted.",
        ),
        Field(
            "allowed_namespaces",
            "spec.allowed.namespaces",
            _names(dns_label),
            json="allowed.namespaces",
            help="Namespaces whose workloads may use the nodes.",
        ),
        Field(
            "allowed_local_queues",
            "spec.allowed.localQueues",
            _names(_local_queue),
            json="allowed.local_queues",
            help="LocalQueues, as namespace/name, whose workloads may use the nodes.",
        ),
        Field(
            "allowed_cluster_queues",
            "spec.allowed.clusterQueues",
            _names(dns_subdomain),
            json="allowed.cluster_queues",
            help="ClusterQueues whose workloads may use the nodes.",
        ),
        Field(
            "allowed_users",
            "spec.allowed.users",
            _names(_user),
            json="allowed.users",
            help="Users whose workloads may use the nodes.",
        ),
        Field(
            "if_busy",
            "spec.ifBusy",
            Choice(BusyPolicy, BusyPolicy.WAIT),
            help="The treatment of workloads that use the nodes at the start and are not allowed to. Wait lets "
            "them run, and the window is Busy until they end; Evict evicts them. With Evict, a window that returns "
            "lends its nodes also to workloads without a time limit.",
        ),
        Field(
            "comment",
            "spec.comment",
            Text(max_length=_MAX_COMMENT),
            core=None,
            help="The purpose, for readers of the calendar.",
        ),
    ),
    core=_core,
)
