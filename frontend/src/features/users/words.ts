/** Roles and accounts in words. */
import { t } from "@lingui/core/macro";
import type { RoleBinding, UserRow } from "@/api/types";

export type RoleName = "viewer" | "submitter" | "admin" | "queue-admin" | "auditor";

export const roles = (): { value: RoleName; label: string }[] => [
  { value: "viewer", label: t`viewer: read-only` },
  { value: "submitter", label: t`submitter: submits, holds, cancels` },
  { value: "admin", label: t`admin: full access` },
  { value: "queue-admin", label: t`queue-admin: edits quotas and queues below a cohort` },
  { value: "auditor", label: t`auditor: read-only, with the audit log` },
];

/** The scope of a role: "below cohort research", "all namespaces". */
export function whereWords({
  cohort,
  in_namespace: namespace,
}: Pick<RoleBinding, "cohort" | "in_namespace">): string {
  if (cohort) return t`below cohort ${cohort}`;
  return namespace ? t`namespace ${namespace}` : t`all namespaces`;
}

export function subjectWords({ user, group }: Pick<RoleBinding, "user" | "group">): string {
  return user ? t`user ${user}` : t`group ${group ?? ""}`;
}

/** Why a binding cannot be taken away on this page; null if it can. */
export function keptBecause({
  name,
  every_cluster,
}: Pick<RoleBinding, "name" | "every_cluster">): string | null {
  if (name.startsWith("oidc-group-role-")) return t`It comes from the setting OIDC_GROUP_ROLES.`;
  return every_cluster ? t`It applies to every cluster: superusers change it on the admin site.` : null;
}

export function originWords(origin: UserRow["origin"]): string {
  return { local: t`Local`, provider: t`Single sign-on`, machine: t`Machine` }[origin];
}
