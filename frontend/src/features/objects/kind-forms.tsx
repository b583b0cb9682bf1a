/** The form of each kind: what of it is set most. Everything else is in its YAML. */
import { t } from "@lingui/core/macro";
import { SimpleGrid, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useCluster } from "@/api/cluster";
import { useFieldDocs } from "@/api/field-docs";
import type { ObjectKind } from "@/api/manifests";
import { namesQuery } from "@/api/queues";
import { schemaAt } from "@/lib/manifest/field-docs";
import { type Path, read, readText, type Value, write } from "@/lib/manifest/object";
import { ChoiceField, type FormProps, LinesField, NameField, placeOf, TextField } from "./form";
import { labelLines, labelsOf } from "./label-lines";
import { QuotaFields } from "./quota-fields";
import { ReservationForm } from "./reservation-form";
import { ConfigMapForm, ConfigurationForm } from "./scheduler-fields";

const NAME: Path = ["metadata", "name"];
const STOP: Path = ["spec", "stopPolicy"];
const WEIGHT: Path = ["spec", "fairSharing", "weight"];

const BACKFILL: Path = ["metadata", "annotations", "kueueweb.io/backfill"];
const SHARING: Path = ["metadata", "annotations", "kueueweb.io/sharing-policy"];

const stopPolicies = () => [
  { value: "None", label: t`None: admits workloads` },
  { value: "Hold", label: t`Hold: admits no new workloads` },
  { value: "HoldAndDrain", label: t`HoldAndDrain: also evicts admitted workloads` },
];

const asTheyAre = (...values: string[]) => values.map((value) => ({ value, label: value }));

type Kind = "namespaces" | "cluster-queues" | "cohorts" | "resource-flavors";

function useNames(kind: Kind): string[] {
  return useQuery(namesQuery(useCluster(), kind)).data ?? [];
}

export function KindForm({ kind, ...props }: FormProps & { kind: ObjectKind }) {
  const { apiVersion } = props.manifest;
  const schema = useFieldDocs([apiVersion]).kinds.get(apiVersion)?.get(kind);
  const form = { ...props, helpOf: (path: Path) => schemaAt(schema, path)?.description ?? "" };
  switch (kind) {
    case "ClusterQueue":
      return <ClusterQueueForm {...form} />;
    case "Cohort":
      return <CohortForm {...form} />;
    case "LocalQueue":
      return <LocalQueueForm {...form} />;
    case "Reservation":
      return <ReservationForm {...form} />;
    case "ResourceFlavor":
      return <FlavorForm {...form} />;
    case "Configuration":
      return <ConfigurationForm {...form} />;
    case "ConfigMap":
      return <ConfigMapForm {...form} />;
  }
}

function Fields({ children }: { children: ReactNode }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing="xs">
      {children}
    </SimpleGrid>
  );
}

function Name(form: FormProps) {
  return <TextField {...form} path={NAME} label={t`Name`} required disabled={!form.isNew} />;
}

function ClusterQueueForm(form: FormProps) {
  const cohorts = useNames("cohorts");
  const flavors = useNames("resource-flavors");
  const within = ["spec", "preemption", "withinClusterQueue"];
  const reclaim = ["spec", "preemption", "reclaimWithinCohort"];
  const borrow = ["spec", "preemption", "borrowWithinCohort", "policy"];
  return (
    <Stack gap="sm">
      <Fields>
        <Name {...form} />
        <NameField
          {...form}
          path={["spec", "cohortName"]}
          label={t`Cohort`}
          placeholder={t`none`}
          names={cohorts}
        />
        <ChoiceField {...form} path={STOP} label={t`Stop policy`} choices={stopPolicies()} initial="None" />
        <TextField {...form} path={WEIGHT} label={t`Fair weight`} placeholder="1" />
        <ChoiceField
          {...form}
          path={["spec", "queueingStrategy"]}
          label={t`Queueing strategy`}
          initial="BestEffortFIFO"
          choices={[
            {
              value: "BestEffortFIFO",
              label: t`BestEffortFIFO: a workload that fits may overtake one that does not`,
            },
            { value: "StrictFIFO", label: t`StrictFIFO: no workload overtakes the first` },
          ]}
        />
        <ChoiceField
          {...form}
          path={within}
          label={t`Preemption within the queue`}
          initial="Never"
          choices={asTheyAre("Never", "LowerPriority", "LowerOrNewerEqualPriority")}
        />
        <ChoiceField
          {...form}
          path={reclaim}
          label={t`Reclaiming lent quota`}
          initial="Never"
          choices={asTheyAre("Never", "LowerPriority", "Any")}
        />
        <ChoiceField
          {...form}
          path={borrow}
          label={t`Preemption to borrow`}
          initial="Never"
          choices={asTheyAre("Never", "LowerPriority")}
        />
        <ChoiceField
          {...form}
          path={BACKFILL}
          label={t`Backfill`}
          initial=""
          choices={[
            { value: "", label: t`As in Kueue: any workload that fits may start` },
            { value: "easy", label: t`easy: workloads may not delay the first one that must wait` },
          ]}
        />
      </Fields>
      <QuotaFields {...form} flavors={flavors} />
    </Stack>
  );
}

