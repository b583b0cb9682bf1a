/** The buttons by which objects are made, changed and deleted, for those who may. The editor is loaded when it opens. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Button, Menu } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useCluster } from "@/api/cluster";
import type { ObjectKind, ObjectReference } from "@/api/manifests";
import { isClusterAdmin, isMirrored, mayEditQueues, sessionQuery } from "@/api/session";
import { Icon } from "@/components/icon";
import { DeleteDialog } from "./delete-dialog";
import type { QuotaPlace } from "./form";
import type { Beginning } from "./new-manifests";

const ObjectEditor = lazy(async () => ({ default: (await import("./object-editor")).ObjectEditor }));
const NewObjectEditor = lazy(async () => ({ default: (await import("./object-editor")).NewObjectEditor }));

/** Whether the user may change objects of the kind somewhere; of which, the server says. */
function useMayEdit(kind: ObjectKind): boolean {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const cluster = useCluster();
  // They say how we read a cluster, also one whose objects only the cluster itself changes.
  if (kind === "Configuration" || kind === "ConfigMap") return isClusterAdmin(session);
  if (isMirrored(session, cluster)) return false;
  return kind === "ResourceFlavor" || kind === "Reservation"
    ? isClusterAdmin(session)
    : mayEditQueues(session);
}

export interface ObjectButtonsProps {
  reference: ObjectReference & { kind: ObjectKind };
  /** After it was deleted: its page is of no use any more. */
  onDeleted: () => void;
}

type Opened = "edit" | "delete" | null;

/** The editor or the question that a button has opened. */
function OpenedDialog({
  opened,
  onClose,
  ...of
}: ObjectButtonsProps & { opened: Opened; onClose: () => void }) {
  if (opened === "edit") {
    return (
      <Suspense>
        <ObjectEditor reference={of.reference} onClose={onClose} />
      </Suspense>
    );
  }
  return opened === "delete" && <DeleteDialog {...of} onClose={onClose} />;
}

/** The buttons of an object in a row of a table. */
export function ObjectIconButtons({ reference }: Pick<ObjectButtonsProps, "reference">) {
  const [opened, open] = useState<Opened>(null);
  if (!useMayEdit(reference.kind)) return null;
  const button = { variant: "subtle", color: "gray", size: "sm" } as const;
  const { name } = reference;
  const close = () => open(null);
  return (
    <>
      <ActionIcon {...button} aria-label={t`Edit ${name}`} title={t`Edit`} onClick={() => open("edit")}>
        <Icon name="edit" size={14} />
      </ActionIcon>
      <ActionIcon {...button} aria-label={t`Delete ${name}`} title={t`Delete`} onClick={() => open("delete")}>
        <Icon name="close" size={14} />
      </ActionIcon>
      <OpenedDialog opened={opened} reference={reference} onClose={close} onDeleted={close} />
    </>
  );
}

export function ObjectButtons({ reference, onDeleted }: ObjectButtonsProps) {
  const [opened, open] = useState<Opened>(null);
  if (!useMayEdit(reference.kind)) return null;
  const close = () => open(null);
  return (
    <>
      <Button
        size="xs"
        variant="default"
        leftSection={<Icon name="edit" size={14} />}
        onClick={() => open("edit")}
      >
        <Trans>Edit</Trans>
      </Button>
      <Button
        size="xs"
        variant="default"
        leftSection={<Icon name="close" size={14} />}
        onClick={() => open("delete")}
      >
        <Trans>Delete</Trans>
      </Button>
      <OpenedDialog opened={opened} reference={reference} onClose={close} onDeleted={onDeleted} />
    </>
  );
}

export interface EditQuotaButtonProps {
  queue: string;
  quota: QuotaPlace;
}

/** Opens the editor of a ClusterQueue at one of its quotas. */
export function EditQuotaButton({ queue, quota }: EditQuotaButtonProps) {
  const [opened, open] = useState(false);
  if (!useMayEdit("ClusterQueue")) return null;
  const label = t`Edit the quota of ${quota.resource}, flavor ${quota.flavor}`;
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="sm"
        aria-label={label}
        title={label}
        onClick={() => open(true)}
      >
        <Icon name="edit" size={14} />
      </ActionIcon>
      {opened && (
        <Suspense>
          <ObjectEditor
            reference={{ kind: "ClusterQueue", name: queue }}
            quota={quota}
            onClose={() => open(false)}
          />
        </Suspense>
      )}
    </>
  );
}

/** One button for one kind, a menu for several. */
export function NewObjectButton({
  kinds,
  beginning,
}: {
  kinds: readonly ObjectKind[];
  beginning?: Beginning;
}) {
  const [opened, open] = useState<ObjectKind | null>(null);
  const [first] = kinds;
  const mayEdit = useMayEdit(first ?? "ResourceFlavor");
  if (!mayEdit || first === undefined) return null;
  const button = { size: "xs", variant: "default", leftSection: <Icon name="plus" size={14} /> } as const;
  return (
    <>
      {kinds.length === 1 ? (
        <Button {...button} onClick={() => open(first)}>
          {t`New ${first}`}
        </Button>
      ) : (
        <Menu position="bottom-end">
          <Menu.Target>
            <Button {...button}>
              <Trans>New</Trans>
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {kinds.map((kind) => (
              <Menu.Item key={kind} onClick={() => open(kind)}>
                {kind}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {opened !== null && (
        <Suspense>
          <NewObjectEditor
            kind={opened}
            onClose={() => open(null)}
            {...(beginning === undefined ? {} : { beginning })}
          />
        </Suspense>
      )}
    </>
  );
}
