/**
 * A stand-in for the server, for developing pages: `npm run dev:mock -- [empty|small|full|huge|failing|refusing] [port]`, then
 * `KUEUEWEB_BACKEND=http://127.0.0.1:8765 npm run dev`. It decides nothing; numbers drift so that the pages move.
 */
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import type { ReportKind } from "../src/api/reports.ts";
import type { LiveDevice, Session, WorkloadDetail } from "../src/api/types.ts";
import { toYaml } from "../src/lib/manifest/yaml.ts";
import { makeAudit } from "./fixtures/audit.ts";
import { makeFixture, SIZES, totals } from "./fixtures/cluster.ts";
import { makeClusterOverviews, makeCycles, makeDiagnostics } from "./fixtures/clusters.ts";
import { fillDevices } from "./fixtures/devices.ts";
import { makeExplained } from "./fixtures/explanation.ts";
import { makeHistory, makeReport } from "./fixtures/history.ts";
import { makeEffects, makeManifest, readManifest } from "./fixtures/manifests.ts";
import { COHORTS } from "./fixtures/names.ts";
import { makeFlavors, makeNodePods, makeNodes, makeTopologies } from "./fixtures/nodes.ts";
import { makeNotifications, NOTIFICATION_RULES } from "./fixtures/notifications.ts";
import { makeHeadroom, makeUserHoldings } from "./fixtures/queues.ts";
import { makeShadow, makeShadowDifferences } from "./fixtures/shadow.ts";
import { ROLE_BINDINGS, SAVED_VIEWS, USERS } from "./fixtures/users.ts";
import { makeEvents } from "./fixtures/workloads.ts";

/** Only who is there is known, everything else is an error of the server, or is not for this user. */
const FAULTS: Record<string, readonly [number, string, string]> = {
  failing: [500, "InternalError", "The server has failed. It is in its log as request 5f0c2d."],
  refusing: [403, "Forbidden", "No role of ada lets them read this. Ask a cluster admin for one."],
};
const mode = process.argv[2] ?? "full";
const fault = FAULTS[mode];
const sizeName = fault === undefined ? mode : "small";
const port = Number(process.argv[3] ?? 8765);
const size = SIZES[sizeName];
if (size === undefined) throw new Error(`no size ${sizeName}: one of ${Object.keys(SIZES).join(", ")}`);
const fixture = makeFixture(size, Date.now());

const SESSION: Session = {
  authenticated: true,
  user: { username: "ada", is_cluster_admin: true, may_use_admin: true },
  roles: [{ role: "admin", namespace: null, cohort: null, cluster: null }],
  clusters: [
    { name: "default", mode: "schedule" },
    { name: "west", mode: "observe" },
  ],
  login_methods: { password: true, provider: { text: "Log in with Acme", url: "/oidc/login/" } },
};
const CLUSTER = {
  name: "default",
  mode: "schedule",
  serves_kueue_objects: false,
  device_binding: "bind",
  placement: "all",
  accepts_workloads_from: [],
  server_url: "https://10.0.0.1:6443",
  configuration: {},
  telemetry_urls: ["http://dcgm-exporter:9400/metrics"],
  created_at: "2026-01-05T09:00:00Z",
};
let loggedIn = process.argv[4] !== "anonymous";
let epoch = 3;
let sequence = 1;
/** The scheduler is silent: what comes on a reconnect is as old as its last word. */
let quiet = false;
/** Whether a ClusterQueue was saved: each save finds another user's edit, and the next read has it. */
let changedMeanwhile = false;
let lastTime = new Date().toISOString();

function answer(response: ServerResponse, body: unknown, status = 200): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": typeof body === "string" ? "application/yaml" : "application/json",
  });
  response.end(text);
}

const refuse = (
  response: ServerResponse,
  status: number,
  reason: string,
  message: string,
  errors: unknown[] = [],
) => answer(response, { reason, message, errors }, status);

const page = (results: unknown[]) => ({ results, next: null });

