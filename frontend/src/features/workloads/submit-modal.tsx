/** Submits manifests: checked by the server first if wanted, and every fault named where it stands. */
import { Alert, Button, Group, List, Modal, Select, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { type ApplyResult, useApplyManifests } from "@/api/manifests";
import { ErrorState } from "@/components/error-state";
import { faultLines } from "@/lib/refusal";
import { TEMPLATES, templateText } from "./manifest-templates";

export function SubmitModal({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title="Submit workloads" size="xl">
      {opened && <SubmitForm onDone={onClose} />}
    </Modal>
  );
}

function SubmitForm({ onDone }: { onDone: () => void }) {
  const [template, setTemplate] = useState<string>(TEMPLATES[0].name);
  const [manifest, setManifest] = useState<string>(TEMPLATES[0].text);
  const submission = useApplyManifests(useCluster());
  const send = (dryRun: boolean) =>
    submission.mutate(
      { manifest, dryRun },
      {
        onSuccess: (result) => {
          if (dryRun) return;
          notifications.show({ color: "teal", title: "Submitted", message: describe(result) });
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
        <Select
          label="Start from"
          data={TEMPLATES.map(({ name }) => name)}
          value={template}
          allowDeselect={false}
          onChange={(name) => {
            if (name === null) return;
            setTemplate(name);
            setManifest(templateText(name));
          }}
        />
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

function describe({ objects }: ApplyResult): string {
  return objects
    .map(
      ({ kind, namespace, name, action }) => `${kind} ${namespace ? `${namespace}/` : ""}${name}: ${action}`,
    )
    .join(", ");
}

function SubmissionError({ error }: { error: Error }) {
  const faults = error instanceof ApiError ? error.errors : [];
  return <ErrorState title="Nothing was stored" message={error.message} details={faultLines(faults)} />;
}

function CheckResult({ result }: { result: ApplyResult }) {
  const warnings = result.objects.flatMap((object) => object.warnings);
  return (
    <Alert color={warnings.length > 0 ? "yellow" : "teal"} title="This would be accepted">
      <Text size="sm">{describe(result)}</Text>
      {warnings.length > 0 && (
        <List size="sm" mt="xs">
          {warnings.map((warning) => (
            <List.Item key={warning}>{warning}</List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}
