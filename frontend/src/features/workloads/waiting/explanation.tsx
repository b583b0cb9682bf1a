/** Why a workload waits, in tables: quota by flavor, nodes and devices by what refuses them, who is ahead, who holds it. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Code, Grid, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import type { Explanation, FlavorVerdict } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { ErrorState } from "@/components/error-state";
import { ClusterQueueLink, KeyedWorkloadLink, NodeLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAmountShort, formatCount } from "@/lib/quantity";
import { formatTimestamp } from "@/lib/time";
import { nearestWords, refusalWords } from "@/lib/words/refusal-words";
import classes from "../workloads.module.css";
import { isOfNodes } from "./state-sentence";

const verdicts = (): Record<FlavorVerdict["rule"], { label: string; color: string }> => ({
  None: { label: t`Fits`, color: "teal" },
  Quota: { label: t`Lacks quota`, color: "yellow" },
  MaximumQuota: { label: t`Exceeds the maximum`, color: "red" },
  FlavorMatch: { label: t`Does not match`, color: "gray" },
  TopologyFlavor: { label: t`Must use one topology`, color: "gray" },
  CoveredResources: { label: t`No quota defined`, color: "red" },
  Topology: { label: t`No room in the topology`, color: "yellow" },
  Devices: { label: t`No devices`, color: "yellow" },
  Nodes: { label: t`No node has room`, color: "yellow" },
  NamespaceQuota: { label: t`ResourceQuota exceeded`, color: "yellow" },
  UserLimit: { label: t`User at the limit`, color: "yellow" },
  PlannedStart: { label: t`Would delay a planned start`, color: "yellow" },
  Reservation: { label: t`Nodes are reserved`, color: "yellow" },
  Queueing: { label: t`Not queued`, color: "gray" },
  Validation: { label: t`Refused`, color: "red" },
  QueueOrder: { label: t`Waits for its turn`, color: "yellow" },
});

/** The rules for which quota lacks: nodes matter only once there is some. */
const QUOTA_RULES: readonly Explanation["rule"][] = ["Quota", "MaximumQuota", "CoveredResources"];

export interface ExplanationTablesProps {
  explanation: Explanation | undefined;
  error: Error | null;
  onRetry: () => void;
}

export function ExplanationTables({ explanation, error, onRetry }: ExplanationTablesProps) {
  if (explanation === undefined) {
    if (error === null) return <Skeleton height={180} />;
    return (
      <ErrorState title={t`The explanation cannot be shown`} message={error.message} onRetry={onRetry} />
    );
  }
  const { flavors, ahead, contenders, queue_holders, workload_holders, victims } = explanation;
  const refusing = flavors.filter(({ nodes, domains }) => nodes !== null || domains > 0);
  const others =
    explanation.factors !== null ||
    explanation.planned_start !== null ||
    explanation.would_delay !== null ||
    [ahead, contenders, queue_holders, workload_holders, victims].some((rows) => rows.length > 0);
  if (flavors.length === 0 && !others) return null;
  const quotaFirst = flavors.length > 0 && QUOTA_RULES.includes(explanation.rule);
  return (
    <Grid gap="md">
      <Grid.Col span={{ base: 12, lg: others ? 7 : 12 }}>
        <Stack gap="md">
          {quotaFirst && <FlavorTable flavors={flavors} folded={false} />}
          {refusing.map((verdict) => (
            <NodeTable
              key={`${verdict.pod_sets.join()} ${verdict.flavor}`}
              verdict={verdict}
              folded={quotaFirst}
            />
          ))}
          {!quotaFirst && flavors.length > 0 && (
            <FlavorTable flavors={flavors} folded={isOfNodes(explanation.rule)} />
          )}
        </Stack>
      </Grid.Col>
      {others && (
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Stack gap="md">
            <Victims victims={victims} />
            <PlannedStart explanation={explanation} />
            <Order explanation={explanation} />
            <Factors factors={explanation.factors} />
            <Holders explanation={explanation} />
          </Stack>
        </Grid.Col>
      )}
    </Grid>
  );
}

function PlainTable({ head, children }: { head: ReactNode; children: ReactNode }) {
  return (
    <WideTable>
      <Table fz="sm" verticalSpacing={5} horizontalSpacing="md" layout="auto">
        <Table.Thead>
          <Table.Tr>{head}</Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </WideTable>
  );
}