const GROUPS = [
  "state",
  "status",
  "namespace",
  "cluster_queue",
  "priority_class",
  "reason",
  "submitted_by",
] as const;

function countWorkloads(query: URLSearchParams): unknown {
  const asked = query.get("by") ?? "";
  const by = GROUPS.find((name) => name === asked) ?? "status";
  const rows = matching(query);
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = asked.startsWith("label:") ? (row.labels[asked.slice(6)] ?? "") : row[by];
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return { total: rows.length, groups: [...counts].map(([value, count]) => ({ value, count })) };
}

function matching(query: URLSearchParams): WorkloadDetail[] {
  const filters = [
    "status",
    "state",
    "cluster_queue",
    "namespace",
    "priority_class",
    "reason",
    "submitted_by",
  ] as const;
  const search = query.get("search") ?? "";
  return fixture.workloads.filter(
    (workload) =>
      filters.every((name) => query.get(name)?.split(",").includes(workload[name]) ?? true) &&
      (query.get("local_queue") === null || workload.local_queue === query.get("local_queue")) &&
      workload.name.includes(search),
  );
}

function listWorkloads(query: URLSearchParams): unknown {
  let rows: (WorkloadDetail & { position?: number })[] = matching(query);
  if (query.get("ordering") === "position") {
    rows = rows
      .filter(({ status }) => status === "Pending")
      .toSorted((a, b) => b.priority - a.priority || a.id - b.id)
      .map((row, place) => ({ ...row, position: place + 1 }));
  }
  const start = Number(query.get("after") ?? 0);
  const limit = Number(query.get("limit") ?? 100);
  return {
    results: rows.slice(start, start + limit),
    next: start + limit < rows.length ? String(start + limit) : null,
  };
}

function workloadAnswer(
  response: ServerResponse,
  workload: WorkloadDetail | undefined,
  verb: string | undefined,
): void {
  if (workload === undefined) refuse(response, 404, "NotFound", "There is no such workload.");
  else if (verb === undefined) answer(response, workload);
  else if (verb === "pods" || verb === "samples") answer(response, page([]));
  else if (verb === "events") answer(response, page(makeEvents(workload)));
  else if (verb === "explanation") answer(response, makeExplained(workload, Date.now()));
  else if (verb === "priority")
    refuse(response, 409, "Conflict", "The workload changed meanwhile. Look again, then decide.");
  else {
    if (verb === "hold") workload.active = false;
    if (verb === "release") workload.active = true;
    if (verb === "cancel") workload.status = workload.state = "Finished";
    answer(response, workload);
  }
}

function overview(): unknown {
  const alive = size?.nodes !== 0;
  const now = new Date().toISOString();
  const reasons = new Map<string, number>();
  const held = fixture.workloads.filter(({ state }) => state === "OnHold").length;
  for (const { state, reason } of fixture.workloads) {
    if (state === "Pending") reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return {
    totals: { pending: [...reasons.values()].reduce((sum, count) => sum + count, 0), held },
    health: {
      roles: [],
      scheduler: { alive: true, holder: "worker-1", epoch, heartbeat_at: now },
      watcher: { alive, last_event_at: alive ? now : null },
      job_kinds: { missing: [], disabled: [] },
      kueue: { alive: false, holder: "", renewed_at: null },
      other_kueueweb: "",
    },
    pending_by_reason: [...reasons].map(([reason, count]) => ({ reason, count })),
  };
}

function body(request: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => resolve(text));
  });
}

