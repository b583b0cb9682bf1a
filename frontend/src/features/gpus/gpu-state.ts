/** The states of a device: labels, colours and meaning, defined here and nowhere else. */
import type { GpuState } from "@/lib/url/gpu-filters";
import type { StatusLook } from "@/lib/words/workload-status";

export const GPU_STATE_LOOKS: Record<GpuState, StatusLook> = {
  free: { label: "Free", color: "teal", meaning: "nobody holds a slice" },
  shared: { label: "Shared", color: "indigo", meaning: "held, with room left" },
  full: { label: "Full", color: "yellow", meaning: "no slice fits any more" },
  cordoned: { label: "Cordoned", color: "gray", meaning: "closed to new slices" },
  unhealthy: { label: "Unhealthy", color: "red", meaning: "takes no new slice" },
};
