"""kubeflow.org/v1 JAXJob."""

from clusters.jobs.families.kubeflow import ReplicaSpecsJob


class JAXJob(ReplicaSpecsJob):
    """Workers alone; Kueue refuses prebuilt workloads for them."""

    kind = "JAXJob"
    plural = "jaxjobs"
    replica_specs = "jaxReplicaSpecs"
    roles = ("Worker",)
    takes_prebuilt_workload = False
