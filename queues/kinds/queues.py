"""Cohort, ClusterQueue and LocalQueue."""

from typing import Any, Final

from kinds import openapi
from kinds.declaration import Field, Group, Kind, Place, Reading
from kinds.field_types import AnnotatedChoice, Boolean, Choice, FieldType, Integer, Structure, Text, Weight
from kinds.label_selector import LABEL_SELECTOR_SCHEMA, read_label_selector
from queues.kinds import multifactor, node_quotas, user_limits, users
from queues.kinds.admission_checks import AdmissionChecks
from queues.kinds.quotas import AlphaResources, ResourceGroups
from queues.models import ClusterQueue, Cohort, LocalQueue
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.syntax import dns_subdomain
from scheduling.model import cluster_queue, cohort, local_queue
from scheduling.model.selectors import LabelSelector
from scheduling.model.vocabulary import (
    AdmissionMode,
    BackfillPolicy,
    BorrowWithinCohortPolicy,
    FungibilityPolicy,
    FungibilityPreference,
    MigrationMode,
    QueueingStrategy,
    ReclaimWithinCohortPolicy,
    SharingPolicy,
    StopPolicy,
    WithinClusterQueuePolicy,
)

_PARTS: Final = {
    "spec.fairSharing": "The part in fair sharing of borrowed quota.",
    "spec.admissionScope": "The usage by which pending workloads are ordered, in addition to priority and time.",
}
_KUEUE: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
_WITH_ALPHA: Final = (*_KUEUE, "kueue.x-k8s.io/v1alpha2")
_NOT_IN_ALPHA: Final[dict[str, Place | None]] = {"v1alpha2": None}

_PROTECTION: Final = {
    "preemption_protection": Group(
        "Beyond Kueue: protection of workloads from preemption.", cohort.PreemptionProtection, "protection", sparse=True
    )
}
_PROTECTION_FIELDS: Final = (
    Field(
        "minimum_run_seconds",
        "",
        Integer(minimum=0),
        json="preemption_protection.minimum_run_seconds",
        annotation="kueueweb.io/minimum-run-seconds",
        help="Beyond Kueue: the time after its admission during which a workload is not preempted.",
    ),
    Field(
        "cool_down_seconds",
        "",
        Integer(minimum=0),
        json="preemption_protection.cool_down_seconds",
        annotation="kueueweb.io/preemption-cool-down-seconds",
        help="Beyond Kueue: the time after a preemption during which a workload is not preempted again.",
    ),
)

_BACKFILL: Final = "kueueweb.io/backfill"

_NODE_QUOTAS: Final = Field(
    "node_quotas",
    "",
    node_quotas.NodeQuotas(),
    core=None,
    annotation=node_quotas.ANNOTATION,
    help="Beyond Kueue: quotas that are computed from the nodes of their flavor.",
)

_PRIORITY_WEIGHTS: Final = Field(
    "priority_weights",
    "",
    multifactor.MultifactorWeights(),
    annotation=multifactor.ANNOTATION,
    help="Beyond Kueue: weights of the multifactor priority that orders pending workloads, as in Slurm.",
)

_USER_LIMITS: Final = Field(
    "user_limits",
    "",
    user_limits.LimitsByUser(),
    annotation=user_limits.ANNOTATION,
    help="Beyond Kueue: the maximum quota that each user and each group may hold at the same time, as in YuniKorn.",
)


def _weight(older: dict[str, Place | None]) -> Field:
    return Field(
        "fair_sharing_weight",
        "spec.fairSharing.weight",
        Weight(),
        json="fair_weight",
        older=older,
        help=(
            "The weight in fair sharing, 1 by default. A queue of weight 2 is entitled to twice the share; a "
            "queue of weight 0 borrows last."
        ),
    )


