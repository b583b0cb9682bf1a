/** The form of a cluster's Configuration: how its scheduler shares, preempts, waits for pods and charges. */
import { t } from "@lingui/core/macro";
import { SimpleGrid, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { isFields, type Path, read, type Value, write } from "@/lib/manifest/object";
import { ChoiceField, type FormProps, LinesField, NumberField, placeOf, TextField } from "./form";

const FAIR: Path = ["fairSharing", "preemptionStrategies"];
const READY: Path = ["waitForPodsReady"];
const REQUEUING: Path = [...READY, "requeuingStrategy"];
const PREFIXES: Path = ["resources", "excludeResourcePrefixes"];
const RETENTION: Path = ["objectRetentionPolicies", "workloads"];

const STRATEGIES: Record<string, Value | undefined> = {
  off: undefined,
  final: ["LessThanOrEqualToFinalShare"],
  initial: ["LessThanInitialShare"],
  both: ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
};

/** The strategy of the block; one without strategies stands for Kueue's own, which are both. */
function strategyOf(block: Value | undefined): string {
  if (!isFields(block)) return "off";
  const value = block.preemptionStrategies ?? STRATEGIES.both;
  const found = Object.entries(STRATEGIES).find(
    ([, list]) => JSON.stringify(list ?? null) === JSON.stringify(value ?? null),
  );
  return found?.[0] ?? "other";
}

export function ConfigurationForm(form: FormProps) {
  const { manifest, faults, onChange } = form;
  const fair = strategyOf(read(manifest, ["fairSharing"]));
  const waits = isFields(read(manifest, READY));
  const prefixes = read(manifest, PREFIXES);
  return (
    <Stack gap="sm">
      <Section title={t`Fairness`}>
        <ChoiceField
          label={t`Fair sharing`}
          description={t`Fair sharing in cohorts, and how shares decide preemption.`}
          faults={new Map([["chosen", faults.get(placeOf(FAIR)) ?? ""]])}
          manifest={{ ...manifest, chosen: fair }}
          path={["chosen"]}
          initial="off"
          isNew={form.isNew}
          choices={[
            { value: "off", label: t`Off: by priority and age` },
            { value: "final", label: t`Until the shares are equal (LessThanOrEqualToFinalShare)` },
            { value: "initial", label: t`While the victim's share is larger (LessThanInitialShare)` },
            { value: "both", label: t`Both, the first before the second` },
            ...(fair === "other" ? [{ value: "other", label: t`As in the YAML` }] : []),
          ]}
          onChange={({ chosen = "off" }) => {
            const strategies = STRATEGIES[String(chosen)];
            const block = strategies === undefined ? undefined : { preemptionStrategies: strategies };
            if (chosen !== "other") onChange(write(manifest, ["fairSharing"], block));
          }}
        />
        <TextField
          {...form}
          path={["admissionFairSharing", "usageHalfLifeTime"]}
          label={t`Half-life of past usage`}
          description={t`For LocalQueues of one ClusterQueue. If empty, past usage is ignored.`}
          placeholder="168h"
        />
      </Section>
      <Section title={t`Waiting for pods`}>
        <TextField
          {...form}
          path={[...READY, "timeout"]}
          label={t`Pods must be ready within`}
          description={t`Otherwise the workload is evicted and requeued. Leave all fields empty to turn this off.`}
          placeholder={waits ? "30m" : t`no waiting`}
        />
        <TextField
          {...form}
          path={[...READY, "recoveryTimeout"]}
          label={t`Recovery time after a pod fails`}
          placeholder={waits ? t`the same time` : t`no waiting`}
        />
        <ChoiceField
          {...form}
          path={[...READY, "blockAdmission"]}
          values="boolean"
          label={t`Admission of other workloads meanwhile`}
          initial="false"
          choices={[
            { value: "false", label: t`continues` },
            { value: "true", label: t`waits until its pods are ready` },
          ]}
        />
        <ChoiceField
          {...form}
          path={[...REQUEUING, "timestamp"]}
          label={t`Requeued in order of`}
          initial="Eviction"
          choices={[
            { value: "Eviction", label: t`Eviction time: behind the other workloads` },
            { value: "Creation", label: t`Creation time: in the original place` },
          ]}
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffLimitCount"]}
          label={t`Retries before deactivation`}
          placeholder={t`no limit`}
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffBaseSeconds"]}
          label={t`First backoff, in seconds`}
          description={t`The backoff doubles with each retry.`}
          placeholder="60"
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffMaxSeconds"]}
          label={t`Longest backoff, in seconds`}
          placeholder="3600"
        />
      </Section>
      <Section title={t`Resources and records`}>
        <ChoiceField
          {...form}
          path={["resources", "quotaCheckStrategy"]}
          label={t`Resources without quota in the queue`}
          initial="BlockUndeclared"
          choices={[
            { value: "BlockUndeclared", label: t`BlockUndeclared: the workload cannot start` },
            { value: "IgnoreUndeclared", label: t`IgnoreUndeclared: the resource is ignored` },
          ]}
        />
        <TextField
          {...form}
          path={[...RETENTION, "afterFinished"]}
          label={t`Keep finished workloads for`}
          placeholder={t`ever`}
        />
        <TextField
          {...form}
          path={[...RETENTION, "afterDeactivatedByKueue"]}
          label={t`Keep jobs of deactivated workloads for`}
          placeholder={t`ever`}
        />
      </Section>
      <LinesField
        label={t`Resources that are ignored`}
        description={t`One prefix per line, like example.com/.`}
        error={faults.get(placeOf(PREFIXES))}
        lines={Array.isArray(prefixes) ? prefixes.map(String) : []}
        onLines={(lines) => onChange(write(manifest, PREFIXES, lines.length === 0 ? undefined : lines))}
      />
      <Text fz="xs" c="var(--kw-muted)">
        {t`Write durations as 90s, 30m or 2h. Resource transformations, DeviceClasses, job kinds, MultiKueue and feature gates are edited in the YAML.`}
      </Text>
    </Stack>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div>
      <Text fw={620} fz="sm" mb={4}>
        {title}
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing="xs">
        {children}
      </SimpleGrid>
    </div>
  );
}

/** A ConfigMap of HAMi: its values are YAML themselves, and stay text. */
export function ConfigMapForm(form: FormProps) {
  const { manifest, faults, onChange } = form;
  const data = read(manifest, ["data"]);
  return (
    <Stack gap="sm">
      <Text fz="sm">
        {t`HAMi's device settings: slices per device, oversubscription of memory and cores, resource names, and the policies that choose nodes and devices. The scheduler uses them immediately; nodes report new capacities once HAMi's device plugin has read them, too.`}
      </Text>
      {Object.entries(isFields(data) ? data : {}).map(([name, text]) => (
        <LinesField
          key={name}
          label={name}
          description={t`YAML, in HAMi's format`}
          error={faults.get(placeOf(["data", name]))}
          lines={String(text).split("\n")}
          verbatim
          onLines={(lines) => onChange(write(manifest, ["data", name], lines.join("\n")))}
        />
      ))}
    </Stack>
  );
}