function FlavorTable({ flavors, folded }: { flavors: FlavorVerdict[]; folded: boolean }) {
  const groups = new Set(flavors.map(({ pod_sets }) => pod_sets.join(", ")));
  return (
    <CausePanel title={t`Quota, by flavor`} folded={folded}>
      <FlavorRowsTable flavors={flavors} withPodSets={groups.size > 1} />
    </CausePanel>
  );
}

/** `folded`: not the cause, so that it is opened only on demand. */
function CausePanel({ title, folded, children }: { title: string; folded: boolean; children: ReactNode }) {
  const [opened, { toggle }] = useDisclosure(!folded);
  return (
    <Panel
      title={title}
      aside={
        folded && (
          <Button size="compact-xs" variant="subtle" onClick={toggle} aria-expanded={opened}>
            {opened ? <Trans>Hide</Trans> : <Trans>Not a cause (show)</Trans>}
          </Button>
        )
      }
      flush
    >
      {opened && children}
    </Panel>
  );
}

function FlavorRowsTable({ flavors, withPodSets }: { flavors: FlavorVerdict[]; withPodSets: boolean }) {
  return (
    <PlainTable
      head={
        <>
          <Table.Th>
            <Trans>Flavor and resource</Trans>
          </Table.Th>
          <Table.Th ta="right">
            <Trans>Requested</Trans>
          </Table.Th>
          <Table.Th ta="right">
            <Trans>Free</Trans>
          </Table.Th>
          <Table.Th ta="right">
            <Trans>Missing</Trans>
          </Table.Th>
          <Table.Th ta="right" title={t`Used of the ClusterQueue's own quota`}>
            <Trans>Used / quota</Trans>
          </Table.Th>
        </>
      }
    >
      {flavors.map((verdict) => (
        <FlavorRows
          key={`${verdict.pod_sets.join()} ${verdict.flavor}`}
          verdict={verdict}
          withPodSets={withPodSets}
        />
      ))}
    </PlainTable>
  );
}

function FlavorRows({ verdict, withPodSets }: { verdict: FlavorVerdict; withPodSets: boolean }) {
  const { flavor, pod_sets, resources, rule, message } = verdict;
  const shown = rule === "FlavorMatch" || rule === "TopologyFlavor" ? [] : resources;
  return (
    <>
      <Table.Tr className={classes.groupRow}>
        <Table.Td colSpan={5}>
          <span className={classes.groupHead}>
            <b>{flavor}</b>
            {withPodSets && (
              <span className={classes.second}>
                <Trans>for {pod_sets.join(", ")}</Trans>
              </span>
            )}
            <BadgeDot {...verdicts()[rule]} />
          </span>
          {shown.length === 0 && message !== "" && <Text fz="xs">{message}</Text>}
        </Table.Td>
      </Table.Tr>
      {shown.map((need) => {
        const amount = (value: number) => formatAmountShort(need.resource, value);
        return (
          <Table.Tr key={need.resource} data-lacking={need.lacking > 0 || undefined}>
            <Table.Td pl={28}>{need.resource}</Table.Td>
            <Table.Td ta="right">{amount(need.asked)}</Table.Td>
            <Table.Td
              ta="right"
              title={need.borrowable > 0 ? t`${amount(need.borrowable)} of it can be borrowed` : undefined}
            >
              {amount(need.free)}
            </Table.Td>
            <Table.Td ta="right" fw={need.lacking > 0 ? 650 : undefined}>
              {need.asked > need.maximum ? (
                <Text
                  span
                  fz="inherit"
                  c="var(--kw-over)"
                  title={t`At most ${amount(need.maximum)} is available`}
                >
                  {amount(need.lacking)}
                </Text>
              ) : need.lacking > 0 ? (
                amount(need.lacking)
              ) : (
                "–"
              )}
            </Table.Td>
            <Table.Td
              ta="right"
              c="var(--kw-muted)"
              title={
                need.deserved === null
                  ? undefined
                  : t`The ClusterQueue deserves ${amount(need.deserved)} by the cohort's sharing policy`
              }
            >
              {amount(need.used)} / {amount(need.deserved ?? need.nominal)}
            </Table.Td>
          </Table.Tr>
        );
      })}
    </>
  );
}

