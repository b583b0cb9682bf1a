/** Clusters to look at while developing: empty, or of any size. Made from a seed, so that two runs show the same. */
import type {
  ClusterQueue,
  Decision,
  LiveClusterQueue,
  LiveData,
  LiveDevice,
  LocalQueue,
  WorkloadDetail,
  WorkloadEvent,
} from "../src/api/types.ts";

export interface Fixture {
  live: LiveData;
  workloads: WorkloadDetail[];
  clusterQueues: ClusterQueue[];
  localQueues: LocalQueue[];
  namespaces: string[];
  decisions: Decision[];
}

export interface Size {
  nodes: number;
  cardsPerNode: number;
  workloads: number;
  queuesPerCohort: number;
}

export const SIZES: Record<string, Size> = {
  empty: { nodes: 0, cardsPerNode: 0, workloads: 0, queuesPerCohort: 0 },
  small: { nodes: 6, cardsPerNode: 8, workloads: 60, queuesPerCohort: 2 },
  full: { nodes: 32, cardsPerNode: 8, workloads: 5_000, queuesPerCohort: 6 },
  huge: { nodes: 1_213, cardsPerNode: 8, workloads: 5_000, queuesPerCohort: 40 },
};

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const COHORTS = [
  { name: "company", parent: "" },
  { name: "research", parent: "company" },
  { name: "production", parent: "company" },
];
const NAMESPACES = [
  "vision",
  "language",
  "speech",
  "recommender",
  "robotics",
  "chem-sim",
  "platform",
  "students",
];
const TYPES = [
  { flavor: "v100-32gb", type: "NVIDIA-Tesla V100-SXM2-32GB", memory: 32_768 },
  { flavor: "a100-80gb", type: "NVIDIA-A100-SXM4-80GB", memory: 81_920 },
];
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

