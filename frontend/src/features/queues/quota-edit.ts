/** Editing quotas: which field an error of the server belongs to, and what of it can be said before asking. */
import type { ResourceGroup } from "@/api/types";
import { InvalidQuantity, parseAmount } from "@/lib/quantity";
import type { LocatedFault } from "@/lib/refusal";

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