COHORT: Final = Kind(
    "Cohort",
    (*_KUEUE, "kueue.x-k8s.io/v1alpha1"),
    "cohorts",
    ("co",),
    description="A Cohort: queues and cohorts that share unused quota.",
    model=Cohort,
    parts=_PARTS,
    groups=_PROTECTION,
    fields=(
        Field(
            "parent_name",
            "spec.parentName",
            Text(syntax=dns_subdomain),
            json="parent",
            core="parent_name",
            older={"v1alpha1": Place("spec.parent")},
            help="The parent cohort, from which this cohort may borrow; empty for a root.",
        ),
        Field(
            "resource_groups",
            "spec.resourceGroups",
            ResourceGroups("parent_name", lending_within_nominal=False),
            help=(
                "Quotas by flavor and resource. All resources of a group use the same flavor; flavors are tried in "
                "order."
            ),
        ),
        _weight({}),
        *_PROTECTION_FIELDS,
        _NODE_QUOTAS,
        _PRIORITY_WEIGHTS,
        _USER_LIMITS,
        Field(
            "sharing_policy",
            "",
            AnnotatedChoice(SharingPolicy),
            annotation="kueueweb.io/sharing-policy",
            help=(
                "Beyond Kueue: how quota is divided among the queues below. proportion: by weight and demand; "
                "capacity: as declared, least used first; fair-share: quota first, the rest by priority and weight. "
                "Empty: Kueue's rules."
            ),
        ),
    ),
    check=lambda reading: node_quotas.check_node_quotas(reading, lending_within_nominal=False),
    prefetch=("resource_groups__quotas",),
    core=lambda row, known: cohort.Cohort(row.name, **known),
)


_MAX_CONCURRENT_FLAVORS: Final = 16


class ConcurrentAdmission(FieldType):
    """`concurrentAdmissionPolicy`, as Kueue checks it: it needs one resource group, at most 16 flavors, not StrictFIFO.
    The value of an existing policy is its mode.
    """

    @property
    def default(self) -> dict[str, Any]:
        return {}

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> dict[str, Any]:
        policy = holder.fields(key)
        if policy is None:
            return {}
        groups = reading.values["resource_groups"]
        flavors = [name for group in groups for name in group.flavors]
        migration = policy.fields("migration")
        found = (
            _read_migration(migration, flavors) if migration else {"mode": MigrationMode.TRY_PREFERRED_FLAVORS.value}
        )
        policy.close()
        strict = reading.values["queueing_strategy"] == QueueingStrategy.STRICT_FIFO
        for broken, rule, remedy in (
            (len(groups) != 1, "requires exactly one resource group", ""),
            (len(groups) == 1 and len(flavors) > _MAX_CONCURRENT_FLAVORS, "allows at most 16 flavors", ""),
            (strict, "can't be used with StrictFIFO", "Use BestEffortFIFO."),
        ):
            if broken:
                holder.error(key, rule, remedy, MistakeReason.FORBIDDEN)
        return {"migration": found}

    def schema(self) -> openapi.Schema:
        constraints = openapi.tree(
            {"lastAcceptableFlavorName": openapi.text("The last flavor, in the group's order, to which it may move.")},
            description="Limits of the migration.",
        )
        modes = openapi.text(
            "TryPreferredFlavors: move to a flavor earlier in the order when it has room. "
            "RetainFirstAdmission: stay in the flavor that admitted the workload first.",
            enum=[mode.value for mode in MigrationMode],
            default=MigrationMode.TRY_PREFERRED_FLAVORS.value,
        )
        migration = {"mode": modes, "constraints": constraints}
        return openapi.tree({"migration": openapi.tree(migration, description="When a running workload moves.")})

    def core(self, value: dict[str, Any]) -> cluster_queue.ConcurrentAdmission | None:
        if not value:
            return None
        migration = value.get("migration") or {}
        return cluster_queue.ConcurrentAdmission(
            MigrationMode(migration.get("mode") or MigrationMode.TRY_PREFERRED_FLAVORS),
            (migration.get("constraints") or {}).get("lastAcceptableFlavorName", ""),
        )


