/** Workloads in all stages of their life, and what happened to them. */
import type { LiveDevice, WorkloadDetail, WorkloadEvent } from "../src/api/types.ts";
import { NAMESPACES } from "./fixture-names.ts";

const WAITING = [
  [
    "WaitingForQuota",
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor v100-32gb, 2 more needed",
  ],
  [
    "WaitingForDevices",
    "quota is there, but no node holds 4 cards of 24576 MiB: gpu-node-07 came nearest, 5/8 CardInsufficientMemory, 1/8 CardNotHealth",
  ],
  [
    "ExceedsMaxQuota",
    "couldn't assign flavors to pod set main: nvidia.com/gpu asked 128, the queue and its cohort can have at most 96",
  ],
] as const;

interface Workshop {
  /** Whether there are nodes, so that admitted workloads hold cards. */
  hasNodes: boolean;
  random: () => number;
  pick: <Item>(items: readonly Item[]) => Item;
  time: (secondsAgo: number) => string;
  queueNames: string[];
  devices: Record<string, LiveDevice>;
}

export function makeWorkload(
  id: number,
  { hasNodes, random, pick, time, queueNames, devices }: Workshop,
): WorkloadDetail {
  const draw = random();
  const status =
    draw < 0.45
      ? "Pending"
      : draw < 0.8
        ? "Admitted"
        : draw < 0.83
          ? "QuotaReserved"
          : draw < 0.86
            ? "Evicted"
            : "Finished";
  const namespace = pick(NAMESPACES);
  const [reason, message] = pick(WAITING);
  const admitted = status === "Admitted" || status === "Finished";
  const reserved = admitted || status === "QuotaReserved";
  const age = id * 11;
  const gpus = pick([1, 1, 1, 2, 4]);
  const held =
    status === "Admitted" && hasNodes ? Object.entries(devices).slice(id % 40, (id % 40) + gpus) : [];
  return {
    id,
    uid: `00000000-0000-4000-8000-${String(id).padStart(12, "0")}`,
    cluster: "default",
    labels: {},
    annotations: {},
    generation: 1,
    deletion_requested_at: null,
    never_preempt: false,
    maximum_execution_seconds: null,
    submitted_by: "ada",
    requeue_at: null,
    requeue_count: 0,
    eviction_counts: [],
    unhealthy_nodes: [],
    push_error: "",
    admission_checks: [],
    namespace,
    name: `${pick(["train", "finetune", "evaluate", "sweep", "serve"])}-${pick(["resnet", "bert", "whisper", "dlrm"])}-${id}`,
    queue_name: "main",
    cluster_queue: pick(queueNames),
    priority: pick([0, 0, 100, 1000]),
    priority_class: pick(["low", "normal", "high"]),
    status,
    active: random() > 0.03,
    reason: status === "Pending" ? reason : status === "Evicted" ? "Preempted" : status,
    message:
      status === "Pending"
        ? message
        : status === "Evicted"
          ? "Preempted to accommodate a workload (production/serve-bert-12) due to reclamation within the cohort"
          : "",
    created_at: time(age + 20),
    queued_at: time(age + 18),
    quota_reserved_at: reserved ? time(age + 5) : null,
    admitted_at: admitted ? time(age + 3) : null,
    evicted_at: status === "Evicted" ? time(age) : null,
    finished_at: status === "Finished" ? time(age) : null,
    owner: { kind: "Job", name: `job-${id}` },
    pod_sets: [
      {
        name: "main",
        count: 1 + (id % 3),
        min_count: null,
        requests: {
          cpu: "4",
          memory: "16Gi",
          "nvidia.com/gpu": String(gpus),
          "nvidia.com/gpumem": "8192",
          "nvidia.com/gpucores": "30",
        },
        admitted_count: reserved ? 1 + (id % 3) : null,
        flavors: reserved ? { cpu: "v100-32gb", memory: "v100-32gb", "nvidia.com/gpu": "v100-32gb" } : {},
        resource_usage: reserved ? { cpu: "4", memory: "16Gi", "nvidia.com/gpu": String(gpus) } : {},
        reclaimable_count: 0,
        topology_request: {},
        topology_assignment: null,
        node_selector: reserved ? { "nvidia.com/gpu.product": "V100" } : {},
      },
    ],
    conditions: [
      {
        type: "QuotaReserved",
        status: reserved ? "True" : "False",
        reason: reserved ? "QuotaReserved" : reason,
        message: reserved ? "Quota reserved in its ClusterQueue" : message,
        last_transition_time: time(age + 5),
      },
      ...(admitted
        ? [
            {
              type: "Admitted",
              status: "True" as const,
              reason: "Admitted",
              message: "The workload is admitted",
              last_transition_time: time(age + 3),
            },
          ]
        : []),
    ],
    devices: held.map(([uuid, device], replica) => ({
      pod_set: "main",
      replica,
      container: "train",
      node: device.node,
      uuid,
      memory_mib: 8192,
      cores_percent: 30,
    })),
  };
}

export function makeEvents(workload: WorkloadDetail): WorkloadEvent[] {
  const steps: [string | null, string, string, string][] = [
    [workload.created_at, "Submitted", "Submitted to LocalQueue main", "ada"],
    [workload.queued_at, "Queued", `Waits in ${workload.cluster_queue}`, "scheduler"],
    [
      workload.quota_reserved_at,
      "QuotaReserved",
      "Quota reserved, wait time since queued was 13s",
      "scheduler",
    ],
    [workload.admitted_at, "Admitted", "Admitted on named devices", "scheduler"],
    [workload.finished_at, "Finished", "Job finished successfully", "watcher"],
  ];
  const events = steps.flatMap(([at, reason, message, actor], id): WorkloadEvent[] =>
    at === null ? [] : [{ id, at, type: "Normal", reason, message, actor }],
  );
  if (workload.status === "Evicted") {
    events.push({
      id: 9,
      at: new Date().toISOString(),
      type: "Warning",
      reason: "Preempted",
      message: workload.message,
      actor: "scheduler",
    });
  }
  return events;
}
