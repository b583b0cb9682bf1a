/** The page What if: a plan is written, tried on a copy of the cluster, saved by a name and shared by its address. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import {
  Button,
  CopyButton,
  Grid,
  Group,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  UnstyledButton,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { useFieldDocsOf } from "@/api/field-docs";
import { isOpen, questionQuery, useAskWhatIf, useSavePlan } from "@/api/studio/questions";
import type { Question } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { ManifestText } from "@/components/manifest/manifest-text";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { faultLines } from "@/lib/words/refusal";
import { ApplyPlan } from "./apply-plan";
import { examples } from "./examples";
import { PlanAnswers } from "./plan-answers";
import { SavedPlans } from "./saved-plans";
import classes from "./what-if.module.css";

export interface WhatIfPageProps {
  /** The question that the address names. */
  opened: number | undefined;
  onOpen: (question: number | undefined) => void;
}

export function WhatIfPage({ opened, onOpen }: WhatIfPageProps) {
  const question = useQuery({ ...questionQuery(useCluster(), opened ?? 0), enabled: opened !== undefined });
  const data = opened === undefined ? undefined : question.data;
  const [begin, setBegin] = useState("");
  return (
    <>
      <PageHeader
        title={t`What if`}
        facts={
          <Text size="sm" c="var(--kw-muted)">
            <Trans>
              Scheduling cycles on a copy of the cluster show the effects of changes. Nothing is changed until
              you apply the plan.
            </Trans>
          </Text>
        }
      />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 5 }} order={{ base: opened === undefined ? 1 : 2, lg: 1 }}>
          <Stack gap="md">
            <PlanEditor
              key={`plan ${data?.id ?? 0} ${begin}`}
              begin={data?.plan ?? begin}
              beginHours={data?.hours ?? 0}
              onAsked={onOpen}
            />
            {opened !== undefined && (
              <Button variant="subtle" size="xs" onClick={() => onOpen(undefined)}>
                <Trans>New plan</Trans>
              </Button>
            )}
            {data !== undefined && <ApplyPlan key={`apply ${data.id}`} question={data} />}
            {data !== undefined && <Saving key={`name ${data.id}`} question={data} />}
            <SavedPlans onOpen={onOpen} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 7 }} order={{ base: opened === undefined ? 2 : 1, lg: 2 }}>
          {opened !== undefined && <QueryError title={t`This plan cannot be shown`} query={question} />}
          {data !== undefined && <PlanAnswers question={data} />}
          {opened === undefined && <Examples onChoose={setBegin} />}
        </Grid.Col>
      </Grid>
    </>
  );
}

interface PlanEditorProps {
  begin: string;
  beginHours: number;
  onAsked: (question: number) => void;
}

const HOURS = [0, 6, 12, 24];

function PlanEditor({ begin, beginHours, onAsked }: PlanEditorProps) {
  const [text, setText] = useState(begin);
  const [hours, setHours] = useState(beginHours);
  const described = useFieldDocsOf(text);
  const ask = useAskWhatIf(useCluster());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        ask.mutate({ plan: text, hours }, { onSuccess: ({ id }) => onAsked(id) });
      }}
    >
      <Panel title={t`Plan`}>
        <Stack gap="sm">
          <ManifestText
            label={t`Changes`}
            description={t`Manifests, or the sections apply, patch, delete, nodes, end, requeue, priorities and policies, in YAML. All happen at once.`}
            text={text}
            described={described}
            onText={setText}
          />
          <Select
            label={t`Hours ahead`}
            description={t`After the effects: forward runs with run times of similar workloads, which take some seconds more.`}
            data={[...new Set([...HOURS, beginHours])]
              .sort((one, other) => one - other)
              .map((count) => ({
                value: String(count),
                label: count === 0 ? t`None` : plural(count, { one: "# hour", other: "# hours" }),
              }))}
            value={String(hours)}
            allowDeselect={false}
            onChange={(value) => setHours(Number(value))}
          />
          {ask.error !== null && (
            <ErrorState
              title={t`The plan cannot be tried`}
              message={ask.error.message}
              details={faultLines(ask.error instanceof ApiError ? ask.error.errors : [])}
            />
          )}
          <Group justify="flex-end">
            <Button type="submit" loading={ask.isPending} disabled={text.trim() === ""}>
              <Trans>Try</Trans>
            </Button>
          </Group>
        </Stack>
      </Panel>
    </form>
  );
}

/** Plans to begin with, where the answer will be. */
function Examples({ onChoose }: { onChoose: (plan: string) => void }) {
  return (
    <Panel title={t`Start from an example`}>
      <SimpleGrid cols={{ base: 1, sm: 2, xl: 3 }} spacing="sm">
        {examples().map(({ label, plan }) => (
          <UnstyledButton key={label} className={classes.example} onClick={() => onChoose(plan)}>
            <Text size="sm" fw={600}>
              {label}
            </Text>
            <pre>{plan.trim()}</pre>
          </UnstyledButton>
        ))}
      </SimpleGrid>
    </Panel>
  );
}

/** Gives the plan a name, by which it is kept, and copies its address. */
function Saving({ question }: { question: Question }) {
  const [name, setName] = useState(question.name);
  const save = useSavePlan(useCluster());
  const isUnchanged = name.trim() === question.name;
  return (
    <Panel title={t`Save and share`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate({ id: question.id, name: name.trim() });
        }}
      >
        <Stack gap="sm">
          <TextInput
            label={t`Name`}
            description={t`A plan with a name is kept. Users who may read all namespaces can open it by its address.`}
            maxLength={100}
            value={name}
            error={save.error?.message}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Group justify="flex-end" gap="xs">
            {question.name !== "" && (
              <CopyButton value={window.location.href}>
                {({ copied, copy }) => (
                  <Button variant="default" onClick={copy}>
                    {copied ? t`Copied` : t`Copy the link`}
                  </Button>
                )}
              </CopyButton>
            )}
            <Button
              type="submit"
              variant="light"
              loading={save.isPending}
              disabled={isUnchanged || isOpen(question)}
            >
              <Trans>Save</Trans>
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
