/** One flow: the graph of its jobs, and each job with its state, its workload and the reason why it waits. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Skeleton, Stack, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { type JobFlow, jobFlowQuery } from "@/api/jobs/job-flows";
import { Ago } from "@/components/ago";
import { BackLink } from "@/components/back-link";
import { BadgeDot } from "@/components/badge-dot";
import { EmptyState } from "@/components/empty-state";
import { LocalQueueLink } from "@/components/object-links";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { WideTable } from "@/components/table/wide-table";
import { FlowGraph, JobName } from "./flow-graph";
import { flowLook, jobLook, queuesOf, stepsText, submittedAt, whyItWaits } from "./flow-words";
import classes from "./flows.module.css";

export function FlowPage({ namespace, name }: { namespace: string; name: string }) {
  const query = useQuery(jobFlowQuery(useCluster(), { namespace, name }));
  const flow = query.data;
  return (
    <>
      <PageHeader
        title={`${namespace}/${name}`}
        trail={
          <BackLink to="/flows">
            <Trans>Flows</Trans>
          </BackLink>
        }
        facts={flow != null && <Facts flow={flow} />}
      />
      {query.isPending && <Skeleton height={240} />}
      <QueryError title={t`The flow ${name} cannot be shown`} query={query} />
      {flow === null && (
        <Panel>
          <EmptyState icon="flows" title={t`No such flow`}>
            <Trans>The cluster has no flow of this name, or its last job was deleted.</Trans>
          </EmptyState>
        </Panel>
      )}
      {flow != null && (
        <Stack gap="md">
          <Panel title={t`Order`}>
            <FlowGraph flow={flow} />
          </Panel>
          <Jobs flow={flow} />
        </Stack>
      )}
    </>
  );
}

function Facts({ flow }: { flow: JobFlow }) {
  return (
    <Group gap="xs" c="var(--kw-muted)" fz="sm">
      <BadgeDot {...flowLook(flow.phase)} />
      <span>{stepsText(flow)}</span>
      {queuesOf(flow).map((queue) => (
        <LocalQueueLink key={queue} namespace={flow.namespace} name={queue} />
      ))}
      <span>
        <Trans>
          submitted <Ago time={submittedAt(flow)} />
        </Trans>
      </span>
      {flow.job_retain_policy === "delete" && (
        <span>
          <Trans>its jobs are deleted when all have succeeded</Trans>
        </span>
      )}
    </Group>
  );
}

function Jobs({ flow }: { flow: JobFlow }) {
  return (
    <Panel flush>
      <WideTable blocks>
        <Table fz="sm" verticalSpacing={8} horizontalSpacing="md" layout="auto" aria-label={t`Jobs`}>
          <Table.Thead>
            <Table.Tr>
              {[t`Job`, t`Kind`, t`State`, t`Starts after`, t`Why it waits`, t`Ended`].map((title) => (
                <Table.Th key={title}>{title}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {flow.jobs.map((job) => (
              <Table.Tr key={`${job.kind} ${job.name}`}>
                <Table.Td data-wide>
                  <JobName namespace={flow.namespace} job={job} />
                </Table.Td>
                <Table.Td data-label={t`Kind`}>{job.kind}</Table.Td>
                <Table.Td data-label={t`State`}>
                  <BadgeDot {...jobLook(job.phase)} />
                </Table.Td>
                <Table.Td
                  data-label={t`Starts after`}
                  data-none={job.after.length === 0 || undefined}
                  data-wide
                >
                  {job.after.join(", ")}
                </Table.Td>
                <Table.Td
                  data-label={t`Why it waits`}
                  data-none={whyItWaits(flow, job) === "" || undefined}
                  data-wide
                >
                  {whyItWaits(flow, job)}
                </Table.Td>
                <Table.Td
                  className={classes.whole}
                  data-label={t`Ended`}
                  data-none={job.finished_at === null || undefined}
                >
                  <Ago time={job.finished_at} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}
