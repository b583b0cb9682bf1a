"""The flows of jobs that start after each other, over REST."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.names_filter import names_in
from accounts.api.scope import ClusterView
from queues.models import Job
from queues.services.flows.job_flows import FlowJobPhase, FlowPhase, JobFlow, flow_names, job_flows


def _names(text: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), help_text=text)


class FlowJobSerializer(serializers.Serializer[Any]):
    """A job of a flow."""

    kind = serializers.CharField()
    name = serializers.CharField()
    phase = serializers.ChoiceField([phase.value for phase in FlowJobPhase])
    after = _names("The jobs that must have succeeded before it starts.")
    waits_for = _names("Those of them that have not succeeded yet.")
    workload = serializers.CharField(allow_blank=True, help_text="Its newest workload; empty: it has none.")
    local_queue = serializers.CharField(allow_blank=True, help_text="The queue of that workload.")
    reason = serializers.CharField(allow_blank=True, help_text="The reason of that workload's state.")
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class JobFlowSerializer(serializers.Serializer[Any]):
    """A JobFlow of Volcano, with its state in the words of Volcano's controller."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    phase = serializers.ChoiceField([phase.value for phase in FlowPhase])
    job_retain_policy = serializers.ChoiceField(["retain", "delete"])
    waiting_jobs = _names("Jobs whose targets have not completed: Volcano would not have created them yet.")
    pending_jobs = _names("Jobs that wait for quota, or for their pods to start.")
    running_jobs = _names("Jobs that are admitted.")
    completed_jobs = _names("Jobs that have succeeded.")
    terminated_jobs = _names("Jobs that were cancelled.")
    failed_jobs = _names("Jobs that have failed.")
    jobs = FlowJobSerializer(many=True)


class JobFlowsView(ClusterView):
    """`job-flows/`."""

    serializer_class = JobFlowSerializer
    queryset = Job.objects.none()
    filter_backends: list[Any] = []
    keyset = ("namespace", "flow")

    @extend_schema(
        parameters=[
            OpenApiParameter("namespace", str, description="Only flows of these namespaces, separated by commas."),
            OpenApiParameter("name", str, description="Only flows of these names, separated by commas."),
            OpenApiParameter("search", str, description="Only flows with this text in their name."),
        ],
        responses=JobFlowSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the JobFlows that were applied, in the namespaces that the reader may see, by namespace and name.

        A flow is deleted with its last job.
        """
        parameters = request.query_params
        visible, wanted = self.access.visible_namespaces(), parameters.get("namespace")
        if wanted is not None:
            visible = frozenset(filter(self.access.sees, names_in(wanted)))
        names = flow_names(self.cluster, visible, names_in(parameters.get("name", "")), parameters.get("search", ""))
        page = [(row["namespace"], row["flow"]) for row in self.paginate_queryset(names) or ()]
        flows = {(flow.namespace, flow.name): flow for flow in job_flows(self.cluster, page)} if page else {}
        return self.get_paginated_response([_shown(flows[key]) for key in page if key in flows])


def _shown(flow: JobFlow) -> dict[str, Any]:
    lists = {f"{phase.value.lower()}_jobs": flow.names(phase) for phase in FlowJobPhase}
    jobs = [
        {
            "kind": job.kind,
            "name": job.name,
            "phase": job.phase.value,
            "after": job.after,
            "waits_for": job.waits_for,
            "workload": job.workload,
            "local_queue": job.local_queue,
            "reason": job.reason,
            "created_at": job.created_at,
            "finished_at": job.finished_at,
        }
        for job in flow.jobs
    ]
    policy = "delete" if flow.is_deleted_when_done else "retain"
    head = {"namespace": flow.namespace, "name": flow.name, "phase": flow.phase.value, "job_retain_policy": policy}
    return {**head, **lists, "jobs": jobs}