/** Answers of addresses that are only read. */
function readMore(kind: string, first: string, second: string, query: URLSearchParams): unknown {
  const { live } = fixture;
  const now = Date.now();
  const nodes = () => makeNodes(live);
  const flavors = () => makeFlavors(live);
  const named = <Row extends { name: string }>(rows: Row[]) =>
    first === "" ? page(rows) : rows.find((row) => row.name === first);
  switch (kind) {
    case "nodes":
      if (second === "pods") return page(makeNodePods(live, first));
      return first === "" ? page(nodes()) : { ...nodes().find((node) => node.name === first), devices: [] };
    case "resource-flavors":
      return named(flavors());
    case "topologies":
      return named(makeTopologies(live));
    case "cohorts":
      if (first === "") return page(COHORTS);
      return COHORTS.filter((cohort) => cohort.name === first).map((cohort) => ({
        ...cohort,
        fair_weight: "1",
        resource_groups: [],
      }))[0];
    case "device-usage":
      return page(
        Object.entries(live.devices).map(([uuid, { node, used_slots }], place) => ({
          cluster: "default",
          uuid,
          node,
          at: new Date(now).toISOString(),
          memory_used_mib: null,
          utilization_percent: used_slots === 0 || place % 9 === 0 ? 0 : 60,
          temperature_celsius: null,
          power_watts: null,
        })),
      );
    case "history":
      return makeHistory(query, now, live);
    case "reports":
      return makeReport(first as ReportKind, now, live, query.getAll("by"));
    case "audit":
      return page(size !== undefined && size.nodes > 0 ? makeAudit(now) : []);
    case "shadow":
      return first === "" ? makeShadow(now) : page(makeShadowDifferences(fixture.workloads, now));
    case "cluster-overviews":
      return page(makeClusterOverviews(live, now));
    case "diagnostics":
      return makeDiagnostics(now);
    case "scheduling-cycles":
      return page(makeCycles(now));
    case "clusters":
      return CLUSTER;
    case "users":
      return page(second === "" ? USERS : []);
    case "role-bindings":
      return page(ROLE_BINDINGS);
    case "saved-views":
      return page(SAVED_VIEWS);
    case "local-queues":
      return second === ""
        ? undefined
        : fixture.localQueues.find((queue) => queue.namespace === first && queue.name === second);
    default:
      return undefined;
  }
}

const DIST = new URL("../dist/", import.meta.url);
const TYPES: Record<string, string> = {
  js: "text/javascript",
  css: "text/css",
  woff2: "font/woff2",
  svg: "image/svg+xml",
};

