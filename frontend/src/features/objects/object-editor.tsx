/** Edits an object as a form and as YAML side by side; says what changes and what that would do, before it saves. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, Button, Grid, Modal, Skeleton, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { useFieldDocsOf } from "@/api/field-docs";
import {
  ChangedMeanwhile,
  type EditedObject,
  effectsQuery,
  type ObjectKind,
  type ObjectReference,
  objectQuery,
  useSaveObject,
} from "@/api/manifests";
import { DialogFoot } from "@/components/dialog/dialog-foot";
import { ErrorState } from "@/components/error-state";
import { PreviewedEffects } from "@/components/manifest/effects-view";
import { ManifestText } from "@/components/manifest/manifest-text";
import { QueryError } from "@/components/query-error";
import { type Change, carriedOver, changes, conflicts } from "@/lib/manifest/changes";
import { authored, type Manifest } from "@/lib/manifest/object";
import { toYaml } from "@/lib/manifest/yaml";
import { faultLines } from "@/lib/words/refusal";
import { ChangeList } from "./change-list";
import type { QuotaPlace } from "./form";
import { KindForm } from "./kind-forms";
import { type Beginning, newManifest } from "./new-manifests";
import classes from "./objects.module.css";

const SETTLED_MS = 400;

interface EditorProps {
  kind: ObjectKind;
  /** The quota that it was opened for. */
  quota?: QuotaPlace | undefined;
  onClose: () => void;
}

/** For an object that is there. */
export function ObjectEditor({
  reference,
  quota,
  onClose,
}: Omit<EditorProps, "kind"> & { reference: ObjectReference & { kind: ObjectKind } }) {
  const object = useQuery(objectQuery(useCluster(), reference));
  const { kind, namespace = "", name } = reference;
  const title = namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
  return (
    <Frame title={title} onClose={onClose}>
      {object.isPending && <Skeleton height={420} />}
      <QueryError title={t`This object cannot be edited`} query={object} />
      {object.data !== undefined && (
        <Editor kind={kind} opened={object.data} quota={quota} onClose={onClose} />
      )}
    </Frame>
  );
}

/** For one that is to be new. */
export function NewObjectEditor({ kind, beginning, onClose }: EditorProps & { beginning?: Beginning }) {
  const [opened] = useState(() => ({ manifest: newManifest(kind, beginning), version: null }));
  return (
    <Frame title={t`New ${kind}`} onClose={onClose}>
      <Editor kind={kind} opened={opened} onClose={onClose} />
    </Frame>
  );
}

