/** The columns of the list of ClusterQueues of several clusters. */
import { t } from "@lingui/core/macro";
import { Stack, Text } from "@mantine/core";
import type { ClusterQueue } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { AmountMeter } from "@/components/figures/amount-meter";
import { ClusterQueueLink, CohortLink } from "@/components/object-links";
import type { DataColumn } from "@/components/table/data-table";
import { ownedQuota } from "@/lib/owned-quota";
import { formatCount } from "@/lib/quantity";
import { formatWeightedShare, sortQuotas } from "./quota";

export const QUEUE_COLUMNS: DataColumn<ClusterQueue>[] = [
  {
    id: "name",
    header: () => t`ClusterQueue`,
    cell: ({ row: { original } }) => <ClusterQueueLink name={original.name} fw={550} inRow />,
  },
  {
    id: "cohort",
    header: () => t`Cohort`,
    meta: { width: "14%", hideBelow: 760 },
    cell: ({ row: { original } }) =>
      original.cohort === "" ? "–" : <CohortLink name={original.cohort} inRow />,
  },
  {
    id: "state",
    header: () => t`State`,
    meta: { width: "112px", hideBelow: 560 },
    cell: ({ row: { original } }) => <Activity queue={original} />,
  },
  {
    id: "pending",
    header: () => t`Pending`,
    meta: { width: "84px", align: "right" },
    cell: ({ row: { original } }) => formatCount(original.pending),
  },
  {
    id: "admitted",
    header: () => t`Admitted`,
    meta: { width: "84px", align: "right", hideBelow: 560 },
    cell: ({ row: { original } }) => formatCount(original.admitted),
  },
  {
    id: "share",
    header: () => t`Share`,
    meta: { width: "76px", align: "right", hideBelow: 1000 },
    cell: ({ row: { original } }) => `${formatWeightedShare(original.weighted_share)} ‰`,
  },
  {
    id: "scarcest",
    header: () => t`Scarcest resource`,
    meta: { width: "20%", hideBelow: 1000 },
    cell: ({ row: { original } }) => <ScarcestQuota queue={original} />,
  },
];

function Activity({ queue: { conditions } }: { queue: ClusterQueue }) {
  const active = conditions.find(({ type }) => type === "Active");
  return active?.status === "False" ? (
    <BadgeDot label={t`Not active`} color="orange" hint={active.message} />
  ) : (
    <BadgeDot label={t`Active`} color="teal" />
  );
}

function ScarcestQuota({ queue }: { queue: ClusterQueue }) {
  const [scarcest] = sortQuotas(queue.usage);
  if (scarcest === undefined) return "–";
  const { flavor, resource, used } = scarcest;
  return (
    <Stack gap={0} title={t`Most used quota: ${resource} in ${flavor}`}>
      <Text span fz="xs" c="var(--kw-muted)">
        {resource} · {flavor}
      </Text>
      <AmountMeter resource={resource} used={used} total={ownedQuota(scarcest)} />
    </Stack>
  );
}
