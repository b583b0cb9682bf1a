/** What keeps pods off nodes and devices: HAMi's and Kubernetes' tokens in plain words. The token stays beside them. */

const WORDS: Record<string, string> = {
  NodeNotSelected: "labels, node selector or affinity do not match",
  NodeNotReady: "node not ready",
  NodeUnschedulable: "node cordoned",
  NodeTainted: "taint not tolerated",
  "node unregistered": "no registered devices",
  NodeInsufficientDevice: "too few devices",
  ModeNotFit: "device in another sharing mode",
  CardNotHealth: "device unhealthy",
  CardCordoned: "device cordoned",
  CardTypeMismatch: "device type not accepted",
  CardUuidMismatch: "device excluded by UUID",
  NumaNotFit: "too few devices in one NUMA node",
  CardTimeSlicingExhausted: "no free slot on the device",
  ExclusiveDeviceAllocateConflict: "device in use, and the pod wants it alone",
  ResourceQuotaNotFit: "namespace ResourceQuota exceeded",
  CardInsufficientMemory: "too little device memory free",
  CardInsufficientCore: "too few device cores free",
  CardComputeUnitsExhausted: "all device cores reserved",
  CardQosPolicyMismatch: "device shared under another QoS policy",
  CardAppClassMismatch: "device shared with another application class",
  CardMigTopologyInfeasible: "no such MIG instance, or no place for it",
  CardNotFoundCustomFilterRule: "ruled out by the vendor's filter",
  AllocatedCardsInsufficientRequest: "device would serve, but too few on the node",
};

/** "5/8 CardInsufficientMemory, 1/8 CardNotHealth", as HAMi writes what a node lacks, in words. */
export function nearestWords(reasons: string): string {
  return reasons
    .split(", ")
    .map((part) => {
      const [, few, all, reason] = /^(\d+)\/(\d+) (\w+)$/.exec(part) ?? [];
      return reason === undefined ? refusalWords(part) : `${few} of ${all}: ${refusalWords(reason)}`;
    })
    .join("; ");
}

export function refusalWords(reason: string): string {
  const resource = /^Insufficient (.+)$/.exec(reason)?.[1];
  return resource === undefined ? (WORDS[reason] ?? reason) : `too little ${resource} free`;
}