export function makeFixture(size: Size, now: number): Fixture {
  const random = generator(7);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const time = (secondsAgo: number) => new Date(now - secondsAgo * 1000).toISOString();

  const queues: Record<string, LiveClusterQueue> = {};
  const clusterQueues: ClusterQueue[] = [];
  const localQueues: LocalQueue[] = [];
  const devices: Record<string, LiveDevice> = {};
  const workloads: WorkloadDetail[] = [];

  for (const cohort of COHORTS.slice(1)) {
    for (let place = 0; place < size.queuesPerCohort; place += 1) {
      const name = `${cohort.name}-${NAMESPACES[place % NAMESPACES.length]}${place >= NAMESPACES.length ? `-${place}` : ""}`;
      const usage = TYPES.flatMap(({ flavor }) => {
        const gpus = 8 + Math.floor(random() * 3) * 8;
        const used = Math.floor(random() * (gpus + 6));
        const share = (resource: string, nominal: number, fill: number) => ({
          flavor,
          resource,
          nominal,
          borrowing_limit: random() < 0.4 ? Math.floor(nominal / 2) : null,
          lending_limit: random() < 0.3 ? Math.floor(nominal / 2) : null,
          used: Math.round(nominal * fill),
          borrowed: Math.max(0, Math.round(nominal * fill) - nominal),
        });
        return [
          share("cpu", gpus * 12_000, used / gpus),
          share("memory", gpus * 64 * 2 ** 30, (used / gpus) * 0.8),
          share("nvidia.com/gpu", gpus, used / gpus),
          share("nvidia.com/gpumem", gpus * 32_768, (used / gpus) * 0.9),
        ];
      });
      queues[name] = {
        cohort: cohort.name,
        active: place !== 4,
        reason: place === 4 ? "FlavorNotFound" : "Ready",
        message: place === 4 ? "Can't admit new workloads: references missing ResourceFlavor(s): h100." : "",
        pending: Math.floor(random() * 40),
        inadmissible: Math.floor(random() * 9),
        reserving: Math.floor(random() * 30),
        admitted: Math.floor(random() * 30),
        weighted_share: Math.floor(random() * 400) / 10,
        usage,
      };
      clusterQueues.push(makeClusterQueue(name, cohort.name, queues[name], time(86_400)));
      localQueues.push({
        ...metadata(time(86_400)),
        fair_weight: "1",
        namespace: NAMESPACES[place % NAMESPACES.length] ?? "vision",
        name: "main",
        cluster_queue: name,
        stop_policy: place === 3 ? "Hold" : "None",
        pending: queues[name].pending,
        reserving: queues[name].reserving,
        admitted: queues[name].admitted,
        conditions: [],
      });
    }
  }

  for (let node = 0; node < size.nodes; node += 1) {
    const kind = TYPES[node % 3 === 2 ? 1 : 0] ?? { type: "", memory: 0 };
    for (let index = 0; index < size.cardsPerNode; index += 1) {
      const device: LiveDevice = {
        node: `gpu-node-${String(node).padStart(2, "0")}`,
        index,
        type: kind.type,
        vendor: "NVIDIA",
        health: random() > 0.02,
        cordoned: random() > 0.98,
        draining: false,
        slots: 10,
        used_slots: 0,
        memory_mib: kind.memory,
        used_memory_mib: 0,
        cores_percent: 100,
        used_cores_percent: 0,
        slices: [],
      };
      devices[
        `GPU-${(node * 8 + index).toString(16).padStart(8, "0")}-5d3e-4a7b-9c21-${String(node).padStart(12, "0")}`
      ] = device;
    }
  }
  fillDevices(Object.values(devices), random, pick);

  const queueNames = Object.keys(queues);
  for (let id = 1; id <= size.workloads; id += 1) {
    workloads.push(makeWorkload(id, size, { random, pick, time, queueNames, devices }));
  }
  return {
    live: {
      totals: totals(devices, workloads, size.nodes),
      cluster_queues: queues,
      cohorts: Object.fromEntries(
        (size.queuesPerCohort === 0 ? [] : COHORTS).map(({ name, parent }) => [
          name,
          { parent, weighted_share: parent === "" ? 0 : 12.4, usage: sumUsage(queues, name) },
        ]),
      ),
      devices,
    },
    workloads,
    clusterQueues,
    localQueues,
    namespaces: size.nodes === 0 ? [] : NAMESPACES,
    decisions: workloads.slice(0, 40).map((workload, place) => ({
      id: place + 1,
      decided_at: time(place * 3),
      epoch: 3,
      cycle: 1000 - place,
      action: {
        Pending: "Park",
        Admitted: "Admit",
        Evicted: "Preempt",
        Finished: "Finish",
        QuotaReserved: "Reserve",
      }[workload.status],
      namespace: workload.namespace,
      workload_name: workload.name,
      workload_uid: workload.uid,
      detail: {},
      cluster_queue: workload.cluster_queue,
      reason: workload.reason,
      message: workload.message,
    })),
  };
}

export function totals(devices: Record<string, LiveDevice>, workloads: WorkloadDetail[], nodes: number) {
  const cards = Object.values(devices);
  const sum = (of: (device: LiveDevice) => number) => cards.reduce((total, card) => total + of(card), 0);
  const count = (status: string) => workloads.filter((workload) => workload.status === status).length;
  return {
    pending: count("Pending"),
    inadmissible: Math.floor(count("Pending") / 3),
    admitted: count("Admitted"),
    reserving: count("Admitted") + count("QuotaReserved"),
    nodes,
    devices: cards.length,
    devices_in_use: cards.filter((card) => card.used_slots > 0).length,
    slots: sum((card) => card.slots),
    used_slots: sum((card) => card.used_slots),
    memory_mib: sum((card) => card.memory_mib),
    used_memory_mib: sum((card) => card.used_memory_mib),
    cores_percent: sum((card) => card.cores_percent),
    used_cores_percent: sum((card) => card.used_cores_percent),
  };
}

function sumUsage(queues: Record<string, LiveClusterQueue>, cohort: string) {
  const sums = new Map<string, { flavor: string; resource: string; subtree_quota: number; used: number }>();
  for (const queue of Object.values(queues)) {
    if (cohort !== "company" && queue.cohort !== cohort) continue;
    for (const { flavor, resource, nominal, used } of queue.usage) {
      const key = `${flavor} ${resource}`;
      const sum = sums.get(key) ?? { flavor, resource, subtree_quota: 0, used: 0 };
      sums.set(key, { ...sum, subtree_quota: sum.subtree_quota + nominal, used: sum.used + used });
    }
  }
  return [...sums.values()];
}

