"""Kueue's labels and annotations on jobs, pods and workloads."""

from typing import Final

QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS: Final = "kueue.x-k8s.io/priority-class"
MAXIMUM_EXECUTION_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
MANAGED: Final = "kueue.x-k8s.io/managed"
POD_GROUP_NAME: Final = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_TOTAL_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
POD_GROUP_FAST_ADMISSION: Final = "kueue.x-k8s.io/pod-group-fast-admission"
POD_GROUP_SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
POD_GROUP_POD_INDEX: Final = "kueue.x-k8s.io/pod-group-pod-index"
POD_GROUP_POD_INDEX_LABEL: Final = "kueue.x-k8s.io/pod-group-pod-index-label"
ROLE_HASH: Final = "kueue.x-k8s.io/role-hash"
RETRIABLE_IN_GROUP: Final = "kueue.x-k8s.io/retriable-in-group"
IS_GROUP_WORKLOAD: Final = "kueue.x-k8s.io/is-group-workload"
PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
MULTIKUEUE_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
MULTIKUEUE_ORIGIN_UID: Final = "kueue.x-k8s.io/multikueue-origin-uid"
MULTIKUEUE_JOB: Final = "kueueweb.io/multikueue-job"
"""kueueweb's own label, on a workload that a manager has created in a worker: its job, as Kind/name."""
MINIMUM_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
COMPLETIONS_EQUAL_PARALLELISM: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
PRIORITY_BOOST: Final = "kueue.x-k8s.io/priority-boost"
PARENT: Final = "kueue.x-k8s.io/concurrent-admission-parent"
ADMISSION_GATED_BY: Final = "kueue.x-k8s.io/admission-gated-by"
ALLOWED_FLAVORS: Final = "kueue.x-k8s.io/workload-allowed-resource-flavors"
ELASTIC_JOB: Final = "kueue.x-k8s.io/elastic-job"
SLICE_NAME: Final = "kueue.x-k8s.io/workload-slice-name"
REPLACED_SLICE: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
SUSPENDING_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"
POD_INDEX_OFFSET: Final = "kueue.x-k8s.io/pod-index-offset"
SAFE_TO_DELETE: Final = "kueue.x-k8s.io/safe-to-forcefully-delete"
STOPPING: Final = "kueue.x-k8s.io/stopping"
JOB_OWNER_KIND: Final = "kueue.x-k8s.io/job-owner-gvk"
JOB_OWNER_NAME: Final = "kueue.x-k8s.io/job-owner-name"
COMPONENT_INDEX: Final = "kueue.x-k8s.io/component-workload-index"
RAY_CLUSTER_GENERATION: Final = "kueue.x-k8s.io/raycluster-generation"

WORKLOAD: Final = "kueue.x-k8s.io/workload"
POD_SET: Final = "kueue.x-k8s.io/podset"
LOCAL_QUEUE: Final = "kueue.x-k8s.io/local-queue-name"
CLUSTER_QUEUE: Final = "kueue.x-k8s.io/cluster-queue-name"
"""Labels and an annotation of pods that were started."""
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
ELASTIC_JOB_GATE: Final = "kueue.x-k8s.io/elastic-job"
RESOURCE_IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""The finalizer of workloads."""

PROVISIONING_PREFIX: Final = "provreq.kueue.x-k8s.io/"

REQUIRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED_TOPOLOGY: Final = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_TOPOLOGY: Final = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE: Final = "kueue.x-k8s.io/podset-slice-size"
SLICE_CONSTRAINTS: Final = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
POD_SET_GROUP: Final = "kueue.x-k8s.io/podset-group-name"

JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Kubernetes' label that identifies a job's pods."""

NICE: Final = "kueueweb.io/nice"
"""kueueweb's own annotation, on jobs and workloads: the amount that is subtracted from their multifactor priority."""

TRANSLATED: Final = "kueueweb.io/translated"
"""kueueweb's own annotation, on an object translated from another scheduler's: its source, and each field's result."""

START_AFTER: Final = "kueueweb.io/start-after"
"""kueueweb's own annotation, on jobs and workloads: the jobs of the namespace that must have succeeded before."""

RETAIN_POLICY: Final = "kueueweb.io/job-retain-policy"
"""kueueweb's own annotation, on the jobs of a Volcano JobFlow: `delete` once all of them have succeeded."""

JOB_FLOW_UID: Final = "kueueweb.io/job-flow-uid"
"""kueueweb's own annotation, on the jobs of a JobFlow that is in the cluster: the uid of the flow."""

BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Volcano's labels and annotations of the jobs of a JobFlow: `namespace.name` of the flow and of the template."""

COPIED_TO_WORKLOAD: Final = (
    PRIORITY_BOOST, ADMISSION_GATED_BY, ALLOWED_FLAVORS, ELASTIC_JOB, NICE, START_AFTER, TRANSLATED,
)  # fmt: skip
"""Annotations of a job that are copied to its workload, besides those of the provisioning prefix."""
