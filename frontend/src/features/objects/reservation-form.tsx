/** The form of a Reservation, and the workloads that it would evict or keep waiting. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Alert, SimpleGrid, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useCluster } from "@/api/cluster";
import { type ReservationDraft, reservationPreviewQuery } from "@/api/hardware/reservations";
import { WorkloadNames } from "@/components/object-links";
import { isFields, type Manifest, type Path, read, readText, write } from "@/lib/manifest/object";
import { formatMinute } from "@/lib/time";
import {
  ChoiceField,
  type FormProps,
  LinesField,
  MomentField,
  NamesField,
  NumberField,
  placeOf,
  TextField,
} from "./form";
import { labelLines, labelsOf } from "./label-lines";

const SETTLED_MS = 400;
const LABELS: Path = ["spec", "nodes", "labels"];

export function ReservationForm(form: FormProps) {
  const { manifest, faults, helpOf, onChange } = form;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing="xs">
        <TextField {...form} path={["metadata", "name"]} label={t`Name`} required disabled={!form.isNew} />
        <TextField {...form} path={["spec", "comment"]} label={t`Purpose`} />
        <MomentField {...form} path={["spec", "start"]} label={t`Start (${zone})`} required />
        <MomentField {...form} path={["spec", "end"]} label={t`End (${zone})`} required />
        <ChoiceField
          {...form}
          path={["spec", "recurrence"]}
          label={t`Recurrence`}
          initial="None"
          choices={[
            { value: "None", label: t`None: one window` },
            { value: "Daily", label: t`Daily: every 24 hours` },
            { value: "Weekly", label: t`Weekly: every 7 days` },
          ]}
        />
        <ChoiceField
          {...form}
          path={["spec", "ifBusy"]}
          label={t`If busy at the start`}
          initial="Wait"
          choices={[
            { value: "Wait", label: t`Wait: running workloads end by themselves` },
            { value: "Evict", label: t`Evict: running workloads return to their queues` },
          ]}
        />
        <NamesField
          {...form}
          path={["spec", "nodes", "names"]}
          label={t`Nodes`}
          description={t`Names of nodes, one per line.`}
        />
        <LinesField
          label={t`Nodes by label`}
          description={t`One per line, like rack=r1: the nodes that have all of them.`}
          help={helpOf?.(LABELS) ?? ""}
          error={faults.get(placeOf(LABELS))}
          lines={labelLines(read(manifest, LABELS))}
          onLines={(lines) =>
            onChange(write(manifest, LABELS, lines.length === 0 ? undefined : labelsOf(lines)))
          }
        />
        <NumberField
          {...form}
          path={["spec", "nodes", "count"]}
          label={t`Number of nodes`}
          description={t`Reserve this many of them, or of all nodes: the first ready nodes by name that have no taint.`}
          placeholder={t`all of them`}
        />
        <MomentField
          {...form}
          path={["spec", "until"]}
          label={t`Last window before (${zone})`}
          description={t`For a recurring reservation. If empty, the windows recur forever.`}
        />
        <NamesField
          {...form}
          path={["spec", "allowed", "namespaces"]}
          label={t`Kept free for namespaces`}
          description={t`One per line. Without allowed workloads it is a maintenance window.`}
        />
        <NamesField
          {...form}
          path={["spec", "allowed", "localQueues"]}
          label={t`… for LocalQueues`}
          description={t`One per line, as namespace/name.`}
        />
        <NamesField
          {...form}
          path={["spec", "allowed", "clusterQueues"]}
          label={t`… for ClusterQueues`}
          description={t`One per line.`}
        />
        <NamesField
          {...form}
          path={["spec", "allowed", "users"]}
          label={t`… for users`}
          description={t`One per line.`}
        />
      </SimpleGrid>
      <Impact manifest={manifest} />
    </Stack>
  );
}

const texts = (manifest: Manifest, path: Path): string[] => {
  const found = read(manifest, path);
  return Array.isArray(found) ? found.map(String) : [];
};

/** The reservation as REST takes it; null while it names no nodes or has no times. */
export function draftOf(manifest: Manifest): ReservationDraft | null {
  const text = (...path: string[]) => readText(manifest, ["spec", ...path]);
  const labels = read(manifest, LABELS);
  const names = texts(manifest, ["spec", "nodes", "names"]);
  const count = read(manifest, ["spec", "nodes", "count"]);
  const hasNodes = names.length > 0 || isFields(labels) || typeof count === "number";
  if (text("start") === "" || text("end") === "" || !hasNodes) return null;
  const allowed = (kind: string) => texts(manifest, ["spec", "allowed", kind]);
  return {
    name: readText(manifest, ["metadata", "name"]) || "new",
    starts_at: text("start"),
    ends_at: text("end"),
    recurrence: (text("recurrence") || "None") as NonNullable<ReservationDraft["recurrence"]>,
    if_busy: (text("ifBusy") || "Wait") as NonNullable<ReservationDraft["if_busy"]>,
    until: text("until") || null,
    nodes: {
      names,
      labels: (isFields(labels) ? labels : {}) as Record<string, string>,
      count: typeof count === "number" ? count : null,
    },
    allowed: {
      namespaces: allowed("namespaces"),
      local_queues: allowed("localQueues"),
      cluster_queues: allowed("clusterQueues"),
      users: allowed("users"),
    },
  };
}

