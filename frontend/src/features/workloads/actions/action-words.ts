/** The words of buttons and questions of the actions on workloads. */
import { t } from "@lingui/core/macro";
import type { WorkloadAction } from "@/api/workloads";
import type { IconName } from "@/components/icon";

export type ActionKind = WorkloadAction["kind"];

export const actionWords = (): Record<
  ActionKind,
  { label: string; icon: IconName; consequence: string; done: string }
> => ({
  hold: {
    label: t`Hold`,
    icon: "pause",
    consequence: t`A held workload is not scheduled. If it is admitted, it is evicted: its pods stop. Release returns it to its queue.`,
    done: t`On hold`,
  },
  release: {
    label: t`Release`,
    icon: "play",
    consequence: t`It returns to its queue and waits for quota and devices.`,
    done: t`Released`,
  },
  requeue: {
    label: t`Requeue`,
    icon: "refresh",
    consequence: t`Its pods stop, and it returns to its queue. If no workload is ahead of it, it may start again at once; use Hold to prevent that.`,
    done: t`Requeued`,
  },
  priority: {
    label: t`Change priority`,
    icon: "priority",
    consequence: t`The new priority applies from the next scheduling cycle on.`,
    done: t`Priority changed`,
  },
  cancel: {
    label: t`Cancel`,
    icon: "stop",
    consequence: t`The workload ends for good: its pods stop, and its quota and devices are freed. This cannot be undone.`,
    done: t`Cancelled`,
  },
});
