/** Whether a queue takes workloads, and what keeps it from that. */
import { t } from "@lingui/core/macro";
import type { ClusterQueue, LocalQueue } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";

export function QueueState({ queue }: { queue: ClusterQueue | LocalQueue }) {
  const active = queue.conditions.find((condition) => condition.type === "Active");
  return (
    <>
      {active !== undefined && (
        <BadgeDot
          label={active.status === "True" ? t`Active` : t`Not active: ${active.reason}`}
          color={active.status === "True" ? "teal" : "orange"}
          hint={active.message}
        />
      )}
      {queue.stop_policy !== "None" && <BadgeDot label={t`Stopped: ${queue.stop_policy}`} color="orange" />}
    </>
  );
}
