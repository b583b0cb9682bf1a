/** The filters of the audit as they stand in the URL and as the API takes them. */
import { parseTexts } from "./texts";

export const AUDIT_VERBS = [
  "create",
  "update",
  "delete",
  "login",
  "logout",
  "failed-login",
  "refused",
] as const;

export type AuditVerb = (typeof AUDIT_VERBS)[number];

const TEXTS = ["username", "kind", "namespace", "name", "search"] as const;

export type AuditFilters = Partial<Record<(typeof TEXTS)[number], string>> & { verb?: AuditVerb };

export function parseAuditFilters(search: Record<string, unknown>): AuditFilters {
  const filters: AuditFilters = parseTexts(search, TEXTS);
  const verb = AUDIT_VERBS.find((known) => known === search.verb);
  if (verb !== undefined) filters.verb = verb;
  return filters;
}
