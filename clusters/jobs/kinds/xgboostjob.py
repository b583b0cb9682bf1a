"""kubeflow.org/v1 XGBoostJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class XGBoostJob(ReplicaSpecsJob):
    """A master and its workers."""

    kind = "XGBoostJob"
    plural = "xgboostjobs"
    replica_specs = "xgbReplicaSpecs"
    roles = ("Master", "Worker")
