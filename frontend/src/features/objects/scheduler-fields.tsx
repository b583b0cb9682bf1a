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

/** What the block says; one without strategies stands for Kueue's own, which are both. */
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
          description={t`Fair sharing in cohorts, and the shares that decide a preemption.`}
          faults={new Map([["chosen", faults.get(placeOf(FAIR)) ?? ""]])}
          manifest={{ ...manifest, chosen: fair }}
          path={["chosen"]}
          initial="off"
          isNew={form.isNew}
          choices={[
            { value: "off", label: t`Off: by priority and time` },
            { value: "final", label: t`Until the shares are level (LessThanOrEqualToFinalShare)` },
            { value: "initial", label: t`While the other's share is larger (LessThanInitialShare)` },
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
          description={t`For LocalQueues of one ClusterQueue. Empty: past usage does not count.`}
          placeholder="168h"
        />
      </Section>
      <Section title={t`Waiting for pods`}>
        <TextField
          {...form}
          path={[...READY, "timeout"]}
          label={t`Pods must be ready within`}
          description={t`Otherwise the workload is evicted and requeued. Leave all of these empty to turn waiting off.`}
          placeholder={waits ? "30m" : t`does not wait`}
        />
        <TextField
          {...form}
          path={[...READY, "recoveryTimeout"]}
          label={t`Recovery time after a pod fails`}
          placeholder={waits ? t`the same time` : t`does not wait`}
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
            { value: "Eviction", label: t`Eviction: behind the others` },
            { value: "Creation", label: t`Creation: where it was` },
          ]}
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffLimitCount"]}
          label={t`Tries before it is deactivated`}
          placeholder={t`no limit`}
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffBaseSeconds"]}
          label={t`First pause, in seconds`}
          description={t`It doubles with each try.`}
          placeholder="60"
        />
        <NumberField
          {...form}
          path={[...REQUEUING, "backoffMaxSeconds"]}
          label={t`Longest pause, in seconds`}
          placeholder="3600"
        />
      </Section>
      <Section title={t`Resources and records`}>
        <ChoiceField
          {...form}
          path={["resources", "quotaCheckStrategy"]}
          label={t`A resource without quota in the queue`}
          initial="BlockUndeclared"
          choices={[
            { value: "BlockUndeclared", label: t`BlockUndeclared: the workload does not start` },
            { value: "IgnoreUndeclared", label: t`IgnoreUndeclared: it does not count` },
          ]}
        />
        <TextField
          {...form}
          path={[...RETENTION, "afterFinished"]}
          label={t`Finished workloads are kept for`}
          placeholder={t`ever`}
        />
        <TextField
          {...form}
          path={[...RETENTION, "afterDeactivatedByKueue"]}
          label={t`Jobs of deactivated workloads for`}
          placeholder={t`ever`}
        />
      </Section>
      <LinesField
        label={t`Resources that are not charged`}
        description={t`One prefix per line, like example.com/.`}
        error={faults.get(placeOf(PREFIXES))}
        lines={Array.isArray(prefixes) ? prefixes.map(String) : []}
        onLines={(lines) => onChange(write(manifest, PREFIXES, lines.length === 0 ? undefined : lines))}
      />
      <Text fz="xs" c="var(--kw-muted)">
        {t`Durations are written like 90s, 30m or 2h. Transformations of resources, DeviceClasses, kinds of jobs, MultiKueue and feature gates are in the YAML.`}
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
        {t`HAMi's settings of devices: into how many slices a device is cut, how far memory and cores are oversold, what resources are called, and which policy chooses nodes and devices. The scheduler reads them at once; nodes say again what they have when HAMi's device plugin has read them too.`}
      </Text>
      {Object.entries(isFields(data) ? data : {}).map(([name, text]) => (
        <LinesField
          key={name}
          label={name}
          description={t`YAML, as HAMi reads it`}
          error={faults.get(placeOf(["data", name]))}
          lines={String(text).split("\n")}
          verbatim
          onLines={(lines) => onChange(write(manifest, ["data", name], lines.join("\n")))}
        />
      ))}
    </Stack>
  );
}
