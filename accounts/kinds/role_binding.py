"""kueueweb.io/v1 RoleBinding: who may do what in a cluster."""

from typing import Final

from accounts.models import Role, RoleBinding
from kinds.declaration import Field, Kind, Reading
from kinds.field_types import Boolean, Choice, Text
from scheduling.manifest import MistakeReason
from scheduling.manifest.syntax import dns_label, dns_subdomain

_MAX_NAME: Final = 150


def _check(reading: Reading) -> None:
    values = reading.values
    if bool(values["username"]) == bool(values["group"]):
        rule = "exactly one of user and group is required"
        reading.error("username", rule, "Name a user or a group.", MistakeReason.REQUIRED)
    if not values["role"]:
        reading.error("role", "Required value", f"Use one of {', '.join(Role)}.", MistakeReason.REQUIRED)
    of_tree = values["role"] == Role.QUEUE_ADMIN
    if of_tree and not values["cohort"]:
        reading.error(
            "cohort", "Required value", "Name the cohort below which it may change queues.", MistakeReason.REQUIRED
        )
    if not of_tree and values["cohort"]:
        reading.error(
            "cohort", f"only a {Role.QUEUE_ADMIN} can have a cohort", "Leave it out.", MistakeReason.FORBIDDEN
        )
    if of_tree and values["namespace"]:
        reading.error(
            "namespace",
            f"a {Role.QUEUE_ADMIN} has a cohort instead of a namespace",
            "Leave it out.",
            MistakeReason.FORBIDDEN,
        )


ROLE_BINDING: Final = Kind(
    "RoleBinding",
    ("kueueweb.io/v1",),
    "role-bindings",
    ("rb",),
    description="A role of a user or a group.",
    model=RoleBinding,
    spec_required=True,
    mirrored=False,
    check=_check,
    fields=(
        Field(
            "username",
            "spec.user",
            Text(max_length=_MAX_NAME),
            json="user",
            help="Either a user or a group is required.",
        ),
        Field("group", "spec.group", Text(max_length=_MAX_NAME), help="The group, if no user is given."),
        Field("role", "spec.role", Choice(Role), always=True, help="The permissions that the user or group gets."),
        Field(
            "namespace",
            "spec.namespace",
            Text(syntax=dns_label),
            json="in_namespace",
            help="Empty: all namespaces of the cluster.",
        ),
        Field(
            "cohort",
            "spec.cohort",
            Text(syntax=dns_subdomain),
            help="For a queue-admin: the cohort below which objects may be changed.",
        ),
        Field(
            "every_cluster",
            "",
            Boolean(),
            core=None,
            help="Whether it applies to all clusters; such roles are changed on the admin site.",
        ),
    ),
)