/** The built front end, as the server has it: assets below /static/, and its one page everywhere else. */
function sendPage(response: ServerResponse, path: string): void {
  const asset = path.startsWith("/static/") ? path.slice("/static/".length) : "index.html";
  const file = new URL(asset, DIST);
  if (!file.href.startsWith(DIST.href) || !existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "Content-Type": TYPES[asset.split(".").at(-1) ?? ""] ?? "text/html" });
  response.end(readFileSync(file));
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://mock");
  if (!url.pathname.startsWith("/api/")) return sendPage(response, url.pathname);
  const [kind, first, second, third] = url.pathname
    .replace("/api/v1/", "")
    .split("/")
    .filter(Boolean)
    .map(decodeURIComponent);
  const text = await body(request);
  if (kind === "auth") {
    const good = first === "logout" || (JSON.parse(text) as { password?: string }).password === "good";
    if (good) loggedIn = first === "login";
    return good
      ? answer(response, {})
      : refuse(response, 400, "InvalidCredentials", "The user name or the password is wrong.");
  }
  if (kind === "session") {
    return answer(
      response,
      loggedIn ? SESSION : { ...SESSION, authenticated: false, user: null, roles: [], clusters: [] },
    );
  }
  if (!loggedIn) return refuse(response, 401, "NotAuthenticated", "Log in first.");
  if (fault !== undefined) return refuse(response, ...fault);
  if (kind === "local-queues" && third === "headroom") {
    const found = fixture.localQueues.find((queue) => queue.namespace === first && queue.name === second);
    if (found === undefined) return refuse(response, 404, "NotFound", `There is no LocalQueue ${second}.`);
    return answer(response, makeHeadroom(found));
  }
  const more = readMore(kind ?? "", first ?? "", second ?? "", url.searchParams);
  if (more !== undefined) return answer(response, more);
  if (kind === "overview") return answer(response, overview());
  if (kind === "decisions") {
    const wanted = url.searchParams.get("workload");
    const action = url.searchParams.get("action");
    const rows = fixture.decisions.filter(
      (row) =>
        (wanted === null || row.workload_name === wanted) && (action === null || row.action === action),
    );
    return answer(response, page(rows.slice(0, Number(url.searchParams.get("limit")))));
  }
  if (kind === "workloads" && first === "counts") return answer(response, countWorkloads(url.searchParams));
  if (kind === "workloads" && first === undefined) return answer(response, listWorkloads(url.searchParams));
  if (kind === "workloads" && second === undefined) {
    const { workloads } = JSON.parse(text) as { workloads: unknown[] };
    return answer(response, { changed: workloads });
  }
  if (kind === "workloads") {
    const found = fixture.workloads.find((each) => each.namespace === first && each.name === second);
    return workloadAnswer(response, found, third);
  }
  if (kind === "cluster-queues" && first !== undefined) {
    const found = fixture.clusterQueues.find((queue) => queue.name === first);
    if (found === undefined) return refuse(response, 404, "NotFound", `There is no ClusterQueue ${first}.`);
    if (second === "user-limits") return answer(response, { results: makeUserHoldings(found) });
    if (request.method !== "PATCH") return answer(response, found);
    return refuse(response, 400, "ValidationFailed", "The ClusterQueue was not changed.", [
      {
        document: 0,
        path: "spec.resourceGroups[0].flavors[0].resources[2].lendingLimit",
        value: "99",
        rule: "must not be more than nominalQuota",
        remedy: "lower it, or raise nominalQuota",
      },
    ]);
  }
  if (kind === "cluster-queues") return answer(response, page(fixture.clusterQueues));
  if (kind === "local-queues") {
    const wanted = url.searchParams.get("cluster_queue");
    return answer(
      response,
      page(fixture.localQueues.filter((queue) => wanted === null || queue.cluster_queue === wanted)),
    );
  }
  if (kind === "notifications" && first === "status")
    return answer(response, { unread: 2, mail_address: "ada@example.org", mail_is_configured: true });
  if (kind === "notifications")
    return answer(response, page(size !== undefined && size.nodes > 0 ? makeNotifications(Date.now()) : []));
  if (kind === "notification-rules")
    return answer(response, page(size !== undefined && size.nodes > 0 ? NOTIFICATION_RULES : []));
  if (kind === "preview") {
    const applied = { dry_run: true, objects: [], warnings: [], skipped: [] };
    const ofObject = url.searchParams.has("effects");
    return answer(response, {
      result: applied,
      currency: "EUR",
      workloads: [],
      manifests: ofObject ? [readManifest(text)] : [],
      effects: ofObject ? makeEffects() : null,
      effects_pending: false,
      effects_problem: "",
    });
  }
  if (kind === "drift" || kind === "published-devices" || kind === "served-objects")
    return answer(response, page([]));
  if (kind === "devices" && first !== undefined && second === undefined)
    return answer(response, {
      mode: fixture.live.devices[first]?.mig_places === undefined ? "hami-core" : "mig",
      numa: 0,
    });
  if (kind === "devices") return answer(response, page([]));
  if (kind === "fragmentation") {
    const report = {
      devices: 256,
      idle_milli: 118_000,
      fragmented_milli: 61_000,
      unused_devices: 36,
      largest: [],
    };
    return answer(response, { cluster: report, flavors: {}, nodes: {} });
  }
  if (kind === "namespaces") return answer(response, page(fixture.namespaces.map((name) => ({ name }))));
  if (kind === "workload-priority-classes")
    return answer(response, page(["low", "normal", "high"].map((name) => ({ name }))));
  if (kind === "manifests" && request.method === "POST") {
    if (!/\bkind"?:/.test(text)) {
      return refuse(response, 400, "InvalidManifest", "Nothing was stored: 1 of 1 documents has a fault.", [
        { document: 0, path: "kind", value: null, rule: "is required", remedy: "name the kind, like Job" },
      ]);
    }
    if (readManifest(text).kind === "ClusterQueue" && text.includes('"resourceVersion":"1"')) {
      changedMeanwhile = true;
      return refuse(response, 412, "Conflict", "grace has changed it 12 s ago; nothing was stored.", [
        {
          document: 0,
          path: "metadata.resourceVersion",
          value: "1",
          rule: "must be 2",
          remedy: "read the object again",
        },
      ]);
    }
    return answer(response, {
      dry_run: url.searchParams.has("dry_run"),
      objects: [{ kind: "Job", namespace: "research", name: "train-on-a-slice", outcome: "created" }],
      warnings: [],
    });
  }
  if (kind === "manifests" && first === "configmap" && second === undefined) {
    return answer(response, { items: [] });
  }
  if (kind === "manifests") {
    const [namespace, name] = third === undefined ? ["", second ?? ""] : [second ?? "", third];
    const object = makeManifest(first ?? "", namespace, name, fixture.clusterQueues, changedMeanwhile) ?? {
      apiVersion: "kueue.x-k8s.io/v1beta2",
      kind: first ?? "",
      metadata: { name, ...(namespace === "" ? {} : { namespace }) },
    };
    changedMeanwhile = false;
    return answer(response, request.headers.accept === "application/json" ? object : toYaml(object));
  }
  refuse(response, 404, "NotFound", `The mock has no ${url.pathname}.`);
}

