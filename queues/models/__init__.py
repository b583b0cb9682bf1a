"""The rows of queues, one family of nouns per file."""

from queues.models.cluster_object import ClusterObject
from queues.models.cluster_queue import ClusterQueue, Cohort, LocalQueue
from queues.models.job import Job
from queues.models.mirrored_change import MirroredChange
from queues.models.multikueue import MultiKueueCluster, MultiKueueConfig
from queues.models.namespace_limits import LimitRange, ResourceQuota, RuntimeClass
from queues.models.node_reservation import Reservation
from queues.models.priority import PriorityClass, WorkloadPriorityClass
from queues.models.provisioning import ProvisioningRequestConfig
from queues.models.quota import FlavorQuota, ResourceGroup
from queues.models.resource_flavor import AdmissionCheck, ResourceFlavor, Topology
from queues.models.served_object import ServedObject
from queues.models.start_estimate import StartEstimate
from queues.models.workload import Pod, PodSet, Workload, WorkloadEvent

__all__ = [
    "AdmissionCheck",
    "ClusterObject",
    "ClusterQueue",
    "Cohort",
    "FlavorQuota",
    "Job",
    "LimitRange",
    "LocalQueue",
    "MirroredChange",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "Pod",
    "PodSet",
    "PriorityClass",
    "ProvisioningRequestConfig",
    "Reservation",
    "ResourceFlavor",
    "ResourceGroup",
    "ResourceQuota",
    "RuntimeClass",
    "ServedObject",
    "StartEstimate",
    "Topology",
    "Workload",
    "WorkloadEvent",
    "WorkloadPriorityClass",
]
