/**
 * The shapes of the REST API, by their short names, and those of the live stream.
 * Amounts in specs are Kubernetes quantities ("500m", "10Gi"); amounts in usage are integers in base units
 * (cpu in milli, memory in bytes, everything else in whole units).
 */
import type { components } from "./schema.gen";

type Schemas = components["schemas"];

/**
 * Answers have every field. Their shapes serve for requests too, and there call optional what may be left out.
 */
type Whole<Shape> = Shape extends object ? { [Key in keyof Shape]-?: Whole<Shape[Key]> } : Shape;

export type Session = Schemas["Session"];
export type ClusterSummary = Schemas["ClusterSummary"];
export type Condition = Schemas["Condition"];
export type PodSet = Schemas["PodSet"];
export type AllocatedDevice = Schemas["HeldSlice"];
export type ContainerSample = Schemas["ContainerSample"];
export type Workload = Schemas["Workload"];
export type WorkloadDetail = Schemas["WorkloadDetail"];
export type WorkloadEvent = Schemas["WorkloadEvent"];
export type ResourceGroup = Whole<Schemas["ResourceGroup"]>;
export type ClusterQueue = Whole<Schemas["ClusterQueueStatus"]>;
export type StopPolicy = Schemas["StopPolicyEnum"];
export type LocalQueue = Whole<Schemas["LocalQueueStatus"]>;
export type Node = Schemas["Node"];
export type Decision = Schemas["Decision"];
/** What an apply did, or with a dry run would do. */
export type ApplyResult = Schemas["ApplyResult"];
export type Overview = Schemas["Overview"];
export type LargestRequest = Schemas["LargestRequest"];
export type MoveAdvice = Schemas["MoveAdvice"];
export type ErrorBody = Schemas["Error"];
/** One located fault of a refused request. */
export type FieldError = Schemas["LocatedError"];

/** One page of a list; `next` is the cursor for `?after=`, null on the last page. */
export interface Page<Row> {
  results: Row[];
  next: string | null;
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
  /** Its node is cordoned, by us or in the cluster. */
  node_unschedulable: boolean;
  /** Being emptied, by itself or with its node. */
  draining: boolean;
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
  /** How long ago the scheduler said this, by the server's clock: it may be gone since. */
  age_seconds?: number;
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
