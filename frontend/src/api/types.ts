/**
 * The shapes of the REST API and the live stream.
 * Amounts in specs are Kubernetes quantities ("500m", "10Gi"); amounts in usage are integers in base units
 * (cpu in milli, memory in bytes, everything else in whole units).
 */
import type { WorkloadStatus } from "@/lib/workload-status";

export type Role = "admin" | "submitter" | "viewer";

export interface Session {
  authenticated: boolean;
  user: { username: string; is_cluster_admin: boolean } | null;
  /** A role without a namespace holds in all of them. */
  roles: { role: Role; namespace: string | null }[];
  clusters: ClusterSummary[];
  /** In the demo only. */
  demo_accounts?: { username: string; password: string }[];
}

export interface ClusterSummary {
  name: string;
  mode: "schedule" | "observe" | "simulated";
}

/** One page of a list; `next` is the cursor for `?after=`, null on the last page. */
export interface Page<Row> {
  results: Row[];
  next: string | null;
}

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  last_transition_time: string;
}

export interface PodSet {
  name: string;
  count: number;
  min_count: number | null;
  requests: Record<string, string>;
  admitted_count: number | null;
  flavors: Record<string, string>;
  resource_usage: Record<string, string>;
  node_selector: Record<string, string>;
}

export interface AllocatedDevice {
  pod_set: string;
  replica: number;
  container: string;
  node: string;
  uuid: string;
  memory_mib: number;
  cores_percent: number;
}

export interface Workload {
  id: number;
  uid: string;
  cluster: string;
  namespace: string;
  name: string;
  queue_name: string;
  /** The ClusterQueue that admitted it, or that its LocalQueue points at. */
  cluster_queue: string;
  priority: number;
  priority_class: string;
  status: WorkloadStatus;
  active: boolean;
  reason: string;
  /** Why it waits, as a sentence. */
  message: string;
  /** Place in its ClusterQueue, from 1; only in lists that are sorted by it. */
  position?: number | null;
  created_at: string;
  queued_at: string | null;
  quota_reserved_at: string | null;
  admitted_at: string | null;
  evicted_at: string | null;
  finished_at: string | null;
  owner: { kind: string; name: string } | null;
  pod_sets: PodSet[];
}

export interface WorkloadDetail extends Workload {
  conditions: Condition[];
  devices: AllocatedDevice[];
}

export interface WorkloadEvent {
  id: number;
  at: string;
  type: "Normal" | "Warning";
  reason: string;
  message: string;
  actor: string;
}

export interface FlavorQuota {
  name: string;
  resources: {
    name: string;
    nominal_quota: string;
    borrowing_limit: string | null;
    lending_limit: string | null;
  }[];
}

export interface ResourceGroup {
  covered_resources: string[];
  flavors: FlavorQuota[];
}

export interface ClusterQueue {
  name: string;
  cohort: string;
  queueing_strategy: "StrictFIFO" | "BestEffortFIFO";
  stop_policy: "None" | "Hold" | "HoldAndDrain";
  fair_weight: string | null;
  preemption: Record<string, unknown>;
  flavor_fungibility: Record<string, unknown>;
  resource_groups: ResourceGroup[];
  conditions: Condition[];
}

export interface LocalQueue {
  namespace: string;
  name: string;
  cluster_queue: string;
  stop_policy: "None" | "Hold" | "HoldAndDrain";
  pending: number;
  reserving: number;
  admitted: number;
  conditions: Condition[];
}

export interface Node {
  name: string;
  ready: boolean;
  unschedulable: boolean;
  labels: Record<string, string>;
}

export interface Decision {
  id: number;
  decided_at: string;
  epoch: number;
  cycle: number;
  /** Admit, Preempt, Evict, Park, ... */
  action: string;
  namespace: string;
  workload_name: string;
  cluster_queue: string;
  reason: string;
  message: string;
}

export interface Overview {
  health: {
    scheduler: { alive: boolean; holder: string; epoch: number; heartbeat_at: string | null };
    watcher: { alive: boolean; last_event_at: string | null };
  };
  pending_by_reason: { reason: string; count: number }[];
}

/** One located fault of a refused request. */
export interface FieldError {
  document?: number;
  path: string;
  value?: unknown;
  rule: string;
  remedy: string;
}

export interface ErrorBody {
  reason: string;
  message: string;
  errors?: FieldError[];
}

// The live stream

export interface LiveTotals {
  /** Will be tried in a coming cycle. */
  pending: number;
  /** Was tried in vain, and waits until something changes that may help it. */
  inadmissible: number;
  reserving: number;
  admitted: number;
  nodes: number;
  devices: number;
  devices_in_use: number;
  slots: number;
  used_slots: number;
  memory_mib: number;
  used_memory_mib: number;
  cores_percent: number;
  used_cores_percent: number;
}

/** Kueue's dominant resource share; above every number when the fair weight is zero. */
export type WeightedShare = number | "Infinity";

export interface LiveQuota {
  flavor: string;
  resource: string;
  nominal: number;
  borrowing_limit: number | null;
  lending_limit: number | null;
  used: number;
  borrowed: number;
}

export interface LiveClusterQueue {
  cohort: string;
  active: boolean;
  /** Why it is not active, as a token and as a sentence. */
  reason: string;
  message: string;
  pending: number;
  inadmissible: number;
  reserving: number;
  admitted: number;
  weighted_share: WeightedShare;
  usage: LiveQuota[];
}

export interface LiveCohort {
  parent: string;
  weighted_share: WeightedShare;
  usage: { flavor: string; resource: string; subtree_quota: number; used: number }[];
}

export interface LiveSlice {
  /** "namespace/name", or null when the holder is not yours to see, or is none of ours. */
  workload: string | null;
  /** Null or empty where the holder is not known. */
  namespace: string | null;
  pod_set: string;
  replica: number;
  container: string;
  memory_mib: number;
  cores_percent: number;
}

export interface LiveDevice {
  node: string;
  index: number;
  type: string;
  vendor: string;
  health: boolean;
  cordoned: boolean;
  slots: number;
  used_slots: number;
  memory_mib: number;
  used_memory_mib: number;
  cores_percent: number;
  used_cores_percent: number;
  slices: LiveSlice[];
}

export interface LiveData {
  totals: LiveTotals;
  cluster_queues: Record<string, LiveClusterQueue>;
  cohorts: Record<string, LiveCohort>;
  devices: Record<string, LiveDevice>;
}

export interface LiveRemoved {
  cluster_queues?: string[];
  cohorts?: string[];
  devices?: string[];
}

interface FrameHead {
  cluster: string;
  epoch: number;
  sequence: number;
  /** When the scheduler took these numbers. */
  time: string;
}

export interface SnapshotFrame extends FrameHead {
  type: "snapshot";
  data: LiveData;
}

export interface DeltaFrame extends FrameHead {
  type: "delta";
  /** The sequence this delta starts from, when it holds several; else the one before its own. */
  since?: number;
  data: Partial<LiveData> & { removed?: LiveRemoved };
}

export interface HeartbeatFrame extends FrameHead {
  type: "heartbeat";
}

export type LiveFrame = SnapshotFrame | DeltaFrame | HeartbeatFrame;
