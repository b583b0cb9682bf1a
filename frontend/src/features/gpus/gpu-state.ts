/** The states of a device: labels, colours and meaning, defined here and nowhere else. */
import { t } from "@lingui/core/macro";
import type { GpuState } from "@/lib/url/gpu-filters";
import type { StatusLook } from "@/lib/words/workload-state";

export const gpuStateLooks = (): Record<GpuState, StatusLook> => ({
  free: { label: t`Free`, color: "teal", meaning: t`no slice is in use` },
  shared: { label: t`Shared`, color: "indigo", meaning: t`partly held` },
  full: { label: t`Full`, color: "violet", meaning: t`no slice fits` },
  cordoned: { label: t`Cordoned`, color: "gray", meaning: t`takes no new slices` },
  unhealthy: { label: t`Unhealthy`, color: "red", meaning: t`takes no new slices` },
});
