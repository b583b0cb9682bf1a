/** Submits manifests: checked by the server first if wanted, and every fault named where it stands. */
import { Alert, Button, Group, List, Modal, Select, Skeleton, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { useApplyManifests } from "@/api/manifests";
import { localQueuesQuery } from "@/api/queues";
import { maySubmit, sessionQuery } from "@/api/session";
import type { ApplyResult, LocalQueue } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { TextLink } from "@/components/link";
import { faultLines } from "@/lib/words/refusal";
import { TEMPLATES, templateText } from "./manifest-templates";

export function SubmitModal({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Submit workloads" size="xl">
      {opened && <SubmitContent onDone={onClose} />}
    </Modal>
  );
}

function SubmitContent({ onDone }: { onDone: () => void }) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const queues = useQuery(localQueuesQuery(useCluster()));
  if (queues.isPending) return <Skeleton height={420} />;
  const mine = queues.data?.results.filter((queue) => maySubmit(session, queue.namespace)) ?? [];
  return <SubmitForm queues={mine} onDone={onDone} />;
}

/** What a template says before a LocalQueue is known. */
const NO_QUEUE = { namespace: "default", name: "my-queue" };

function SubmitForm({ queues, onDone }: { queues: LocalQueue[]; onDone: () => void }) {
  const [template, setTemplate] = useState<string>(TEMPLATES[0].name);
  const [place, setPlace] = useState(0);
  const [manifest, setManifest] = useState(() => templateText(TEMPLATES[0].name, queues[0] ?? NO_QUEUE));
  const start = (name: string, queue: number) => {
    setTemplate(name);
    setPlace(queue);
    setManifest(templateText(name, queues[queue] ?? NO_QUEUE));
  };
  const submission = useApplyManifests(useCluster());
  const send = (dryRun: boolean) =>
    submission.mutate(
      { manifest, dryRun },
      {
        onSuccess: (result) => {
          if (dryRun) return;
          notifications.show({ color: "teal", title: "Submitted", message: <Submitted result={result} /> });
          onDone();
        },
      },
    );
  const checked = submission.data !== undefined && submission.variables.dryRun ? submission.data : null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send(false);
      }}
    >
      <Stack>
        <Group grow>
          <Select
            label="Start from"
            data={TEMPLATES.map(({ name }) => name)}
            value={template}
            allowDeselect={false}
            onChange={(name) => name !== null && start(name, place)}
          />
          <Select
            label="LocalQueue"
            placeholder="none that you may submit to"
            data={queues.map((queue, index) => ({
              value: String(index),
              label: `${queue.namespace}/${queue.name}`,
            }))}
            value={queues.length > 0 ? String(place) : null}
            allowDeselect={false}
            searchable
            onChange={(index) => index !== null && start(template, Number(index))}
          />
        </Group>
        <Textarea
          label="Manifest"
          description="YAML or JSON, one or more documents: Job, Pod, Deployment or Workload."
          autosize
          minRows={14}
          maxRows={24}
          spellCheck={false}
          required
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12.5 } }}
          value={manifest}
          onChange={(event) => setManifest(event.currentTarget.value)}
        />
        {submission.error !== null && <SubmissionError error={submission.error} />}
        {checked !== null && <CheckResult result={checked} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => send(true)} loading={submission.isPending}>
            Check only
          </Button>
          <Button type="submit" loading={submission.isPending}>
            Submit
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What was submitted, each workload with its page. */
function Submitted({ result }: { result: ApplyResult }) {
  return result.objects.map(({ kind, namespace, name, outcome }) => (
    <div key={`${kind} ${namespace} ${name}`}>
      {kind}{" "}
      {namespace === "" ? (
        name
      ) : (
        <TextLink to="/workloads" search={{ namespace, search: name }} fz="inherit">
          {namespace}/{name}
        </TextLink>
      )}
      : {outcome}
    </div>
  ));
}

function describe({ objects }: ApplyResult): string {
  return objects
    .map(
      ({ kind, namespace, name, outcome }) =>
        `${kind} ${namespace ? `${namespace}/` : ""}${name}: ${outcome}`,
    )
    .join(", ");
}

function SubmissionError({ error }: { error: Error }) {
  const faults = error instanceof ApiError ? error.errors : [];
  return <ErrorState title="Nothing was stored" message={error.message} details={faultLines(faults)} />;
}

function CheckResult({ result }: { result: ApplyResult }) {
  const { warnings } = result;
  return (
    <Alert color={warnings.length > 0 ? "yellow" : "teal"} title="This would be accepted">
      <Text size="sm">{describe(result)}</Text>
      {warnings.length > 0 && (
        <List size="sm" mt="xs">
          {warnings.map((warning) => (
            <List.Item key={`${warning.kind} ${warning.name} ${warning.message}`}>
              {warning.kind} {warning.name}: {warning.message}
            </List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}
