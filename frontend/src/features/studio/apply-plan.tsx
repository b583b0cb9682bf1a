/** Applies a plan that was tried: asks first, with what it changes, who starts and who stops, and what has moved. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, List, Loader, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { mayAudit, sessionQuery } from "@/api/session";
import { planCheckQuery, useApplyPlan } from "@/api/studio/questions";
import type { PlanResult, Question, WhatIf } from "@/api/types";
import { Ago } from "@/components/ago";
import { ConfirmDialog } from "@/components/dialog/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { TextLink } from "@/components/link";
import { WorkloadNames } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { faultLines } from "@/lib/words/refusal";
import classes from "./what-if.module.css";

type Change = PlanResult["objects"][number];

const details = (error: unknown) => faultLines(error instanceof ApiError ? error.errors : []);

/** Once the plan has its whole answer: a button to apply it, or what was applied. */
export function ApplyPlan({ question }: { question: Question }) {
  const [asks, setAsks] = useState(false);
  if (question.state !== "Answered" || question.what_if === null) return null;
  return (
    <Panel title={t`Apply`}>
      {question.applied === null ? (
        <Stack gap="sm">
          <Text size="sm" c="var(--kw-muted)">
            <Trans>
              All changes are made at once, with your rights, unless quotas, queues or objects of the plan
              have changed since it was tried.
            </Trans>
          </Text>
          <Group justify="flex-end">
            <Button variant="light" onClick={() => setAsks(true)}>
              <Trans>Apply …</Trans>
            </Button>
          </Group>
        </Stack>
      ) : (
        <Applied applied={question.applied} at={question.applied_at} />
      )}
      {asks && <ApplyDialog question={question} onClose={() => setAsks(false)} />}
    </Panel>
  );
}

