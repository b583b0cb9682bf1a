"""kubeflow.org/v1 PyTorchJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class PyTorchJob(ReplicaSpecsJob):
    """A master and its workers."""

    kind = "PyTorchJob"
    plural = "pytorchjobs"
    replica_specs = "pytorchReplicaSpecs"
    roles = ("Master", "Worker")
