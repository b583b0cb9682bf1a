/** Editing quotas: which field an error of the server belongs to, and what of it can be said before asking. */
import { t } from "@lingui/core/macro";
import type { QuotaChange } from "@/api/queues";
import type { ClusterQueue, ResourceGroup } from "@/api/types";
import { InvalidQuantity, parseAmount } from "@/lib/quantity";
import type { LocatedFault } from "@/lib/words/refusal";

export const QUOTA_FIELDS = ["nominal_quota", "borrowing_limit", "lending_limit"] as const;
export type QuotaField = (typeof QUOTA_FIELDS)[number];

/** "group.flavor.resource.field", by their places. */
export type FieldKey = string;

export function fieldKey(group: number, flavor: number, resource: number, field: QuotaField): FieldKey {
  return [group, flavor, resource, field].join(".");
}

const PATH =
  /resource_?groups\[?\.?(\d+)\]?\.flavors\[?\.?(\d+)\]?\.resources\[?\.?(\d+)\]?\.(nominal_?quota|borrowing_?limit|lending_?limit)/i;

/** The field that a path of the manifest (resourceGroups[0]...) or of our JSON (resource_groups.0...) points at, or null. */
export function fieldOfPath(path: string): FieldKey | null {
  const match = PATH.exec(path);
  if (match === null) return null;
  const [, group, flavor, resource, name = ""] = match;
  const field = QUOTA_FIELDS.find((known) => known.replace("_", "") === name.replace("_", "").toLowerCase());
  return field === undefined ? null : fieldKey(Number(group), Number(flavor), Number(resource), field);
}

/** The server's faults by field, and those that belong to no field of the form. */
export function sortFaults(faults: readonly LocatedFault[]): {
  fields: Map<FieldKey, string>;
  others: LocatedFault[];
} {
  const fields = new Map<FieldKey, string>();
  const others: LocatedFault[] = [];
  for (const fault of faults) {
    const key = fieldOfPath(fault.path);
    if (key === null) others.push(fault);
    else fields.set(key, [fault.rule, fault.remedy].filter((part) => part !== "").join(" – "));
  }
  return { fields, others };
}

/** What is no quantity; the rules between fields are the server's. */
export function invalidQuantities(groups: readonly ResourceGroup[]): Map<FieldKey, string> {
  const faults = new Map<FieldKey, string>();
  groups.forEach((group, g) => {
    group.flavors.forEach((flavor, f) => {
      flavor.resources.forEach((resource, r) => {
        for (const field of QUOTA_FIELDS) {
          const text = resource[field];
          if (text === null) continue;
          try {
            parseAmount(resource.name, text);
          } catch (error) {
            if (!(error instanceof InvalidQuantity)) throw error;
            faults.set(fieldKey(g, f, r, field), error.message);
          }
        }
      });
    });
  });
  return faults;
}

/** The groups with one field changed; an empty limit is none. */
export function withField(
  groups: readonly ResourceGroup[],
  [group, flavor, resource]: readonly [number, number, number],
  field: QuotaField,
  text: string,
): ResourceGroup[] {
  const copy = structuredClone(groups) as ResourceGroup[];
  const quota = copy[group]?.flavors[flavor]?.resources[resource];
  if (quota === undefined) return copy;
  if (field === "nominal_quota") quota.nominal_quota = text;
  else quota[field] = text === "" ? null : text;
  return copy;
}

/** What the form can change. */
export type Edited = Pick<ClusterQueue, "resource_groups" | "stop_policy" | "fair_weight">;

/** One field that differs between two versions; the values as they are written, "none" for no limit. */
export interface FieldDifference {
  label: string;
  value: string;
}

export function quotaFieldWords(): Record<QuotaField, string> {
  return {
    nominal_quota: t`Nominal quota`,
    borrowing_limit: t`Borrowing limit`,
    lending_limit: t`Lending limit`,
  };
}

export function quotaLabel(field: QuotaField, resource: string, flavor: string): string {
  return t`${quotaFieldWords()[field]} of ${resource}, flavor ${flavor}`;
}

/** Every field by a key that stays when groups are reordered. */
function fieldsOf({ resource_groups, stop_policy, fair_weight }: Edited): Map<string, string> {
  const found = new Map([
    [t`stop policy`, stop_policy as string],
    [t`fair weight`, fair_weight],
  ]);
  for (const group of resource_groups) {
    for (const flavor of group.flavors) {
      for (const resource of flavor.resources) {
        for (const field of QUOTA_FIELDS) {
          const label = quotaLabel(field, resource.name, flavor.name);
          found.set(label, resource[field] ?? "none");
        }
      }
    }
  }
  return found;
}

/** The fields of `after` that differ from `before`. */
export function differences(before: Edited, after: Edited): FieldDifference[] {
  const known = fieldsOf(before);
  return [...fieldsOf(after)].flatMap(([label, value]) =>
    known.get(label) === value ? [] : [{ label, value }],
  );
}

/** What somebody else changed since `seen`, of the very fields that the form changes. */
export function conflicts(opened: Edited, mine: Edited, now: Edited, seen: Edited): FieldDifference[] {
  const ours = new Map(differences(opened, mine).map(({ label, value }) => [label, value]));
  return differences(seen, now).filter(({ label, value }) => ours.has(label) && ours.get(label) !== value);
}

/** What to send: the fields that the user changed and nothing else, on top of what is there now. */
export function changesToSend(opened: Edited, mine: Edited, now: Edited): QuotaChange {
  const ours = new Map(differences(opened, mine).map(({ label, value }) => [label, value]));
  const change: QuotaChange = {};
  if (ours.has(t`stop policy`)) change.stop_policy = mine.stop_policy;
  if (ours.has(t`fair weight`)) change.fair_weight = mine.fair_weight;
  if ([...ours.keys()].some((label) => label !== t`stop policy` && label !== t`fair weight`)) {
    change.resource_groups = structuredClone(now.resource_groups) as ResourceGroup[];
    for (const group of change.resource_groups) {
      for (const flavor of group.flavors) {
        for (const resource of flavor.resources) {
          for (const field of QUOTA_FIELDS) {
            const value = ours.get(quotaLabel(field, resource.name, flavor.name));
            if (value === undefined) continue;
            if (field === "nominal_quota") resource.nominal_quota = value;
            else resource[field] = value === "none" ? null : value;
          }
        }
      }
    }
  }
  return change;
}