function NodeTable({ verdict, folded }: { verdict: FlavorVerdict; folded: boolean }) {
  const { nodes, flavor, domains, domains_refused: refused } = verdict;
  return (
    <CausePanel title={t`Nodes and devices, flavor ${flavor}`} folded={folded}>
      {nodes !== null && (
        <>
          <PlainTable
            head={
              <>
                <Table.Th>
                  <Trans>Refused because</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Nodes of {formatCount(nodes.nodes)}</Trans>
                </Table.Th>
                <Table.Th ta="right">
                  <Trans>Devices</Trans>
                </Table.Th>
              </>
            }
          >
            {nodes.refused.map(({ reason, nodes: count, devices }) => (
              <Table.Tr key={reason}>
                <Table.Td>
                  {refusalWords(reason)} <Code fz="xs">{reason}</Code>
                </Table.Td>
                <Table.Td ta="right">{formatCount(count)}</Table.Td>
                <Table.Td ta="right">{devices === 0 ? "–" : formatCount(devices)}</Table.Td>
              </Table.Tr>
            ))}
          </PlainTable>
          {nodes.nearest_node !== null && (
            <Text fz="sm" px="md" py={8}>
              <Trans>
                Nearest: <NodeLink name={nodes.nearest_node} inText /> ({nearestWords(nodes.nearest_reason)})
              </Trans>
            </Text>
          )}
        </>
      )}
      {Object.entries(refused).map(([reason, count]) => (
        <Text key={reason} fz="sm" px="md" py={6}>
          <Trans>
            {formatCount(count)} of {formatCount(domains)} topology domains: {reason}
          </Trans>
        </Text>
      ))}
    </CausePanel>
  );
}

function Victims({ victims }: { victims: Explanation["victims"] }) {
  if (victims.length === 0) return null;
  return (
    <Panel title={t`Workloads that would be preempted`} flush>
      <OtherWorkloads others={victims} />
    </Panel>
  );
}

interface OtherWorkload {
  workload: Explanation["victims"][number]["workload"];
  cluster_queue: string;
  priority: number;
  /** Why it is preempted. */
  reason?: string;
}

function OtherWorkloads({ others }: { others: OtherWorkload[] }) {
  return (
    <PlainTable
      head={
        <>
          <Table.Th>
            <Trans>Workload</Trans>
          </Table.Th>
          <Table.Th>
            <Trans>Queue</Trans>
          </Table.Th>
          <Table.Th ta="right">
            <Trans>Priority</Trans>
          </Table.Th>
        </>
      }
    >
      {others.map((other, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: those of other tenants have no name
        <Table.Tr key={place} title={other.reason}>
          <Table.Td>
            <KeyedWorkloadLink workload={other.workload} />
          </Table.Td>
          <Table.Td>
            <ClusterQueueLink name={other.cluster_queue} />
          </Table.Td>
          <Table.Td ta="right">{other.priority}</Table.Td>
        </Table.Tr>
      ))}
    </PlainTable>
  );
}

function Order({ explanation }: { explanation: Explanation }) {
  const { ahead, contenders, position, waiting, strict } = explanation;
  if (ahead.length === 0 && contenders.length === 0) return null;
  const more = position - 1 - ahead.length;
  return (
    <Panel title={t`Workloads ahead of it`} flush>
      <Text fz="sm" px="md" pb={6} c="var(--kw-muted)">
        <Trans>
          Position {formatCount(position)} of {formatCount(waiting)} in its queue.
        </Trans>{" "}
        {strict
          ? t`StrictFIFO: the workloads ahead of it start first.`
          : t`BestEffortFIFO: it can start before workloads ahead of it that do not fit.`}
      </Text>
      <OtherWorkloads others={[...ahead, ...contenders]} />
      {more > 0 && (
        <Text fz="xs" px="md" py={6} c="var(--kw-muted)">
          <Trans>and {formatCount(more)} more in its queue</Trans>
        </Text>
      )}
    </Panel>
  );
}

