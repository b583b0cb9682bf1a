/** What can be done to workloads, and what that means: the words of buttons and questions. */
import type { WorkloadAction } from "@/api/workloads";
import type { IconName } from "@/components/icon";

export type ActionKind = WorkloadAction["kind"];

export const ACTION_WORDS: Record<
  ActionKind,
  { label: string; icon: IconName; consequence: string; done: string }
> = {
  hold: {
    label: "Hold",
    icon: "pause",
    consequence:
      "A held workload is not scheduled. If it is admitted, it is evicted: its pods stop. Release puts it back into its queue.",
    done: "On hold",
  },
  release: {
    label: "Release",
    icon: "play",
    consequence: "It goes back into its queue and waits for quota and devices.",
    done: "Released",
  },
  priority: {
    label: "Change priority",
    icon: "priority",
    consequence: "The new priority counts from the next scheduling cycle on.",
    done: "Priority changed",
  },
  cancel: {
    label: "Cancel",
    icon: "stop",
    consequence:
      "The workload ends for good: its pods stop, and its quota and devices are freed. This cannot be undone.",
    done: "Cancelled",
  },
};
