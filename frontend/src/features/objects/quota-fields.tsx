/** Quotas as a table of fields: what each flavor has of each resource, with units, and ways to add and remove. */

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Autocomplete, Button, Group, Stack, Table, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useLive } from "@/api/cluster";
import { Icon } from "@/components/icon";
import { WideTable } from "@/components/table/wide-table";
import { read, readText, write } from "@/lib/manifest/object";
import { formatAmountShort } from "@/lib/quantity";
import { amountLabel, amountWords, quantityFault, unitWords } from "./change-words";
import { FieldHelp } from "./field-help";
import { type FormProps, placeOf } from "./form";
import classes from "./objects.module.css";
import {
  type AmountField,
  addFlavor,
  addGroup,
  addResource,
  amountPath,
  coveredResources,
  groupCount,
  type QuotaRow,
  quotaRows,
  removeFlavor,
  removeResource,
} from "./quota-groups";

const FIELDS: readonly AmountField[] = ["nominalQuota", "borrowingLimit", "lendingLimit"];
const RESOURCES = [
  "cpu",
  "memory",
  "nvidia.com/gpu",
  "nvidia.com/total-gpumem",
  "nvidia.com/total-gpucores",
  "pods",
];
const NODE_QUOTAS = ["metadata", "annotations", "kueueweb.io/node-quotas"] as const;

export function QuotaFields({ flavors, ...form }: FormProps & { flavors: readonly string[] }) {
  const groups = Array.from({ length: groupCount(form.manifest) }, (_, at) => at);
  return (
    <Stack gap="sm">
      {groups.map((group) => (
        <QuotaGroup key={group} group={group} flavors={flavors} {...form} />
      ))}
      <NewGroup flavors={flavors} {...form} />
    </Stack>
  );
}

function QuotaGroup({ group, flavors, ...form }: FormProps & { group: number; flavors: readonly string[] }) {
  const { manifest, helpOf, onChange } = form;
  const rows = quotaRows(manifest, group);
  const helpOfAmount = (field: AmountField) =>
    (rows[0] === undefined ? undefined : helpOf?.(amountPath(rows[0], field))) ?? "";
  const used = new Set(rows.map(({ flavor }) => flavor.name));
  const covered = coveredResources(manifest, group);
  return (
    <div className={classes.group}>
      <WideTable>
        <Table fz="sm" verticalSpacing={4} horizontalSpacing="xs" layout="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Flavor and resource</Trans>
              </Table.Th>
              {FIELDS.map((field) => (
                <Table.Th key={field} miw={104}>
                  <Group gap={2} wrap="nowrap">
                    {amountWords()[field]}
                    {helpOfAmount(field) !== "" && (
                      <FieldHelp label={amountWords()[field]} help={helpOfAmount(field)} />
                    )}
                  </Group>
                </Table.Th>
              ))}
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <QuotaFieldsRow key={`${row.flavor.index} ${row.resource.index}`} row={row} {...form} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
      <Group gap="xs" p="xs">
        <AddName
          label={t`Flavor to add`}
          action={t`Add flavor`}
          names={flavors.filter((name) => !used.has(name))}
          onAdd={(name) => onChange(addFlavor(manifest, group, name))}
        />
        <AddName
          label={t`Resource to add`}
          action={t`Add resource`}
          names={RESOURCES.filter((name) => !covered.includes(name))}
          onAdd={(name) => onChange(addResource(manifest, group, name))}
        />
      </Group>
    </div>
  );
}

/** Whether a quota is computed from nodes: then what the form says of it would not count. */
function isComputed({ manifest }: FormProps, { flavor, resource }: QuotaRow): boolean {
  try {
    const cells: unknown = JSON.parse(readText(manifest, NODE_QUOTAS) || "[]");
    if (!Array.isArray(cells)) return false;
    return cells.some((cell) => cell?.flavor === flavor.name && cell?.resource === resource.name);
  } catch {
    return false; // the server says what is wrong with the annotation
  }
}

/** How much of a ClusterQueue's quota is used now; null where that is not known. */
function useUsed({ manifest, isNew }: FormProps, { flavor, resource }: QuotaRow): string | null {
  const name = readText(manifest, ["metadata", "name"]);
  const used = useLive(
    ({ data }) =>
      data?.cluster_queues[name]?.usage.find(
        (quota) => quota.flavor === flavor.name && quota.resource === resource.name,
      )?.used,
  );
  if (isNew || manifest.kind !== "ClusterQueue" || used === undefined) return null;
  return formatAmountShort(resource.name, used);
}