const server = createServer((request, response) => void serve(request, response));
const sockets = new WebSocketServer({ server, path: "/ws/live/" });

function frame(type: string, data?: unknown): string {
  if (!quiet) lastTime = new Date().toISOString();
  return JSON.stringify({ type, cluster: "default", epoch, sequence, time: lastTime, data });
}

sockets.on("connection", (socket: WebSocket) => {
  if (!loggedIn) return socket.close(4401);
  socket.send(frame("snapshot", fixture.live));
  socket.on("message", () => socket.send(frame("snapshot", fixture.live)));
});

function broadcast(text: string): void {
  for (const socket of sockets.clients) socket.send(text);
}

/** Lets a few devices change hands and queues breathe. */
function drift(): void {
  const uuids = Object.keys(fixture.live.devices);
  const changed: Record<string, LiveDevice> = {};
  for (let count = 0; count < Math.min(3, uuids.length); count += 1) {
    const uuid = uuids[Math.floor(Math.random() * uuids.length)] ?? "";
    const before = fixture.live.devices[uuid];
    if (before === undefined || before.mig_places !== undefined) continue;
    const after = { ...before, slices: [] };
    fillDevices([after], Math.random, (items) => items[Math.floor(Math.random() * items.length)] as never);
    changed[uuid] = after;
    fixture.live.devices[uuid] = after;
  }
  const queues = fixture.live.cluster_queues;
  const names = Object.keys(queues);
  const name = names[Math.floor(Math.random() * names.length)];
  const queue = name === undefined ? undefined : queues[name];
  if (name !== undefined && queue !== undefined) {
    queues[name] = { ...queue, pending: Math.max(0, queue.pending + Math.floor(Math.random() * 7) - 3) };
  }
  fixture.live.totals = totals(fixture.live.devices, fixture.workloads, size?.nodes ?? 0);
  fixture.live.totals.pending += Math.floor(Math.random() * 40);
  sequence += 1;
  broadcast(
    frame("delta", {
      totals: fixture.live.totals,
      devices: changed,
      cluster_queues: name === undefined ? {} : { [name]: queues[name] },
    }),
  );
}

setInterval(() => !quiet && size.nodes > 0 && drift(), 1_000);
setInterval(() => !quiet && broadcast(frame("heartbeat")), 5_000);
process.on("SIGUSR2", () => {
  quiet = !quiet;
  console.log(quiet ? "silent: pages turn stale" : "speaking again");
});
process.on("SIGHUP", () => {
  epoch += 1;
});

server.listen(port, "127.0.0.1", () => console.log(`mock (${sizeName}) on http://127.0.0.1:${port}`));
