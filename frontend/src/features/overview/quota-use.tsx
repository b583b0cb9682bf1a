/** How much of all quota is used, by resource. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Text } from "@mantine/core";
import { useMemo } from "react";
import { useLive } from "@/api/cluster";
import { EmptyState } from "@/components/empty-state";
import { Meter } from "@/components/figures/meter";
import { TextLink } from "@/components/link";
import { Panel } from "@/components/panel";
import { formatAmountShort, formatCount, formatShare } from "@/lib/quantity";
import { quotaByResource } from "./summary";

/** The height of the lists beside it. */
const MOST = 5;

export function QuotaUse() {
  const queues = useLive((live) => live.data?.cluster_queues);
  const quotas = useMemo(() => (queues === undefined ? null : quotaByResource(queues)), [queues]);
  const more = Math.max(0, (quotas?.length ?? 0) - MOST);
  return (
    <Panel
      title={t`Quota in use, all queues`}
      aside={
        <TextLink to="/queues" fz="sm">
          {more > 0 ? <Trans>and {formatCount(more)} more</Trans> : <Trans>All queues</Trans>}
        </TextLink>
      }
    >
      {quotas === null && <Skeleton height={200} />}
      {quotas?.length === 0 && (
        <EmptyState icon="queues" title={t`No quota yet`}>
          <Trans>Quota use appears here once a ClusterQueue with resource groups exists.</Trans>
        </EmptyState>
      )}
      <Stack gap={12} data-live>
        {quotas?.slice(0, MOST).map(({ resource, nominal, used }) => {
          const amounts = t`${formatAmountShort(resource, used)} of ${formatAmountShort(resource, nominal)}`;
          return (
            <div key={resource}>
              <Group justify="space-between" gap="xs" mb={4} wrap="nowrap">
                <Text fz="sm" fw={550} truncate>
                  {resource}
                </Text>
                <Text fz="sm" className="kw-number" style={{ whiteSpace: "nowrap" }}>
                  {formatShare(used, nominal)}
                </Text>
              </Group>
              <Meter
                label={`${resource}: ${amounts}`}
                total={nominal}
                segments={[{ value: used, color: "var(--kw-used)", label: amounts }]}
              />
              <Text fz="xs" c="var(--kw-muted)" className="kw-number" mt={2}>
                {amounts}
              </Text>
            </div>
          );
        })}
      </Stack>
    </Panel>
  );
}
