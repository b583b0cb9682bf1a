/** Submits jobs by a form and their manifest: what it would come to first if wanted, and every fault where it stands. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Box, Button, Grid, Group, Modal, Select, Skeleton, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { useFieldDocsOf } from "@/api/field-docs";
import { previewManifest, useApplyManifests, usePreview } from "@/api/manifests";
import { localQueuesQuery, namesQuery } from "@/api/queues";
import { maySubmit, sessionQuery } from "@/api/session";
import type { ApplyResult, LocalQueue } from "@/api/types";
import { DialogFoot } from "@/components/dialog/dialog-foot";
import { ErrorState } from "@/components/error-state";
import { TextLink } from "@/components/link";
import { ManifestText } from "@/components/manifest/manifest-text";
import { faultLines } from "@/lib/words/refusal";
import { JobForm } from "./job-form";
import { writeQueue } from "./manifest-fields";
import { TEMPLATES, templateLabel, templateText } from "./manifest-templates";
import { OwnTemplates } from "./own-templates";
import { PreviewResult } from "./preview";
import {
  bestQueue,
  keepLastQueue,
  lastQueue,
  placeOfLast,
  type QueueName,
  rankOf,
  type TriedQueue,
} from "./queue-choice";
import { QueueHeadroom } from "./queue-headroom";

/** A job whose manifest the form starts from. */
export interface JobAgain {
  label: string;
  queue: QueueName;
  /** Null until it is read. */
  text: string | null;
  /** Why it cannot be read. */
  error: Error | null;
}

interface SubmitModalProps {
  opened: boolean;
  onClose: () => void;
  again?: JobAgain;
}

export function SubmitModal({ opened, onClose, again }: SubmitModalProps) {
  return (
    <Modal opened={opened} onClose={onClose} title={t`Submit workloads`} size="min(72rem, 95vw)">
      {opened && <SubmitContent onDone={onClose} again={again} />}
    </Modal>
  );
}

function SubmitContent({ onDone, again }: { onDone: () => void; again: JobAgain | undefined }) {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const queues = useQuery(localQueuesQuery(useCluster()));
  if (again?.error)
    return <ErrorState title={t`${again.label} cannot be read`} message={again.error.message} />;
  if (queues.isPending || again?.text === null) return <Skeleton height={420} />;
  const mine = queues.data?.results.filter((queue) => maySubmit(session, queue.namespace)) ?? [];
  return <SubmitForm queues={mine} onDone={onDone} again={again} />;
}

/** The names in a template before a LocalQueue is known. */
const NO_QUEUE = { namespace: "default", name: "my-queue" };

interface SubmitFormProps {
  queues: LocalQueue[];
  onDone: () => void;
  again: JobAgain | undefined;
}