const MAX_NAMED = 8;

/** The names of the nodes that a count or labels choose: "n1, n2 and 3 more". */
function namesText(nodes: readonly string[]): string {
  const more = nodes.length - MAX_NAMED;
  const named = nodes.slice(0, MAX_NAMED).join(", ");
  return more > 0 ? t`${named} and ${more} more` : named;
}

/** "2 nodes, 1 Dec, 08:00 – 12:00" */
function nodesText(count: number, window: { starts_at: string; ends_at: string }): string {
  const nodes = plural(count, { one: "# node", other: "# nodes" });
  return `${nodes}, ${formatMinute(window.starts_at)} – ${formatMinute(window.ends_at, window.starts_at)}`;
}

/** Nothing is said of a draft that is not valid: the editor shows its faults. */
function Impact({ manifest }: { manifest: Manifest }) {
  const [draft] = useDebouncedValue(draftOf(manifest), SETTLED_MS);
  return draft !== null && <ImpactOf draft={draft} />;
}

function ImpactOf({ draft }: { draft: ReservationDraft }) {
  const preview = useQuery(reservationPreviewQuery(useCluster(), draft));
  if (preview.error !== null || preview.data === undefined) return null;
  const { window, nodes, holders, holder_count, waiting } = preview.data;
  if (window === null) {
    return (
      <Alert color="orange" title={t`All its windows are over`}>
        <Trans>Choose a later end, or a recurrence.</Trans>
      </Alert>
    );
  }
  const held = waiting.without_limit + waiting.too_long;
  return (
    <Alert color={holder_count > 0 ? "orange" : "gray"} title={nodesText(nodes.length, window)}>
      <Stack gap={4}>
        <Text fz="sm" style={{ overflowWrap: "anywhere" }}>
          {namesText(nodes)}
        </Text>
        <Text fz="sm">
          {holder_count === 0 ? (
            <Trans>No workload on these nodes runs into the window.</Trans>
          ) : (
            <WorkloadNames
              text={
                draft.if_busy === "Evict"
                  ? plural(holder_count, {
                      one: "# workload would be evicted at the start",
                      other: "# workloads would be evicted at the start",
                    })
                  : plural(holder_count, {
                      one: "# workload may still use the nodes at the start",
                      other: "# workloads may still use the nodes at the start",
                    })
              }
              count={holder_count}
              workloads={holders.map(({ namespace, name }) => `${namespace}/${name}`)}
            />
          )}
        </Text>
        {held > 0 && (
          <Text fz="sm">
            {plural(held, {
              one: "# waiting workload could not start on these nodes now.",
              other: "# waiting workloads could not start on these nodes now.",
            })}{" "}
            <Trans>
              Without a time limit: {waiting.without_limit}. With a limit that reaches into the window:{" "}
              {waiting.too_long}.
            </Trans>
          </Text>
        )}
      </Stack>
    </Alert>
  );
}