def _read_migration(migration: FieldReader, flavors: list[str]) -> dict[str, Any]:
    mode = migration.optional_choice("mode", list(MigrationMode)) or MigrationMode.TRY_PREFERRED_FLAVORS
    found: dict[str, Any] = {"mode": mode.value}
    constraints = migration.fields("constraints")
    if constraints:
        flavor = constraints.text("lastAcceptableFlavorName")
        if flavor and flavor not in flavors:
            constraints.error(
                "lastAcceptableFlavorName", "must be a flavor of this ClusterQueue", suggestion(flavor, flavors)
            )
        if mode is not MigrationMode.TRY_PREFERRED_FLAVORS:
            migration.error("constraints", "needs mode TryPreferredFlavors", "", MistakeReason.FORBIDDEN)
        constraints.close()
        found["constraints"] = {"lastAcceptableFlavorName": flavor} if flavor else {}
    migration.close()
    return found


def _fungibility(initial: FungibilityPolicy, old_word: str) -> tuple[Choice, Choice]:
    """Return the types of a fungibility policy: the present one, and that of v1beta1, which also accepts the
    old word."""
    return (
        Choice(FungibilityPolicy, initial),
        Choice(FungibilityPolicy, initial, {old_word: FungibilityPolicy.MAY_STOP_SEARCH}),
    )


_BORROW, _OLD_BORROW = _fungibility(FungibilityPolicy.MAY_STOP_SEARCH, "Borrow")
_PREEMPT, _OLD_PREEMPT = _fungibility(FungibilityPolicy.TRY_NEXT_FLAVOR, "Preempt")


def _check_cluster_queue(reading: Reading) -> None:
    values = reading.values
    policies = {values["when_can_borrow"], values["when_can_preempt"]}
    if values["flavor_preference"] and policies != {FungibilityPolicy.TRY_NEXT_FLAVOR}:
        reading.error(
            "flavor_preference",
            "requires whenCanBorrow and whenCanPreempt to be TryNextFlavor",
            "Set both, or remove the preference.",
        )
    policy = values["borrow_within_cohort_policy"]
    if values["reclaim_within_cohort"] == ReclaimWithinCohortPolicy.NEVER and policy != BorrowWithinCohortPolicy.NEVER:
        reading.error(
            "reclaim_within_cohort",
            f"must not be Never when borrowWithinCohort.policy is {policy}",
            "Set reclaimWithinCohort to LowerPriority or Any, or the policy to Never.",
        )
    if values["backfill"] and values["queueing_strategy"] == QueueingStrategy.STRICT_FIFO:
        reading.error(
            "backfill",
            "requires queueingStrategy BestEffortFIFO: in a StrictFIFO queue no workload may pass another",
            "Set queueingStrategy to BestEffortFIFO, or remove the annotation.",
        )
    node_quotas.check_node_quotas(reading, lending_within_nominal=True)


