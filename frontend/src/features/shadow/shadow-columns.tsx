/** The columns of what two schedulers made of one workload. */
import { t } from "@lingui/core/macro";
import { Tooltip } from "@mantine/core";
import type { ShadowChoice, ShadowDifference } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { WorkloadLink } from "@/components/object-links";
import { ageColumn } from "@/components/table/columns";
import type { DataColumn } from "@/components/table/data-table";
import classes from "./shadow.module.css";

const verdicts = (): Record<ShadowDifference["verdict"], { label: string; color: string; hint: string }> => ({
  OnlyTheirs: {
    label: t`Only by the cluster's scheduler`,
    color: "orange",
    hint: t`kueueweb would not have made this decision.`,
  },
  OnlyOurs: {
    label: t`Only ours`,
    color: "blue",
    hint: t`The cluster's scheduler did not make this decision.`,
  },
  OtherFlavors: {
    label: t`Different flavors`,
    color: "grape",
    hint: t`Both gave it quota, in different flavors.`,
  },
});

const acts = (): Record<ShadowChoice["act"], string> => ({
  Reserve: t`Gets quota`,
  Preempt: t`Is preempted`,
  Wait: t`Waits`,
});

/** A scheduler's decision on the workload, in a sentence. */
export function choiceInWords({ act, cluster_queue: queue, flavors, reason, message }: ShadowChoice): string {
  const given = flavors
    .map(
      ({ name, count, flavors: found }) =>
        `${name} (${count}): ${[...new Set(Object.values(found))].join(", ")}`,
    )
    .join("; ");
  const what = queue === "" ? acts()[act] : t`${acts()[act]} in ${queue}`;
  const why = message || reason;
  return `${what}${given === "" ? "" : `, ${given}`}${why === "" ? "" : `: ${why}`}`;
}

function Choice({ who, choice }: { who: string; choice: ShadowChoice }) {
  const words = choiceInWords(choice);
  return (
    <Tooltip label={words} multiline maw={480} openDelay={400}>
      <span>
        <span className={classes.who}>{who}: </span>
        {words}
      </span>
    </Tooltip>
  );
}

export const SHADOW_COLUMNS: DataColumn<ShadowDifference>[] = [
  ageColumn((row) => row.at, { hideBelow: 560, below: 4 }),
  {
    id: "verdict",
    header: () => t`Verdict`,
    meta: { width: "164px", hideBelow: 560, below: 1 },
    cell: ({ row: { original } }) => <BadgeDot {...verdicts()[original.verdict]} />,
  },
  {
    id: "workload",
    header: () => t`Workload`,
    cell: ({ row: { original } }) => (
      <WorkloadLink namespace={original.namespace} name={original.workload_name} inRow>
        <MiddleEllipsis text={`${original.namespace}/${original.workload_name}`} />
      </WorkloadLink>
    ),
  },
  {
    id: "theirs",
    header: () => t`The cluster's scheduler`,
    meta: { width: "29%", hideBelow: 760, below: 3 },
    cell: ({ row: { original } }) => <Choice who={t`The cluster's`} choice={original.theirs} />,
  },
  {
    id: "ours",
    header: () => t`Ours`,
    meta: { width: "29%", hideBelow: 760, below: 2 },
    cell: ({ row: { original } }) => <Choice who={t`Ours`} choice={original.ours} />,
  },
];
