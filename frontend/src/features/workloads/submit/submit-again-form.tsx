/** The form of a submission that starts from the job of a workload. */
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { objectQuery } from "@/api/manifests";
import type { Workload } from "@/api/types";
import { againText } from "./job-again";
import { SubmitModal } from "./submit-modal";

export function SubmitAgainForm({ workload, onClose }: { workload: Workload; onClose: () => void }) {
  const { namespace, local_queue, owner } = workload;
  const reference = { kind: owner?.kind ?? "Workload", namespace, name: owner?.name ?? workload.name };
  const job = useQuery(objectQuery(useCluster(), reference));
  const again = {
    label: `${reference.kind} ${reference.name}`,
    queue: { namespace, name: local_queue },
    text: job.data === undefined ? null : againText(job.data.manifest),
    error: job.error,
  };
  return <SubmitModal opened onClose={onClose} again={again} />;
}