function ApplyDialog({ question, onClose }: { question: Question; onClose: () => void }) {
  const cluster = useCluster();
  const check = useQuery(planCheckQuery(cluster, question.id));
  const apply = useApplyPlan(cluster);
  const name = question.name === "" ? t`this plan` : question.name;
  return (
    <ConfirmDialog
      action={t`Apply`}
      target={name}
      destructive={(question.what_if?.whole?.evictions.count ?? 0) > 0}
      disabled={check.data === undefined}
      pending={apply.isPending}
      error={apply.error === null ? null : { message: apply.error.message, details: details(apply.error) }}
      onConfirm={() => apply.mutate(question.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      {check.isPending && (
        <Group gap="xs" role="status">
          <Loader size="xs" />
          <Text size="sm" c="var(--kw-muted)">
            <Trans>The plan is checked against the present state …</Trans>
          </Text>
        </Group>
      )}
      {check.error !== null && (
        <ErrorState
          title={t`The plan cannot be applied`}
          message={check.error.message}
          details={details(check.error)}
        />
      )}
      {check.data !== undefined && (
        <>
          <div>
            <Text size="sm" fw={600}>
              <Trans>Changes made</Trans>
            </Text>
            <Changes objects={check.data.objects} />
          </div>
          {question.what_if?.whole != null && <Outcome whole={question.what_if.whole} />}
          <Moved moved={check.data.moved} tried={question.tried_at} />
        </>
      )}
    </ConfirmDialog>
  );
}

const actionWords = (): Record<Change["action"], string> => ({
  created: t`created`,
  configured: t`changed`,
  unchanged: t`unchanged`,
  deleted: t`deleted`,
  cancelled: t`cancelled for good`,
  requeued: t`evicted, waits again`,
  prioritized: t`another priority`,
  cordoned: t`cordoned`,
  drained: t`drained`,
  returned: t`in service again`,
});

const keyOf = ({ namespace, name }: Change) => (namespace === "" ? name : `${namespace}/${name}`);

const MAX_LISTED = 20;

/** The objects that the plan changes; of many, the first. */
function Changes({ objects }: { objects: readonly Change[] }) {
  const words = actionWords();
  return (
    <List size="sm" spacing={2}>
      {objects.slice(0, MAX_LISTED).map((change) => (
        <List.Item key={`${change.kind} ${keyOf(change)} ${change.action}`} className={classes.change}>
          {`${change.kind} ${keyOf(change)}: ${words[change.action]}`}
          {change.warnings.map((warning) => (
            <Text key={warning} size="xs" c="var(--kw-muted)">
              {warning}
            </Text>
          ))}
        </List.Item>
      ))}
      {objects.length > MAX_LISTED && <List.Item>{t`and ${objects.length - MAX_LISTED} more`}</List.Item>}
    </List>
  );
}

/** The workloads that start and stop, as the studio found them. */
function Outcome({ whole }: { whole: NonNullable<WhatIf["whole"]> }) {
  const { starts, waits } = whole.effects;
  const lost = whole.evictions;
  const hours = (lost.device_seconds / 3600).toFixed(1);
  return (
    <div>
      <Text size="sm" fw={600}>
        <Trans>Effects, as tried</Trans>
      </Text>
      <List size="sm" spacing={2}>
        <List.Item>
          <WorkloadNames
            text={
              lost.count === 0
                ? t`No workload stops`
                : plural(lost.count, { one: "# workload stops", other: "# workloads stop" })
            }
            count={lost.count}
            workloads={lost.workloads.map(({ workload }) => workload)}
          />
          {lost.device_seconds > 0 && (
            <Text size="xs" c="var(--kw-muted)">{t`${hours} device hours lost`}</Text>
          )}
        </List.Item>
        <List.Item>
          <WorkloadNames
            text={
              starts.count === 0
                ? t`No workload starts`
                : plural(starts.count, { one: "# workload starts", other: "# workloads start" })
            }
            count={starts.count}
            workloads={starts.workloads.map(({ workload }) => workload)}
          />
        </List.Item>
        {waits.count > 0 && (
          <List.Item>
            <WorkloadNames
              text={plural(waits.count, {
                one: "# workload that would start now waits",
                other: "# workloads that would start now wait",
              })}
              count={waits.count}
              workloads={waits.workloads.map(({ workload }) => workload)}
            />
          </List.Item>
        )}
      </List>
      {!whole.effects.complete && (
        <Text size="xs" c="var(--kw-muted)">
          <Trans>Time ran out before everything was tried: there may be more effects.</Trans>
        </Text>
      )}
    </div>
  );
}

/** Changes since the plan was tried: they do not refuse the plan, but its effects may differ. */
function Moved({ moved, tried }: { moved: PlanResult["moved"]; tried: string | null }) {
  const parts = [
    [
      moved.submitted,
      plural(moved.submitted, { one: "# workload submitted", other: "# workloads submitted" }),
    ],
    [moved.started, plural(moved.started, { one: "# workload started", other: "# workloads started" })],
    [moved.ended, plural(moved.ended, { one: "# workload ended", other: "# workloads ended" })],
    [moved.nodes, plural(moved.nodes, { one: "# node changed", other: "# nodes changed" })],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([, text]) => text);
  return (
    <Text size="sm" c="var(--kw-muted)">
      {tried !== null && (
        <>
          <Trans>
            Tried <Ago time={tried} />.
          </Trans>{" "}
        </>
      )}
      {told.length === 0
        ? t`Nothing has changed since.`
        : t`Since then: ${told.join(", ")}. The effects may differ.`}
    </Text>
  );
}

function Applied({ applied, at }: { applied: NonNullable<Question["applied"]>; at: string | null }) {
  const session = useQuery(sessionQuery());
  return (
    <Stack gap="xs">
      <Text size="sm" role="status">
        {at === null ? (
          t`Applied by ${applied.by}.`
        ) : (
          <Trans>
            Applied by {applied.by}, <Ago time={at} />.
          </Trans>
        )}
      </Text>
      <Changes objects={applied.objects} />
      {session.data !== undefined && mayAudit(session.data) && applied.request_id !== "" && (
        <Text size="sm">
          <TextLink to="/audit" search={{ request_id: applied.request_id }}>
            <Trans>Audit records</Trans>
          </TextLink>
        </Text>
      )}
    </Stack>
  );
}
