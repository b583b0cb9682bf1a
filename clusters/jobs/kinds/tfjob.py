"""kubeflow.org/v1 TFJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class TFJob(ReplicaSpecsJob):
    kind = "TFJob"
    plural = "tfjobs"
    replica_specs = "tfReplicaSpecs"
    roles = ("Chief", "Master", "PS", "Worker", "Evaluator")
