/** The columns of the list of clusters. */
import { t } from "@lingui/core/macro";
import { Group, Stack, Text } from "@mantine/core";
import type { ClusterOverview } from "@/api/types";
import { Ago } from "@/components/ago";
import { BadgeDot } from "@/components/badge-dot";
import { AmountMeter } from "@/components/figures/amount-meter";
import { TextLink } from "@/components/link";
import type { DataColumn } from "@/components/table/data-table";
import { formatCount } from "@/lib/quantity";
import { formatDuration } from "@/lib/time";
import { clusterModes } from "@/lib/words/cluster-mode";
import { clusterProblems } from "@/lib/words/cluster-problem";

const GPUS = "devices";

export const CLUSTER_COLUMNS: DataColumn<ClusterOverview>[] = [
  {
    id: "cluster",
    header: () => t`Cluster`,
    cell: ({ row: { original } }) => (
      <TextLink to="/" search={{ cluster: original.cluster }} fz="inherit" fw={550} tabIndex={-1}>
        {original.cluster}
      </TextLink>
    ),
  },
  {
    id: "mode",
    header: () => t`Mode`,
    meta: { width: "120px" },
    cell: ({ row: { original } }) => {
      const { label, color, meaning } = clusterModes()[original.mode];
      return <BadgeDot label={label} color={color} hint={meaning} />;
    },
  },
  {
    id: "health",
    header: () => t`Health`,
    meta: { width: "24%" },
    cell: ({ row: { original } }) => <Health line={original} />,
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
    id: "gpus",
    header: () => t`GPUs in use`,
    meta: { width: "12%", hideBelow: 760 },
    cell: ({ row: { original } }) =>
      original.devices === 0 ? (
        "–"
      ) : (
        <AmountMeter resource={GPUS} used={original.devices_in_use} total={original.devices} />
      ),
  },
  {
    id: "scarcest",
    header: () => t`Scarcest resource`,
    meta: { width: "20%", hideBelow: 1000 },
    cell: ({ row: { original } }) => <ScarcestQuota {...original} />,
  },
];

function Health({ line: { problems, last_event_at: heard, push } }: { line: ClusterOverview }) {
  if (problems.length === 0) {
    return (
      <Group gap={6} wrap="nowrap">
        <BadgeDot label={t`Healthy`} color="teal" />
        <Text span fz="xs" c="var(--kw-muted)">
          <Ago time={heard} short />
        </Text>
      </Group>
    );
  }
  const words = clusterProblems();
  const lag = formatDuration(push.lag_seconds);
  const [first] = problems;
  if (first === undefined) return null;
  const others = problems.length - 1;
  const { label, meaning } = words[first.reason];
  const all = problems.map(({ reason }) => words[reason].meaning).join(" ");
  return (
    <Group gap={6} wrap="nowrap">
      <BadgeDot label={label} color="orange" hint={others === 0 ? meaning : all} />
      <Text span fz="xs" c="var(--kw-muted)">
        {first.reason === "PushLags" ? lag : others > 0 ? t`and ${others} more` : null}
      </Text>
    </Group>
  );
}

function ScarcestQuota({ scarcest }: Pick<ClusterOverview, "scarcest">) {
  if (scarcest === null) return "–";
  const { flavor, resource, nominal, used } = scarcest;
  return (
    <Stack gap={0} title={t`Most used quota: ${resource} in ${flavor}`}>
      <Text span fz="xs" c="var(--kw-muted)">
        {resource} · {flavor}
      </Text>
      <AmountMeter resource={resource} used={used} total={nominal} />
    </Stack>
  );
}
