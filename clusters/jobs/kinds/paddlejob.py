"""kubeflow.org/v1 PaddleJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class PaddleJob(ReplicaSpecsJob):
    """A master and its workers."""

    kind = "PaddleJob"
    plural = "paddlejobs"
    replica_specs = "paddleReplicaSpecs"
    roles = ("Master", "Worker")