function QuotaFieldsRow({ row, ...form }: FormProps & { row: QuotaRow }) {
  const { manifest, faults, onChange } = form;
  const { flavor, resource } = row;
  const isFirst = resource.index === 0;
  const wanted = form.quota?.flavor === flavor.name && form.quota.resource === resource.name;
  const nominal = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (!wanted) return;
    nominal.current?.focus();
    nominal.current?.select();
  }, [wanted]);
  const used = useUsed(form, row);
  return (
    <Table.Tr style={{ verticalAlign: "top" }} {...(isFirst ? { "data-first": true } : {})}>
      <Table.Td>
        {resource.name}
        <Group gap={2} wrap="nowrap">
          <Text fz="xs" c="var(--kw-muted)">
            {flavor.name}
          </Text>
          {isFirst && (
            <Remove
              label={t`Remove flavor ${flavor.name}`}
              onClick={() => onChange(removeFlavor(manifest, row.group, flavor.index))}
            />
          )}
        </Group>
        {used !== null && (
          <Text fz="xs" c="var(--kw-muted)" className="kw-number" data-live>
            {t`${used} used now`}
          </Text>
        )}
      </Table.Td>
      {FIELDS.map((field) => {
        const path = amountPath(row, field);
        const text = readText(manifest, path);
        return (
          <Table.Td key={field}>
            <TextInput
              ref={field === "nominalQuota" ? nominal : null}
              data-autofocus={(wanted && field === "nominalQuota") || undefined}
              size="xs"
              aria-label={amountLabel(field, resource.name, flavor.name)}
              placeholder={field === "nominalQuota" ? "" : t`none`}
              value={text}
              disabled={field === "nominalQuota" && isComputed(form, row)}
              error={quantityFault(resource.name, text) ?? faults.get(placeOf(path))}
              description={unitWords(resource.name, text)}
              inputWrapperOrder={["input", "description", "error"]}
              onChange={(event) => {
                const value = event.currentTarget.value.trim();
                onChange(write(manifest, path, value === "" && field !== "nominalQuota" ? undefined : value));
              }}
            />
          </Table.Td>
        );
      })}
      <Table.Td>
        {flavor.index === 0 && (
          <Remove
            label={t`Remove resource ${resource.name}`}
            onClick={() => onChange(removeResource(manifest, row.group, resource.name))}
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Remove({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <ActionIcon variant="subtle" color="gray" size="sm" aria-label={label} title={label} onClick={onClick}>
      <Icon name="close" size={14} />
    </ActionIcon>
  );
}

interface AddNameProps {
  label: string;
  action: string;
  names: readonly string[];
  onAdd: (name: string) => void;
}

function AddName({ label, action, names, onAdd }: AddNameProps) {
  const [name, setName] = useState("");
  return (
    <Group gap={4} wrap="nowrap">
      <Autocomplete
        size="xs"
        w={170}
        aria-label={label}
        placeholder={label}
        data={[...names]}
        value={name}
        onChange={setName}
      />
      <Button
        size="xs"
        variant="default"
        disabled={name.trim() === ""}
        onClick={() => {
          onAdd(name.trim());
          setName("");
        }}
      >
        {action}
      </Button>
    </Group>
  );
}

function NewGroup({ manifest, onChange, flavors }: FormProps & { flavors: readonly string[] }) {
  const known = read(manifest, ["spec", "resourceGroups"]);
  const isFirst = !Array.isArray(known) || known.length === 0;
  const covered = new Set(
    Array.from({ length: groupCount(manifest) }, (_, at) => coveredResources(manifest, at)).flat(),
  );
  const resource = RESOURCES.find((name) => !covered.has(name)) ?? "";
  return (
    <Group gap="xs">
      <AddName
        label={t`Flavor of a new group`}
        action={isFirst ? t`Add quota` : t`Add group`}
        names={flavors}
        onAdd={(flavor) => onChange(addGroup(manifest, flavor, resource))}
      />
      <Text fz="xs" c="var(--kw-muted)">
        {isFirst
          ? t`Without quota, the queue admits no workload that requests resources.`
          : t`All resources of a group use the same flavor. To choose a resource's flavor separately, move it to another group.`}
      </Text>
    </Group>
  );
}
