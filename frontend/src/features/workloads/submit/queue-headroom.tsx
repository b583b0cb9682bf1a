/** The amounts that the user may still use in the chosen LocalQueue, by its free quota and the limits of the user. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { headroomQuery } from "@/api/queues";
import type { Headroom } from "@/api/types";
import { QueryError } from "@/components/query-error";
import { formatAmountShort, formatCount } from "@/lib/quantity";
import type { QueueName } from "./queue-choice";

type ResourceHeadroom = Headroom["resources"][number];

export function QueueHeadroom({ queue }: { queue: QueueName }) {
  const headroom = useQuery(headroomQuery(useCluster(), queue));
  if (headroom.data === undefined)
    return <QueryError title={t`Your remaining quota cannot be shown`} query={headroom} />;
  const { active, message, workloads, resources } = headroom.data;
  return (
    <div>
      <Text size="xs" fw={550}>
        <Trans>Your remaining quota here</Trans>
      </Text>
      {!active && (
        <Text size="xs" c="var(--mantine-color-error)">
          <Trans>The queue starts no workload now: {message}</Trans>
        </Text>
      )}
      <Group gap="4px 24px" align="flex-start">
        {workloads !== null && (
          <Amount name={t`workloads`} text={formatCount(workloads)} by={t`by your limit`} />
        )}
        {resources.map((row) => (
          <Amount
            key={row.resource}
            name={row.resource}
            text={formatAmountShort(row.resource, row.free)}
            by={boundOf(row)}
          />
        ))}
      </Group>
    </div>
  );
}

function Amount({ name, text, by }: { name: string; text: string; by: string }) {
  return (
    <Text size="xs" component="div">
      {name} <span className="kw-number">{text}</span>
      {by !== "" && (
        <Text size="xs" c="var(--kw-muted)" component="div">
          {by}
        </Text>
      )}
    </Text>
  );
}

/** The bound of the amount: the user's limit, or the free quota of several flavors, which one pod cannot join. */
export function boundOf({ resource, quota_free: quota, user_free: user, flavors }: ResourceHeadroom): string {
  if (user !== null && user < quota) return t`by your limit`;
  const free = flavors.filter((flavor) => flavor.free > 0);
  if (free.length < 2) return "";
  return free.map((each) => `${each.flavor} ${formatAmountShort(resource, each.free)}`).join(", ");
}
