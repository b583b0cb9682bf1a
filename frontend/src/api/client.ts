/** The one door to the REST API, typed by its OpenAPI document: cookies, CSRF, and errors as the server located them. */
import { t } from "@lingui/core/macro";
import createClient from "openapi-fetch";
import { basePath } from "@/lib/url/base-path";
import { atMoment, presentOnly } from "./past/requests";
import type { paths } from "./schema.gen";
import type { ErrorBody, FieldError } from "./types";

/** A refusal by the server, or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** A stable token, for code. */
    readonly reason: string,
    /** A sentence, for people. */
    message: string,
    readonly errors: FieldError[] = [],
    /** A 412: the object as it is now, null where it does not exist. */
    readonly current: unknown = null,
  ) {
    super(message);
  }

  get isUnauthenticated(): boolean {
    return this.status === 401 || this.reason === "NotAuthenticated";
  }
}

function csrfToken(): string {
  return /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? "";
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: Partial<ErrorBody> & { current?: unknown } = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // A proxy or a crash answers in HTML; the status line says more than its text.
  }
  const message = body.message ?? t`The server answered ${response.status} ${response.statusText}`.trim();
  const reason = body.reason ?? `Status${response.status}`;
  return new ApiError(response.status, reason, message, body.errors ?? [], body.current ?? null);
}

/** Sends a request as the logged-in user; throws ApiError unless it was done. */
export async function send(asked: Request): Promise<Response> {
  const unknown = presentOnly(asked);
  if (unknown !== null) throw new ApiError(404, "PresentOnly", unknown);
  const request = atMoment(asked);
  if (request.method !== "GET") request.headers.set("X-CSRFToken", csrfToken());
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(
      0,
      "Unreachable",
      t`The server does not answer. Check the connection; this page tries again.`,
    );
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

// Pages read JSON alone, also where an address has YAML or a stream of events, too.
export const api = createClient<paths, "application/json">({
  baseUrl: `${window.location.origin}${basePath}`,
  credentials: "same-origin",
  fetch: send,
});

/** The body of an answer; refusals were thrown as ApiError before. */
export async function answer<Body>(call: Promise<{ data?: Body }>): Promise<Body> {
  return (await call).data as Body;
}

/** The query of a page after a cursor; none for the first. */
export function after(cursor: string | null): { after?: string } {
  return cursor === null ? {} : { after: cursor };
}

const MAX_PAGE = 1000;

/** All rows of a list, page by page. */
export async function everyRow<Row>(
  read: (page: { after?: string; limit: number }) => Promise<{ results: Row[]; next: string | null }>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const page = await read({ ...after(cursor), limit: MAX_PAGE });
    rows.push(...page.results);
    cursor = page.next;
  } while (cursor !== null);
  return rows;
}
