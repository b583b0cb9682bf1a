/** Requests while a moment of the past is shown: they ask for that moment, or are not sent. */
import { t } from "@lingui/core/macro";
import { shownMoment } from "@/lib/moment";

const LOOKS_BACK =
  /\/api\/v1\/(cohorts(\/[^/]+)?|cluster-queues(\/[^/]+)?|local-queues(\/[^/]+\/[^/]+)?|workloads(\/[^/]+(\/[^/]+(\/explanation)?)?)?|nodes(\/[^/]+)?|devices(\/[^/]+)?|device-allocations|checkpoints\/figures)\/$/;
/** Addresses with a history of their own, of the reader, and of names that a filter offers. */
const OF_ANY_TIME =
  /\/api\/v1\/(audit|checkpoints|clusters|decisions|history|manifest-templates|namespaces|notifications(\/status)?|resource-flavors|saved-views|scheduling-cycles|session|workload-priority-classes|workloads\/[^/]+\/[^/]+\/events)\/$/;

/** The request for the shown moment. */
export function atMoment(request: Request): Request {
  const at = shownMoment();
  if (at === null || request.method !== "GET") return request;
  const url = new URL(request.url);
  if (!LOOKS_BACK.test(url.pathname)) return request;
  url.searchParams.set("at", at);
  return new Request(url, request);
}

/** Why a request is not sent while the past is shown; null: it is. Its answer would be of now, beside rows of then. */
export function presentOnly(request: Request): string | null {
  const { pathname } = new URL(request.url);
  if (shownMoment() === null || request.method !== "GET") return null;
  return LOOKS_BACK.test(pathname) || OF_ANY_TIME.test(pathname) ? null : t`Only the current value is known.`;
}