CLUSTER_QUEUE: Final = Kind(
    "ClusterQueue",
    _WITH_ALPHA,
    "cluster-queues",
    ("cq",),
    description="A ClusterQueue: quotas by flavor and resource, with the rules of borrowing and preemption.",
    model=ClusterQueue,
    parts=_PARTS,
    spec_required=True,
    groups={
        "flavor_fungibility": Group(
            "Whether to try the next flavor before borrowing or preempting in this one.",
            cluster_queue.FlavorFungibility,
        ),
        "preemption": Group("The workloads that a pending workload may preempt.", cluster_queue.ClusterQueuePreemption),
        "preemption.borrow_within_cohort": Group(
            "Whether a workload that has to borrow may preempt.", cluster_queue.BorrowWithinCohort
        ),
        **_PROTECTION,
    },
    fields=(
        Field(
            "cohort_name",
            "spec.cohortName",
            Text(syntax=dns_subdomain),
            json="cohort",
            core="cohort_name",
            older={"v1beta1": Place("spec.cohort"), "v1alpha2": Place("spec.cohort")},
            help="The cohort with which it shares unused quota; empty: it neither borrows nor lends.",
        ),
        Field(
            "resource_groups",
            "spec.resourceGroups",
            ResourceGroups("cohort_name", lending_within_nominal=True),
            older={"v1alpha2": Place("spec.resources", AlphaResources("cohort_name", lending_within_nominal=True))},
            help=(
                "Quotas by flavor and resource. All resources of a group use the same flavor; flavors are tried in "
                "order."
            ),
        ),
        Field(
            "queueing_strategy",
            "spec.queueingStrategy",
            Choice(QueueingStrategy, QueueingStrategy.BEST_EFFORT_FIFO),
            always=True,
            help=(
                "StrictFIFO: a workload that does not fit blocks the workloads behind it. BestEffortFIFO: they may "
                "overtake it."
            ),
        ),
        Field(
            "namespace_selector",
            "spec.namespaceSelector",
            Structure(read_label_selector, lambda: None, LabelSelector.from_manifest, shape=LABEL_SELECTOR_SCHEMA),
            help="A label selector of namespaces; null selects none, {} all.",
        ),
        Field(
            "when_can_borrow",
            "spec.flavorFungibility.whenCanBorrow",
            _BORROW,
            json="flavor_fungibility.when_can_borrow",
            older={"v1beta1": Place("spec.flavorFungibility.whenCanBorrow", _OLD_BORROW), **_NOT_IN_ALPHA},
            help="Whether the search ends at a flavor that fits by borrowing, or tries the next flavor first.",
        ),
        Field(
            "when_can_preempt",
            "spec.flavorFungibility.whenCanPreempt",
            _PREEMPT,
            json="flavor_fungibility.when_can_preempt",
            older={"v1beta1": Place("spec.flavorFungibility.whenCanPreempt", _OLD_PREEMPT), **_NOT_IN_ALPHA},
            help="Whether the search ends at a flavor that fits by preemption, or tries the next flavor first.",
        ),
        Field(
            "flavor_preference",
            "spec.flavorFungibility.preference",
            Choice(FungibilityPreference),
            json="flavor_fungibility.preference",
            older=_NOT_IN_ALPHA,
            help=(
                "Which of two flavors is better if one needs borrowing and the other preemption. Both policies must "
                "be TryNextFlavor."
            ),
        ),
        Field(
            "within_cluster_queue",
            "spec.preemption.withinClusterQueue",
            Choice(WithinClusterQueuePolicy, WithinClusterQueuePolicy.NEVER),
            json="preemption.within_cluster_queue",
            help=(
                "The workloads of this queue that a pending workload may preempt: none, those of lower priority, or "
                "also newer ones of equal priority."
            ),
        ),
        Field(
            "reclaim_within_cohort",
            "spec.preemption.reclaimWithinCohort",
            Choice(ReclaimWithinCohortPolicy, ReclaimWithinCohortPolicy.NEVER),
            json="preemption.reclaim_within_cohort",
            help="The borrowing workloads of other queues that a workload within its nominal quota may preempt.",
        ),
        Field(
            "borrow_within_cohort_policy",
            "spec.preemption.borrowWithinCohort.policy",
            Choice(BorrowWithinCohortPolicy, BorrowWithinCohortPolicy.NEVER),
            json="preemption.borrow_within_cohort.policy",
            older=_NOT_IN_ALPHA,
            help="Whether a workload that has to borrow may preempt workloads of lower priority in other queues.",
        ),
        Field(
            "borrow_within_cohort_max_priority_threshold",
            "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
            Integer(),
            json="preemption.borrow_within_cohort.max_priority_threshold",
            older=_NOT_IN_ALPHA,
            help="The highest priority that may be preempted in this way; null: any priority below the preemptor's.",
        ),
        Field(
            "admission_checks",
            "spec.admissionChecksStrategy",
            AdmissionChecks(),
            older=_NOT_IN_ALPHA,
            help="Checks that must be Ready before a workload with quota is admitted, for all flavors or for some.",
        ),
        Field(
            "stop_policy",
            "spec.stopPolicy",
            Choice(StopPolicy, StopPolicy.NONE),
            older=_NOT_IN_ALPHA,
            help="Hold: admits no workloads. HoldAndDrain: also evicts admitted workloads.",
        ),
        _weight(_NOT_IN_ALPHA),
        Field(
            "admission_mode",
            "spec.admissionScope.admissionMode",
            Choice(AdmissionMode),
            older=_NOT_IN_ALPHA,
            help="Whether pending workloads are ordered by the past usage of their LocalQueues.",
        ),
        Field(
            "concurrent_admission_policy",
            "spec.concurrentAdmissionPolicy",
            ConcurrentAdmission(),
            json=None,
            core="concurrent_admission",
            older={"v1beta1": None, **_NOT_IN_ALPHA},
            frozen=True,
            help="Lets a workload pursue several flavors of the queue at once; needs the gate ConcurrentAdmission.",
        ),
        Field(
            "preempt_for_devices",
            "",
            Boolean(),
            annotation="kueueweb.io/preempt-for-devices",
            help="Beyond Kueue: preempt when quota is free but no device is.",
        ),
        *_PROTECTION_FIELDS,
        _NODE_QUOTAS,
        _PRIORITY_WEIGHTS,
        _USER_LIMITS,
        Field(
            "queue_priority",
            "",
            Integer(initial=0, minimum=0),
            annotation="kueueweb.io/queue-priority",
            help=(
                "Beyond Kueue: a factor of the multifactor priority, and the order of queues in a cohort with a "
                "sharing policy, highest first."
            ),
        ),
        Field(
            "never_reclaimed",
            "",
            Boolean(),
            annotation="kueueweb.io/never-reclaim",
            help="Beyond Kueue: no other ClusterQueue may preempt its workloads.",
        ),
        Field(
            "backfill",
            "",
            AnnotatedChoice(BackfillPolicy),
            annotation=_BACKFILL,
            help=(
                "Beyond Kueue: with `easy`, the first workload that must wait gets a planned start, computed from "
                "the time limits of running workloads, and later workloads may not delay it. Empty: Kueue's rules."
            ),
        ),
    ),
    check=_check_cluster_queue,
    users=users.of_cluster_queue,
    is_used=users.cluster_queue_is_used,
    prefetch=("resource_groups__quotas",),
    core=lambda row, known: cluster_queue.ClusterQueue(
        row.name, labels=row.labels, terminating=row.deletion_requested_at is not None, **known
    ),
)