function Frame({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  return (
    <Modal opened onClose={onClose} title={title} size="min(80rem, 96vw)" closeOnClickOutside={false}>
      {children}
    </Modal>
  );
}

/** Another user's change while the editor was open. */
interface Meanwhile {
  message: string;
  theirs: Change[];
  disputed: Change[];
  now: Manifest;
}

interface Draft {
  text: string;
  /** The object in the text; null until the server has read the typed text. */
  manifest: Manifest | null;
}

const draftOf = (manifest: Manifest): Draft => ({ manifest, text: toYaml(manifest) });

function useEditor(kind: ObjectKind, opened: EditedObject) {
  const cluster = useCluster();
  const [base, setBase] = useState(opened);
  const [draft, setDraft] = useState(() => draftOf(opened.manifest));
  const [shown, setShown] = useState(opened.manifest);
  const [meanwhile, setMeanwhile] = useState<Meanwhile | null>(null);
  const save = useSaveObject(cluster);
  const [text] = useDebouncedValue(draft.text, SETTLED_MS);
  const isNew = base.version === null;
  const isSettled = text === draft.text;
  const isUntouched = draft.text === toYaml(base.manifest);
  const trial = useQuery({ ...effectsQuery(cluster, text), enabled: !isUntouched });
  // While the studio still tries a large cluster, it is asked again; the manifest itself has been read.
  const isRead = !trial.isFetching || trial.data?.effects_pending === true;
  const isTried = isSettled && !trial.isPlaceholderData && isRead;
  const [only, ...more] = isTried && trial.isSuccess ? trial.data.manifests : [];
  const read = only === undefined || more.length > 0 ? null : authored(only as unknown as Manifest);
  const isOther = isTried && trial.isSuccess && (read === null || !isSame(read, kind, base));
  const mine = changes(isNew ? undefined : base.manifest, shown);
  const manifest = draft.manifest ?? (isOther ? null : read);
  if (manifest !== null && manifest !== shown && JSON.stringify(manifest) !== JSON.stringify(shown))
    setShown(manifest); // the form shows what was read last while the text is being typed

  const edit = (next: Draft) => {
    setDraft(next);
    save.reset();
  };
  /** Applies our changes to the present object. */
  const carryOver = ({ message, now }: ChangedMeanwhile) => {
    const theirs = changes(base.manifest, now.manifest);
    const disputed = conflicts(theirs, changes(base.manifest, shown));
    const mine = carriedOver(base.manifest, shown, now.manifest) as Manifest;
    setMeanwhile({ message, theirs, disputed, now: now.manifest });
    setBase(now);
    setDraft(draftOf(mine));
  };
  return {
    base,
    isNew,
    shown,
    draft,
    trial,
    isTried,
    isOther,
    meanwhile,
    save,
    faults: new Map(
      trial.error instanceof ApiError && isTried
        ? trial.error.errors.map(({ path, rule, remedy }) => [
            path,
            [rule, remedy].filter(Boolean).join(" – "),
          ])
        : [],
    ),
    mine,
    isReady: manifest !== null && isTried && trial.isSuccess && !isOther && mine.length > 0,
    onText: (typed: string) => edit({ text: typed, manifest: null }),
    onManifest: (next: Manifest) => edit(draftOf(next)),
    store: (onDone: (warnings: string[]) => void) =>
      save.mutate(
        { manifest: shown, version: base.version },
        {
          onSuccess: onDone,
          onError: (error) => error instanceof ChangedMeanwhile && carryOver(error),
        },
      ),
  };
}

/** Whether what was read is still the object that is edited: a new one may have any name. */
function isSame(read: Manifest, kind: ObjectKind, base: EditedObject): boolean {
  if (read.kind !== kind) return false;
  if (base.version === null) return true;
  const { name, namespace } = base.manifest.metadata;
  return read.metadata.name === name && read.metadata.namespace === namespace;
}

function Editor({ kind, opened, quota, onClose }: EditorProps & { opened: EditedObject }) {
  const editor = useEditor(kind, opened);
  const { draft, shown, trial, faults, isNew, save } = editor;
  const described = useFieldDocsOf(draft.text);
  const name = String(shown.metadata.name ?? "");
  const done = (warnings: string[]) => {
    for (const message of warnings)
      notifications.show({ color: "yellow", title: t`Saved, with a warning`, message });
    notifications.show({
      color: "teal",
      title: t`Saved`,
      message: t`${kind} ${name}: the scheduler uses it now.`,
    });
    onClose();
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (editor.isReady) editor.store(done);
      }}
    >
      <Stack>
        {editor.meanwhile !== null && <ChangedByOthers {...editor.meanwhile} />}
        <Grid gap="md">
          <Grid.Col span={{ base: 12, md: 7 }}>
            <KindForm
              kind={kind}
              manifest={shown}
              faults={faults}
              isNew={isNew}
              quota={quota}
              onChange={editor.onManifest}
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, md: 5 }}>
            <Stack gap="sm" className={classes.beside}>
              <ManifestText
                description={t`YAML or JSON. Form and text stay in sync.`}
                text={draft.text}
                described={described}
                onText={editor.onText}
                maxRows={16}
                {...(editor.isOther ? { error: t`The kind and the name of the object cannot change.` } : {})}
              />
              {!isNew && editor.mine.length > 0 && <ChangeList changes={editor.mine} whole={shown} />}
              {editor.isTried && trial.error !== null && (
                <ErrorState
                  title={t`The change would be refused`}
                  message={trial.error.message}
                  details={faultLines(trial.error instanceof ApiError ? trial.error.errors : [])}
                />
              )}
              {editor.isReady && trial.data !== undefined && (
                <PreviewedEffects
                  preview={trial.data}
                  warnings={trial.data.result.warnings.map(({ message }) => message)}
                />
              )}
            </Stack>
          </Grid.Col>
        </Grid>
        {save.error !== null && !(save.error instanceof ChangedMeanwhile) && (
          <ErrorState
            title={t`Nothing was saved`}
            message={save.error.message}
            details={faultLines(save.error instanceof ApiError ? save.error.errors : [])}
          />
        )}
        <DialogFoot>
          {!editor.isTried && (
            <Text size="sm" c="var(--kw-muted)">
              <Trans>Working out the effects …</Trans>
            </Text>
          )}
          <Button variant="default" onClick={onClose}>
            <Trans>Back</Trans>
          </Button>
          <Button type="submit" loading={save.isPending} disabled={!editor.isReady}>
            <Trans>Save</Trans>
          </Button>
        </DialogFoot>
      </Stack>
    </form>
  );
}

function ChangedByOthers({ message, theirs, disputed, now }: Meanwhile) {
  return (
    <Alert
      color="orange"
      role="alert"
      title={t`The object has changed in the meantime, and nothing was saved`}
    >
      <Text size="sm" mb="xs">
        {message}
      </Text>
      <Text size="sm" mb="xs">
        {disputed.length === 0 ? (
          <Trans>
            Another user's changes are shown below, with yours applied on top: check them, then save again.
          </Trans>
        ) : (
          <Trans>
            Another user's changes are shown below, and some affect the same fields as yours. Your values were
            kept there: check them, then save again.
          </Trans>
        )}
      </Text>
      <ChangeList changes={theirs} whole={now} disputed={disputed} />
    </Alert>
  );
}
