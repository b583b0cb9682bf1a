/** The jobs that a workload starts after, in words. */

import { t } from "@lingui/core/macro";

const GATED = "Admission is gated by: ";
const JOB_GATE = "job.kueueweb.io/";

/** `jobs` as in `kueueweb.io/start-after`: names, some after `afterany:` or `after:`. */
export function startsAfter(jobs: readonly string[]): string {
  const names = jobs.map((job) => job.slice(job.lastIndexOf(":") + 1));
  return t`It starts after ${names.join(", ")}.`;
}

/** The sentence for a message that names the gates of jobs and no other; null for any other message. */
export function startsAfterGates(message: string): string | null {
  if (!message.startsWith(GATED)) return null;
  const gates = message.slice(GATED.length).replace(/\.$/, "").split(",");
  if (!gates.every((gate) => gate.startsWith(JOB_GATE))) return null;
  return startsAfter(gates.map((gate) => gate.slice(JOB_GATE.length)));
}