/** Lets a card be shared, held whole, or free. */
export function fillDevices(
  devices: LiveDevice[],
  random: () => number,
  pick: <Item>(items: readonly Item[]) => Item,
): void {
  for (const device of devices) {
    const whole = random() < 0.3;
    const slices = whole ? 1 : random() < 0.2 ? 0 : 1 + Math.floor(random() * 4);
    for (let place = 0; place < slices; place += 1) {
      const namespace = pick(NAMESPACES);
      const foreign = random() < 0.06;
      device.slices.push({
        workload: foreign ? null : `${namespace}/train-${Math.floor(random() * 900) + 100}`,
        namespace: foreign ? null : namespace,
        pod_set: "main",
        replica: place,
        container: "train",
        memory_mib: whole
          ? device.memory_mib
          : Math.floor(((0.1 + random() * 0.15) * device.memory_mib) / 1024) * 1024,
        cores_percent: whole ? 100 : Math.floor(random() * 5) * 5,
      });
    }
    device.used_slots = device.slices.length;
    device.used_memory_mib = device.slices.reduce((sum, slice) => sum + slice.memory_mib, 0);
    device.used_cores_percent = device.slices.reduce((sum, slice) => sum + slice.cores_percent, 0);
  }
}

function metadata(createdAt: string) {
  return {
    uid: "00000000-0000-4000-8000-000000000000",
    labels: {},
    annotations: {},
    generation: 1,
    created_at: createdAt,
    deletion_requested_at: null,
  };
}

function makeClusterQueue(name: string, cohort: string, live: LiveClusterQueue, since: string): ClusterQueue {
  return {
    ...metadata(since),
    name,
    cohort,
    pending: live.pending,
    reserving: live.reserving,
    admitted: live.admitted,
    namespace_selector: {},
    admission_checks: [],
    admission_mode: "NoAdmissionFairSharing",
    preempt_for_devices: false,
    preemption_protection: { minimum_run_seconds: 0, cool_down_seconds: 0 },
    queueing_strategy: "BestEffortFIFO",
    stop_policy: "None",
    fair_weight: "1",
    preemption: {
      within_cluster_queue: "LowerPriority",
      reclaim_within_cohort: "Any",
      borrow_within_cohort: { policy: "Never", max_priority_threshold: null },
    },
    flavor_fungibility: {
      when_can_borrow: "MayStopSearch",
      when_can_preempt: "TryNextFlavor",
      preference: "",
    },
    resource_groups: [
      {
        covered_resources: ["cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpumem"],
        flavors: TYPES.map(({ flavor }) => ({
          name: flavor,
          resources: live.usage
            .filter((quota) => quota.flavor === flavor)
            .map((quota) => ({
              name: quota.resource,
              nominal_quota: write(quota.resource, quota.nominal),
              borrowing_limit:
                quota.borrowing_limit === null ? null : write(quota.resource, quota.borrowing_limit),
              lending_limit: quota.lending_limit === null ? null : write(quota.resource, quota.lending_limit),
            })),
        })),
      },
    ],
    conditions: [
      {
        type: "Active",
        status: "True",
        reason: "Ready",
        message: "Can admit new workloads",
        last_transition_time: since,
      },
    ],
  };
}

function write(resource: string, amount: number): string {
  if (resource === "cpu") return `${amount}m`;
  return resource === "memory" ? `${Math.floor(amount / 2 ** 30)}Gi` : String(amount);
}

interface Workshop {
  random: () => number;
  pick: <Item>(items: readonly Item[]) => Item;
  time: (secondsAgo: number) => string;
  queueNames: string[];
  devices: Record<string, LiveDevice>;
}

function makeWorkload(
  id: number,
  size: Size,
  { random, pick, time, queueNames, devices }: Workshop,
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
    status === "Admitted" && size.nodes > 0 ? Object.entries(devices).slice(id % 40, (id % 40) + gpus) : [];
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