/** The planned start of a queue with backfill: its own, or the one that it would delay. */
function PlannedStart({ explanation }: { explanation: Explanation }) {
  const plan = explanation.planned_start ?? explanation.would_delay;
  if (plan === null) return null;
  const own = explanation.planned_start !== null;
  return (
    <Panel title={own ? t`Its planned start` : t`The planned start that it would delay`} flush>
      <PlainTable
        head={
          <>
            <Table.Th>
              <Trans>Flavor</Trans>
            </Table.Th>
            <Table.Th>
              <Trans>Resource</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Amount</Trans>
            </Table.Th>
          </>
        }
      >
        {plan.quota.map(({ flavor, resource, amount }) => (
          <Table.Tr key={`${flavor} ${resource}`}>
            <Table.Td>{flavor}</Table.Td>
            <Table.Td>{resource}</Table.Td>
            <Table.Td ta="right">{formatAmountShort(resource, amount)}</Table.Td>
          </Table.Tr>
        ))}
      </PlainTable>
      <Text fz="sm" px="md" pt={6}>
        {formatTimestamp(plan.starts_at)}
        {!own && plan.workload !== "" && (
          <>
            {" · "}
            <KeyedWorkloadLink workload={plan.workload} />
          </>
        )}
      </Text>
      <Text fz="xs" px="md" py={6} c="var(--kw-muted)">
        {own
          ? t`Computed from the declared time limits of the workloads that hold quota. Later workloads may not delay it.`
          : t`A workload may overtake it if its time limit ends earlier, or if enough quota remains.`}
      </Text>
    </Panel>
  );
}

/** The factors of a multifactor priority; factors of zero are left out. */
function Factors({ factors }: { factors: Explanation["factors"] }) {
  if (factors === null) return null;
  const parts: [string, number][] = [
    [t`Age`, factors.age],
    [t`Fair share`, factors.fair_share],
    [t`Job size`, factors.job_size],
    [t`Priority of the ClusterQueue`, factors.partition],
    [t`Priority class`, factors.qos],
    ...Object.entries(factors.resources),
    [t`Nice`, -factors.nice],
  ];
  const shown = parts.filter(([, part]) => Math.round(part) !== 0);
  return (
    <Panel title={t`Multifactor priority ${formatCount(factors.priority)}`} flush>
      <PlainTable
        head={
          <>
            <Table.Th>
              <Trans>Factor</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Part of the priority</Trans>
            </Table.Th>
          </>
        }
      >
        {shown.map(([name, part]) => (
          <Table.Tr key={name}>
            <Table.Td>{name}</Table.Td>
            <Table.Td ta="right">{formatCount(Math.round(part))}</Table.Td>
          </Table.Tr>
        ))}
      </PlainTable>
      <Text fz="xs" px="md" py={6} c="var(--kw-muted)">
        <Trans>
          Computed every five minutes. It orders the queue; preemption uses only the priority class.
        </Trans>
      </Text>
    </Panel>
  );
}

function Holders({ explanation }: { explanation: Explanation }) {
  const { queue_holders: queues, workload_holders: workloads } = explanation;
  const keys = [...new Set(queues.map(({ flavor, resource }) => t`${resource} in ${flavor}`))];
  return keys.map((key) => (
    <Panel key={key} title={t`Holders of ${key}`} flush>
      <PlainTable
        head={
          <>
            <Table.Th>
              <Trans>Queue or workload</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Holds</Trans>
            </Table.Th>
            <Table.Th ta="right">
              <Trans>Borrowed</Trans>
            </Table.Th>
          </>
        }
      >
        {queues
          .filter(({ flavor, resource }) => `${resource} in ${flavor}` === key)
          .map((row, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: those that are not in reach have no name
            <Table.Tr key={`queue ${place}`}>
              <Table.Td fw={550}>
                <ClusterQueueLink name={row.cluster_queue} />
              </Table.Td>
              <Table.Td ta="right">{formatAmountShort(row.resource, row.used)}</Table.Td>
              <Table.Td ta="right">
                {row.borrowed > 0 ? formatAmountShort(row.resource, row.borrowed) : "–"}
              </Table.Td>
            </Table.Tr>
          ))}
        {workloads
          .filter(({ flavor, resource }) => `${resource} in ${flavor}` === key)
          .map((row, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: those of other tenants have no name
            <Table.Tr key={`workload ${place}`}>
              <Table.Td pl={28}>
                <KeyedWorkloadLink workload={row.workload} />
              </Table.Td>
              <Table.Td ta="right">{formatAmountShort(row.resource, row.amount)}</Table.Td>
              <Table.Td />
            </Table.Tr>
          ))}
      </PlainTable>
    </Panel>
  ));
}