LOCAL_QUEUE: Final = Kind(
    "LocalQueue",
    _WITH_ALPHA,
    "local-queues",
    ("lq", "queue"),
    namespaced=True,
    description="A LocalQueue: a namespace's access to a ClusterQueue.",
    model=LocalQueue,
    parts=_PARTS,
    spec_required=True,
    fields=(
        Field(
            "cluster_queue_name",
            "spec.clusterQueue",
            Text(syntax=dns_subdomain),
            json="cluster_queue",
            always=True,
            frozen=True,
            help="The ClusterQueue whose quota the workloads use.",
        ),
        Field(
            "stop_policy",
            "spec.stopPolicy",
            Choice(StopPolicy, StopPolicy.NONE),
            older=_NOT_IN_ALPHA,
            help="Hold: admits no workloads. HoldAndDrain: also evicts admitted workloads.",
        ),
        _weight(_NOT_IN_ALPHA),
    ),
    core=lambda row, known: local_queue.LocalQueue(
        row.namespace,
        row.name,
        consumed=row.admission_fair_sharing.get("consumedResources") or {},
        consumed_at=row.admission_fair_sharing.get("lastUpdate"),
        past_use=row.past_use.get("used") or {},
        terminating=row.deletion_requested_at is not None,
        **{"cluster_queue": "", **known},
    ),
)
