/** Resource groups of a manifest: the resources that get one flavor together, and what each flavor has of them. */
import { type Fields, isFields, type Manifest, read, type Value, write } from "@/lib/manifest/object";

const GROUPS = ["spec", "resourceGroups"] as const;

export interface QuotaRow {
  group: number;
  flavor: { index: number; name: string };
  resource: { index: number; name: string };
}

function list(value: Value | undefined): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function groupsOf(manifest: Manifest): Fields[] {
  return list(read(manifest, GROUPS));
}

export function groupCount(manifest: Manifest): number {
  return groupsOf(manifest).length;
}

/** The quotas of a group in the order in which flavors are tried. */
export function quotaRows(manifest: Manifest, group: number): QuotaRow[] {
  return list(groupsOf(manifest)[group]?.flavors).flatMap((flavor, index) =>
    list(flavor.resources).map((resource, at) => ({
      group,
      flavor: { index, name: String(flavor.name ?? "") },
      resource: { index: at, name: String(resource.name ?? "") },
    })),
  );
}

export function coveredResources(manifest: Manifest, group: number): string[] {
  const covered = groupsOf(manifest)[group]?.coveredResources;
  return Array.isArray(covered) ? covered.map(String) : [];
}

export type AmountField = "nominalQuota" | "borrowingLimit" | "lendingLimit";

/** The place of an amount in the manifest. */
export function amountPath({ group, flavor, resource }: QuotaRow, field: AmountField) {
  return [...GROUPS, group, "flavors", flavor.index, "resources", resource.index, field] as const;
}

/** The manifest with its groups changed; without any it has no such field. */
function withGroups(manifest: Manifest, change: (groups: Fields[]) => Fields[]): Manifest {
  const groups = change(groupsOf(manifest));
  return write(
    manifest,
    GROUPS,
    groups.length === 0 && manifest.kind !== "ClusterQueue" ? undefined : groups,
  );
}

function inGroup(manifest: Manifest, at: number, change: (group: Fields) => Fields): Manifest {
  return withGroups(manifest, (groups) =>
    groups.map((group, index) => (index === at ? change(group) : group)),
  );
}

const none = (resource: string): Fields => ({ name: resource, nominalQuota: "0" });

export function addFlavor(manifest: Manifest, group: number, name: string): Manifest {
  const resources = coveredResources(manifest, group).map(none);
  return inGroup(manifest, group, (fields) => ({
    ...fields,
    flavors: [...list(fields.flavors), { name, resources }],
  }));
}

/** A group that has no flavor left goes with the last one. */
export function removeFlavor(manifest: Manifest, group: number, at: number): Manifest {
  const left = inGroup(manifest, group, (fields) => ({
    ...fields,
    flavors: list(fields.flavors).filter((_, index) => index !== at),
  }));
  return withGroups(left, (groups) => groups.filter(({ flavors }) => list(flavors).length > 0));
}

export function addResource(manifest: Manifest, group: number, name: string): Manifest {
  return inGroup(manifest, group, (fields) => ({
    ...fields,
    coveredResources: [...coveredResources(manifest, group), name],
    flavors: list(fields.flavors).map((flavor) => ({
      ...flavor,
      resources: [...list(flavor.resources), none(name)],
    })),
  }));
}

export function removeResource(manifest: Manifest, group: number, name: string): Manifest {
  const left = inGroup(manifest, group, (fields) => ({
    ...fields,
    coveredResources: coveredResources(manifest, group).filter((each) => each !== name),
    flavors: list(fields.flavors).map((flavor) => ({
      ...flavor,
      resources: list(flavor.resources).filter((each) => each.name !== name),
    })),
  }));
  return withGroups(left, (groups) =>
    groups.filter(({ coveredResources: covered }) => Array.isArray(covered) && covered.length > 0),
  );
}

/** A group of one flavor and one resource, to which more can be added. */
export function addGroup(manifest: Manifest, flavor: string, resource: string): Manifest {
  return withGroups(manifest, (groups) => [
    ...groups,
    { coveredResources: [resource], flavors: [{ name: flavor, resources: [none(resource)] }] },
  ]);
}
