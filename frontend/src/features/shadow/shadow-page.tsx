/** How our decisions compare with those of the scheduler that runs the cluster: over time, and one by one. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { useCluster, useClusterOf, useInCluster, useIsSeveral } from "@/api/cluster";
import { shadowDifferencesQuery, shadowQuery } from "@/api/shadow";
import type { Shadow, ShadowDifference } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { Stat } from "@/components/figures/stat";
import { TextLink } from "@/components/link";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { formatCount } from "@/lib/quantity";
import { formatMinute } from "@/lib/time";
import { SHADOW_COLUMNS } from "./shadow-columns";

const TimeSeries = lazy(async () => ({
  default: (await import("@/components/figures/time-series")).TimeSeries,
}));

const HOURS = 24;
const RENEW_MS = 15_000;

export function ShadowPage() {
  return (
    <>
      <PageHeader title={t`Shadow`} facts={t`Decisions of kueueweb's scheduler in the last 24 hours`} />
      <Stack gap="md">
        <Agreement />
        <Differences />
      </Stack>
    </>
  );
}

function Agreement() {
  const several = useIsSeveral();
  const { data } = useQuery(shadowQuery(useCluster(), HOURS));
  if (data === undefined) return null;
  const { totals } = data;
  const agreed = formatCount(totals.agreed);
  const decisions = formatCount(totals.agreed + totals.differed);
  const worst = mostDifferences(data.points);
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Stat
          label={t`Agreement`}
          value={percent(data.agreement)}
          note={
            totals.out_of_turn === 0
              ? t`${agreed} of ${decisions} decisions`
              : t`${agreed} of ${decisions} decisions, ${formatCount(totals.out_of_turn)} out of turn`
          }
        />
        <Stat
          label={t`Started`}
          value={`${formatCount(totals.our_reservations)} / ${formatCount(totals.their_reservations)}`}
          note={t`by kueueweb / by the cluster's scheduler`}
        />
        <Stat
          label={t`Preempted`}
          value={`${formatCount(totals.our_preemptions)} / ${formatCount(totals.their_preemptions)}`}
          note={t`by kueueweb / by the cluster's scheduler`}
        />
      </SimpleGrid>
      {several && <AgreementOfClusters clusters={data.clusters} />}
      {data.points.length > 1 && (
        <Panel title={t`Agreement over time`} aside={worst !== null && <Worst {...worst} />}>
          <Suspense>
            <TimeSeries
              label={t`Agreement over time`}
              {...agreementOverTime(data)}
              format={percent}
              atLeast={1}
            />
          </Suspense>
        </Panel>
      )}
    </>
  );
}

type Point = Shadow["points"][number];

/** The hour with the most differences; null where there was none. */
export function mostDifferences(points: readonly Point[]): Point | null {
  return points.reduce<Point | null>(
    (worst, point) => (point.differed > (worst?.differed ?? 0) ? point : worst),
    null,
  );
}

function Worst({ at, differed }: Point) {
  return (
    <Text fz="xs" c="var(--kw-muted)">
      {t`Most differences in an hour: ${formatCount(differed)}, at ${formatMinute(at)}`}
    </Text>
  );
}

/** A line for each cluster in which something was compared. */
function AgreementOfClusters({ clusters }: Pick<Shadow, "clusters">) {
  const compared = clusters.filter(({ agreement }) => agreement !== null);
  if (compared.length === 0) return null;
  return (
    <Panel title={t`In each cluster`} flush>
      <Table verticalSpacing={5}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t`Cluster`}</Table.Th>
            <Table.Th ta="right">{t`Agreement`}</Table.Th>
            <Table.Th ta="right">{t`Decisions`}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {compared.map(({ cluster, agreement, totals }) => (
            <Table.Tr key={cluster}>
              <Table.Td>
                <TextLink to="/shadow" search={{ cluster }} fz="inherit">
                  {cluster}
                </TextLink>
              </Table.Td>
              <Table.Td ta="right">{percent(agreement)}</Table.Td>
              <Table.Td ta="right">{formatCount(totals.agreed + totals.differed)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Panel>
  );
}

/** The share that agreed at each point in time. */
export function agreementOverTime({ points }: Pick<Shadow, "points">) {
  const values = points.map(({ agreed, differed }) =>
    agreed + differed === 0 ? null : agreed / (agreed + differed),
  );
  return {
    times: points.map(({ at }) => Date.parse(at) / 1000),
    lines: [{ label: t`Agreement`, color: "var(--kw-used)", values, fill: true }],
    version: points,
  };
}

function percent(share: number | null): string {
  return share === null ? "–" : `${(100 * share).toFixed(1)} %`;
}

const clusterOfRow = ({ cluster }: ShadowDifference) => cluster;

function Differences() {
  const navigate = useNavigate();
  const inCluster = useInCluster();
  const list = useInfiniteQuery({
    ...shadowDifferencesQuery(useCluster()),
    refetchInterval: renewTop(RENEW_MS),
  });
  return (
    <PagedTable
      label={t`Differences`}
      list={list}
      columns={SHADOW_COLUMNS}
      rowKey={(row) => String(row.id)}
      onOpen={({ cluster, namespace, workload_name: name }) =>
        void navigate({
          to: "/workloads/$namespace/$name",
          params: { namespace, name },
          ...inCluster({ cluster }),
        })
      }
      clusterOf={useClusterOf(clusterOfRow)}
      empty={
        <EmptyState icon="decisions" title={t`No difference`}>
          <Trans>
            Each workload that only one of the two schedulers would have started or preempted is listed here
            with the reasons of both. Comparison needs a cluster in mode shadow.
          </Trans>
        </EmptyState>
      }
    />
  );
}
