"""kubeflow.org/v1 JAXJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class JAXJob(ReplicaSpecsJob):
    """It has workers only; Kueue refuses prebuilt workloads for it."""

    kind = "JAXJob"
    plural = "jaxjobs"
    replica_specs = "jaxReplicaSpecs"
    roles = ("Worker",)
    takes_prebuilt_workload = False