function SubmitForm({ queues, onDone, again }: SubmitFormProps) {
  const [template, setTemplate] = useState<string | null>(again === undefined ? TEMPLATES[0].name : null);
  // The name of a job or of a template of the reader's that the text started from.
  const [origin, setOrigin] = useState(again?.label ?? "");
  const [place, setPlace] = useState(() =>
    placeOfLast(queues, again === undefined ? lastQueue() : `${again.queue.namespace}/${again.queue.name}`),
  );
  const [manifest, setManifest] = useState(
    () => again?.text ?? templateText(TEMPLATES[0].name, queues[place] ?? NO_QUEUE),
  );
  const described = useFieldDocsOf(manifest);
  const [better, setBetter] = useState<TriedQueue | null>(null);
  const cluster = useCluster();
  const touched = useRef(again !== undefined);
  const checked = useRef("");
  const submission = useApplyManifests(cluster);
  const preview = usePreview(cluster);
  const priorityClasses = useQuery(namesQuery(cluster, "workload-priority-classes"));
  const edit = (text: string) => {
    touched.current = true;
    checked.current = "";
    setManifest(text);
    setBetter(null);
    preview.reset();
    submission.reset();
  };
  const tryQueues = (places: number[], text: string) =>
    bestQueue(places, (each) => previewManifest(cluster, writeQueue(text, queues[each] ?? NO_QUEUE)));
  const check = (text: string, at: number) => {
    submission.reset();
    setBetter(null);
    checked.current = text;
    preview.mutate(text, {
      onSuccess: async (result) => {
        const rank = rankOf(result);
        if (rank === 0) return;
        const found = await tryQueues(
          queues.map((_, each) => each).filter((each) => each !== at),
          text,
        );
        const isStale = checked.current !== text; // the manifest was edited while queues were tried
        if (!isStale && found !== null && found.rank < rank) setBetter(found);
      },
    });
  };
  const moveTo = (at: number) => {
    const text = writeQueue(manifest, queues[at] ?? NO_QUEUE);
    setPlace(at);
    edit(text);
    return text;
  };
  // A newcomer does not know which queue has the devices that the template requests.
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked once, when the form opens
  useEffect(() => {
    if (queues.length < 2 || touched.current) return;
    const others = queues.map((_, each) => each).filter((each) => each !== place);
    void tryQueues([place, ...others], manifest).then((found) => {
      if (touched.current || found === null || found.place === place) return;
      setPlace(found.place);
      setManifest(writeQueue(manifest, queues[found.place] ?? NO_QUEUE));
    });
  }, []);
  const submit = () =>
    submission.mutate(
      { manifest, dryRun: false },
      {
        onSuccess: (result) => {
          const used = queues[place];
          if (used !== undefined) keepLastQueue(used);
          notifications.show({
            color: "teal",
            title: t`Submitted`,
            message: <Submitted result={result} />,
            autoClose: 15_000,
          });
          onDone();
        },
      },
    );
  const error = submission.error ?? preview.error;
  const answer = (error !== null || preview.data !== undefined) && (
    <>
      {error !== null && (
        <ErrorState
          title={t`Nothing was created`}
          message={error.message}
          details={faultLines(error instanceof ApiError ? error.errors : [])}
        />
      )}
      {preview.data !== undefined && (
        <PreviewResult
          preview={preview.data}
          better={
            better === null || queues[better.place] === undefined
              ? undefined
              : {
                  queue: `${queues[better.place]?.namespace}/${queues[better.place]?.name}`,
                  rank: better.rank,
                  onUse: () => check(moveTo(better.place), better.place),
                }
          }
        />
      )}
    </>
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Stack>
        <Group grow>
          <Select
            label={t`Start from`}
            data={TEMPLATES.map(({ name }) => ({ value: name, label: templateLabel(name) }))}
            value={template}
            placeholder={origin}
            allowDeselect={false}
            onChange={(name) => {
              if (name === null) return;
              setTemplate(name);
              edit(templateText(name, queues[place] ?? NO_QUEUE));
            }}
          />
          <Select
            label={t`LocalQueue`}
            placeholder={t`no queue that you can submit to`}
            data={queues.map((queue, index) => ({
              value: String(index),
              label: `${queue.namespace}/${queue.name}`,
            }))}
            value={queues.length > 0 ? String(place) : null}
            allowDeselect={false}
            searchable
            onChange={(index) => {
              if (index === null) return;
              moveTo(Number(index));
            }}
          />
        </Group>
        <Group justify="space-between" align="flex-start">
          <Box flex={1}>{queues[place] !== undefined && <QueueHeadroom queue={queues[place]} />}</Box>
          <OwnTemplates
            manifest={manifest}
            onOpen={(name, text) => {
              setTemplate(null);
              setOrigin(name);
              edit(queues[place] === undefined ? text : writeQueue(text, queues[place]));
            }}
          />
        </Group>
        <Grid gap="md">
          <Grid.Col span={{ base: 12, md: 5 }}>
            <JobForm text={manifest} priorityClasses={priorityClasses.data ?? []} onText={edit} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 7 }}>
            <ManifestText
              description={t`YAML or JSON, one or more documents. Form and text stay in sync.`}
              text={manifest}
              described={described}
              onText={edit}
            />
          </Grid.Col>
        </Grid>
        <DialogFoot answer={answer}>
          <Button variant="default" onClick={() => check(manifest, place)} loading={preview.isPending}>
            <Trans>Check only</Trans>
          </Button>
          <Button type="submit" loading={submission.isPending}>
            <Trans>Submit</Trans>
          </Button>
        </DialogFoot>
      </Stack>
    </form>
  );
}

/** The submitted objects, each workload with its page. */
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
