/** The one door to the REST API: cookies, CSRF, and errors as the server located them. */
import type { ErrorBody, FieldError } from "./types";

const ROOT = "/api/v1/";

/** A refusal by the server, or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** A stable token, for code. */
    readonly reason: string,
    /** A sentence, for people. */
    message: string,
    readonly errors: FieldError[] = [],
  ) {
    super(message);
  }

  get isUnauthenticated(): boolean {
    return this.status === 401 || this.reason === "NotAuthenticated";
  }
}

export type QueryValue = string | number | boolean | null | undefined | readonly string[];

export interface RequestOptions {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  json?: unknown;
  /** A YAML body. */
  yaml?: string;
  signal?: AbortSignal;
}

/** The address of an endpoint below /api/v1/; empty values are left out, lists are repeated. */
export function endpoint(path: string, query: Record<string, QueryValue> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const item of Array.isArray(value) ? value : [value]) search.append(name, String(item));
  }
  const text = search.toString();
  return `${ROOT}${path}${text === "" ? "" : `?${text}`}`;
}

/** Path segments, each escaped, with the slash at the end: path("workloads", "ns", "name") */
export function path(...segments: string[]): string {
  return `${segments.map(encodeURIComponent).join("/")}/`;
}

function csrfToken(): string {
  return /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? "";
}

async function send(address: string, options: RequestOptions): Promise<Response> {
  const method = options.method ?? "GET";
  const headers = new Headers({ Accept: "application/json" });
  if (method !== "GET") headers.set("X-CSRFToken", csrfToken());
  let body: string | null = null;
  if (options.json !== undefined) {
    headers.set("Content-Type", "application/json");
    body = JSON.stringify(options.json);
  } else if (options.yaml !== undefined) {
    headers.set("Content-Type", "application/yaml");
    body = options.yaml;
  }
  let response: Response;
  try {
    response = await fetch(address, {
      method,
      headers,
      body,
      credentials: "same-origin",
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(
      0,
      "Unreachable",
      "The server does not answer. Check the connection; this page tries again.",
    );
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  let body: Partial<ErrorBody> & { detail?: string } = {};
  try {
    body = JSON.parse(text) as typeof body;
  } catch {
    // A proxy or a crash answers in HTML; the status line says more than its text.
  }
  const message =
    body.message ?? body.detail ?? `The server answered ${response.status} ${response.statusText}`.trim();
  return new ApiError(response.status, body.reason ?? `Status${response.status}`, message, body.errors ?? []);
}

/** The answer's JSON; undefined for an empty one. Throws ApiError. */
export async function request<Answer>(address: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await send(address, options);
  if (response.status === 204) return undefined as Answer;
  return (await response.json()) as Answer;
}

/** The answer as text, for manifests. Throws ApiError. */
export async function requestText(address: string, options: RequestOptions = {}): Promise<string> {
  return (await send(address, options)).text();
}
