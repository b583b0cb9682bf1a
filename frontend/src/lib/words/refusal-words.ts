/** HAMi's and Kubernetes' reasons against a node or device in plain words. The token stays beside them. */

import { t } from "@lingui/core/macro";

const words = (): Record<string, string> => ({
  NodeNotSelected: t`labels, node selector or affinity do not match`,
  NodeNotReady: t`node not ready`,
  NodeUnschedulable: t`node cordoned`,
  NodeReserved: t`node reserved for others`,
  NodeTainted: t`taint not tolerated`,
  "node unregistered": t`no registered devices`,
  NodeInsufficientDevice: t`too few devices`,
  ModeNotFit: t`device in another sharing mode`,
  CardNotHealth: t`device unhealthy`,
  CardCordoned: t`device cordoned`,
  CardTypeMismatch: t`device type not accepted`,
  CardUuidMismatch: t`device excluded by UUID`,
  NumaNotFit: t`too few devices in one NUMA node`,
  CardTimeSlicingExhausted: t`no free slot on the device`,
  ExclusiveDeviceAllocateConflict: t`device in use, but requested exclusively`,
  ResourceQuotaNotFit: t`namespace ResourceQuota exceeded`,
  CardInsufficientMemory: t`too little device memory free`,
  CardInsufficientCore: t`too few device cores free`,
  CardComputeUnitsExhausted: t`all device cores reserved`,
  CardQosPolicyMismatch: t`device shared under another QoS policy`,
  CardAppClassMismatch: t`device shared with another application class`,
  CardMigTopologyInfeasible: t`no such MIG instance, or no place for it`,
  CardNotFoundCustomFilterRule: t`rejected by the vendor's rules`,
  AllocatedCardsInsufficientRequest: t`device fits, but the node has too few`,
});

/** "5/8 CardInsufficientMemory, 1/8 CardNotHealth", as HAMi writes what a node lacks, in words. */
export function nearestWords(reasons: string): string {
  return reasons
    .split(", ")
    .map((part) => {
      const [, few = "", all = "", reason] = /^(\d+)\/(\d+) (\w+)$/.exec(part) ?? [];
      return reason === undefined ? refusalWords(part) : t`${few} of ${all}: ${refusalWords(reason)}`;
    })
    .join("; ");
}

export function refusalWords(reason: string): string {
  const resource = /^Insufficient (.+)$/.exec(reason)?.[1];
  return resource === undefined ? (words()[reason] ?? reason) : t`too little ${resource} free`;
}