function CohortForm(form: FormProps) {
  const names = useNames("cohorts");
  const flavors = useNames("resource-flavors");
  return (
    <Stack gap="sm">
      <Fields>
        <Name {...form} />
        <NameField
          {...form}
          path={["spec", "parentName"]}
          label={t`Parent cohort`}
          placeholder={t`none`}
          names={names}
        />
        <TextField {...form} path={WEIGHT} label={t`Fair weight`} placeholder="1" />
        <ChoiceField
          {...form}
          path={SHARING}
          label={t`Sharing among the queues below`}
          initial=""
          choices={[
            { value: "", label: t`As in Kueue: by nominal quota, borrowing and lending` },
            { value: "proportion", label: t`proportion: by weight and demand` },
            { value: "capacity", label: t`capacity: by nominal quota; idle quota is lent` },
            {
              value: "fair-share",
              label: t`fair-share: nominal quota first, the rest by priority and weight`,
            },
          ]}
        />
      </Fields>
      <QuotaFields {...form} flavors={flavors} />
    </Stack>
  );
}

function LocalQueueForm(form: FormProps) {
  const namespaces = useNames("namespaces");
  const queues = useNames("cluster-queues");
  return (
    <Fields>
      <NameField
        {...form}
        path={["metadata", "namespace"]}
        label={t`Namespace`}
        required
        disabled={!form.isNew}
        names={namespaces}
      />
      <Name {...form} />
      <NameField
        {...form}
        path={["spec", "clusterQueue"]}
        label={t`ClusterQueue`}
        required
        disabled={!form.isNew}
        names={queues}
      />
      <ChoiceField {...form} path={STOP} label={t`Stop policy`} choices={stopPolicies()} initial="None" />
      <TextField {...form} path={WEIGHT} label={t`Fair weight`} placeholder="1" />
    </Fields>
  );
}

function FlavorForm(form: FormProps) {
  const { manifest, faults, helpOf, onChange } = form;
  const labels: Path = ["spec", "nodeLabels"];
  const taints: Path = ["spec", "nodeTaints"];
  return (
    <Stack gap="sm">
      <Fields>
        <Name {...form} />
        <TextField {...form} path={["spec", "topologyName"]} label={t`Topology`} placeholder={t`none`} />
      </Fields>
      <LinesField
        label={t`Node labels`}
        description={t`One per line, like gpu=a100. The flavor selects the nodes that have all of them.`}
        help={helpOf?.(labels) ?? ""}
        error={faults.get(placeOf(labels))}
        lines={labelLines(read(manifest, labels))}
        onLines={(lines) => onChange(write(manifest, labels, labelsOf(lines)))}
      />
      <LinesField
        label={t`Taints of its nodes`}
        description={t`One per line, like gpu=a100:NoSchedule. Only workloads that tolerate all taints can use the flavor.`}
        help={helpOf?.(taints) ?? ""}
        error={faults.get(placeOf(taints))}
        lines={taintLines(read(manifest, taints))}
        onLines={(lines) => onChange(write(manifest, taints, taintsOf(lines)))}
      />
    </Stack>
  );
}

function taintLines(value: Value | undefined): string[] {
  if (!Array.isArray(value)) return [];
  return value.map((taint) => {
    const text = readText(taint, ["value"]);
    const effect = readText(taint, ["effect"]);
    return `${readText(taint, ["key"])}${text === "" ? "" : `=${text}`}${effect === "" ? "" : `:${effect}`}`;
  });
}

function taintsOf(lines: readonly string[]): Value | undefined {
  if (lines.length === 0) return undefined;
  return lines.map((line) => {
    const [, key = "", value = "", effect = ""] = /^([^=:]*)(?:=([^:]*))?(?::(.*))?$/.exec(line) ?? [];
    return { key, ...(value === "" ? {} : { value }), ...(effect === "" ? {} : { effect }) };
  });
}
