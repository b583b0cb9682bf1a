/** The filters of the audit as they stand in the URL. */
import { parseTexts } from "./texts";
import { parseTimeRange, type TimeRange } from "./time-range";

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

const TEXTS = ["username", "kind", "namespace", "name", "search", "request_id"] as const;

export type AuditFilters = Partial<Record<(typeof TEXTS)[number], string>> & TimeRange & { verb?: AuditVerb };

export function parseAuditFilters(search: Record<string, unknown>): AuditFilters {
  const filters: AuditFilters = { ...parseTexts(search, TEXTS), ...parseTimeRange(search) };
  const verb = AUDIT_VERBS.find((known) => known === search.verb);
  if (verb !== undefined) filters.verb = verb;
  return filters;
}
