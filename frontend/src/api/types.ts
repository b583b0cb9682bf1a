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
export type RoleBinding = Schemas["RoleBinding"];
export type NewRoleBinding = Schemas["RoleBindingRequest"];
export type UserRow = Schemas["UserRow"];
export type UserChange = Schemas["PatchedUserChangeRequest"];
export type UserToken = Schemas["Token"];
export type DeviceRequest = Schemas["DeviceRequest"];
export type ClusterSummary = Schemas["ClusterSummary"];
export type Condition = Schemas["Condition"];
export type PodSet = Schemas["PodSet"];
export type AllocatedDevice = Schemas["HeldSlice"];
export type ContainerSample = Schemas["ContainerSample"];
export type Workload = Schemas["Workload"];
export type WorkloadDetail = Schemas["WorkloadDetail"];
export type Pod = Schemas["Pod"];
export type WorkloadEvent = Schemas["WorkloadEvent"];
export type ClusterQueue = Whole<Schemas["ClusterQueueStatus"]>;
export type LocalQueue = Whole<Schemas["LocalQueueStatus"]>;
export type Cohort = Whole<Schemas["Cohort"]>;
export type ResourceFlavor = Whole<Schemas["ResourceFlavor"]>;
export type Topology = Schemas["Topology"];
export type Node = Schemas["PlacedNode"];
export type Device = Schemas["Device"];
export type NodeDetail = Schemas["PlacedNodeDetail"];
export type NodePod = Schemas["NodePod"];
export type PublishedDevice = Schemas["PublishedDevice"];
export type ServedObjectProblem = Schemas["ServedObjectProblem"];
export type ClusterSettings = Schemas["PatchedClusterSettingsRequest"];
export type Diagnostics = Schemas["Diagnostics"];
export type SchedulingCycle = Schemas["SchedulingCycle"];
export type Decision = Schemas["Decision"];
export type Shadow = Schemas["Shadow"];
export type ShadowChoice = Schemas["Choice"];
export type ShadowDifference = Schemas["ShadowDifference"];
/** The result of an apply, or of its dry run. */
export type ApplyResult = Schemas["ApplyResult"];
export type AuditRecord = Schemas["AuditRecord"];
export type Notification = Schemas["Notification"];
export type NotificationRule = Schemas["Rule"];
export type NotificationRuleInput = Schemas["RuleRequest"];
export type Preview = Schemas["Preview"];
/** The immediate effects of a change of configuration. */
export type Effects = Schemas["Effects"];
export type Question = Schemas["Question"];
export type QuestionSummary = Schemas["QuestionSummary"];
export type WhatIf = Schemas["WhatIf"];
export type PlanResult = Schemas["PlanResult"];
export type PreviewedWorkload = Schemas["PreviewedWorkload"];
export type Overview = Schemas["Overview"];
export type ClusterOverview = Schemas["ClusterOverview"];
export type Explanation = Schemas["Explanation"];
/** With an estimate of its start. */
export type ExplainedWorkload = Schemas["ExplainedWorkload"];
export type FlavorVerdict = Schemas["FlavorVerdict"];
export type LargestRequest = Schemas["LargestRequest"];
export type DeviceUsage = Schemas["DeviceUsage"];
export type MoveAdvice = Schemas["MoveAdvice"];
export type ErrorBody = Schemas["Error"];
/** One located fault of a refused request. */
export type FieldError = Schemas["LocatedError"];

/** One page of a list; `next` is the cursor for `?after=`, null on the last page. */
export interface Page<Row> {
  results: Row[];
  next: string | null;
}

// The live stream: declared in scheduler/live/shapes.py

export type LiveTotals = Schemas["LiveTotals"];
export type LiveQuota = Schemas["LiveQuota"];
export type UserHolding = Schemas["UserHolding"];
export type Headroom = Schemas["Headroom"];
export type LiveClusterQueue = Schemas["LiveClusterQueue"];
export type LiveCohort = Schemas["LiveCohort"];
export type LiveSlice = Schemas["LiveSlice"];
export type LiveDevice = Schemas["LiveDevice"];
export type LiveData = Schemas["LiveData"];
export type SnapshotFrame = Schemas["LiveSnapshotFrame"];
export type DeltaFrame = Schemas["LiveDeltaFrame"];
export type HeartbeatFrame = Schemas["LiveHeartbeatFrame"];
export type LiveFrame = SnapshotFrame | DeltaFrame | HeartbeatFrame;
