/** Clusters to look at while developing: empty, or of any size. Made from a seed, so that two runs show the same. */
import type {
  ClusterQueue,
  Decision,
  LiveClusterQueue,
  LiveData,
  LiveDevice,
  LocalQueue,
  WorkloadDetail,
} from "../src/api/types.ts";
import { fillDevices, makeDevices } from "./fixture-devices.ts";
import { COHORTS, NAMESPACES } from "./fixture-names.ts";
import { makeClusterQueue, makeLiveQueue, makeLocalQueue, sumUsage } from "./fixture-queues.ts";
import { makeWorkload } from "./fixture-workloads.ts";

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

export function makeFixture(size: Size, now: number): Fixture {
  const random = generator(7);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const time = (secondsAgo: number) => new Date(now - secondsAgo * 1000).toISOString();

  const queues: Record<string, LiveClusterQueue> = {};
  const clusterQueues: ClusterQueue[] = [];
  const localQueues: LocalQueue[] = [];
  const workloads: WorkloadDetail[] = [];

  for (const cohort of COHORTS.slice(1)) {
    for (let place = 0; place < size.queuesPerCohort; place += 1) {
      const name = `${cohort.name}-${NAMESPACES[place % NAMESPACES.length]}${place >= NAMESPACES.length ? `-${place}` : ""}`;
      const live = makeLiveQueue(cohort.name, place, random);
      queues[name] = live;
      clusterQueues.push(makeClusterQueue(name, cohort.name, live, time(86_400)));
      localQueues.push(makeLocalQueue(place, name, live, time(86_400)));
    }
  }
  const devices = makeDevices(size.nodes, size.cardsPerNode, random);
  fillDevices(Object.values(devices), random, pick);

  const queueNames = Object.keys(queues);
  for (let id = 1; id <= size.workloads; id += 1) {
    workloads.push(makeWorkload(id, { hasNodes: size.nodes > 0, random, pick, time, queueNames, devices }));
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
    decisions: workloads.slice(0, 40).map((workload, place) => makeDecision(workload, place, time)),
  };
}

function makeDecision(
  workload: WorkloadDetail,
  place: number,
  time: (secondsAgo: number) => string,
): Decision {
  return {
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
