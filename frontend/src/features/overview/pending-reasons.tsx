/** Why workloads wait, by reason. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { overviewQuery } from "@/api/overview";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { useFirstRead } from "@/lib/first-read";
import { formatCount } from "@/lib/quantity";
import { explainPendingReason } from "@/lib/words/pending-reason";

export function PendingReasons() {
  const cluster = useCluster();
  const overview = useQuery(overviewQuery(cluster));
  const first = useFirstRead(overview);
  const reasons = overview.data?.pending_by_reason;
  const total = reasons?.reduce((sum, { count }) => sum + count, 0) ?? 0;
  return (
    <Panel
      title={t`Why workloads wait`}
      aside={
        <TextLink to="/workloads" search={{ state: "Pending" }} fz="sm">
          <Trans>All pending</Trans>
        </TextLink>
      }
    >
      {first.waits && <Skeleton height={160} />}
      {first.error !== null && (
        <QueryError
          title={t`The reasons cannot be shown`}
          query={{ error: first.error, refetch: overview.refetch }}
        />
      )}
      {reasons !== undefined && total === 0 && (
        <EmptyState icon="check" title={t`No workload waits`}>
          <Trans>Every submitted workload has been admitted or has finished.</Trans>
        </EmptyState>
      )}
      <Stack gap={12}>
        {reasons
          ?.filter(({ count }) => count > 0)
          .toSorted((a, b) => b.count - a.count)
          .map(({ reason, count }) => (
            <div key={reason}>
              <Group justify="space-between" gap="xs" mb={4} wrap="nowrap">
                <TextLink
                  to="/workloads"
                  search={{ state: "Pending", ...(reason === "" ? {} : { reason }) }}
                  fz="sm"
                  title={reason}
                  style={{ minWidth: 0 }}
                >
                  {explainPendingReason(reason || "PendingEvaluation") || reason}
                </TextLink>
                <Text fz="sm" fw={600} className="kw-number">
                  {formatCount(count)}
                </Text>
              </Group>
              <Meter
                label={t`${reason}: ${count} of ${total}`}
                total={total}
                segments={[{ value: count, color: "var(--mantine-color-yellow-6)", label: reason }]}
              />
            </div>
          ))}
      </Stack>
    </Panel>
  );
}
