/** Finds pages, queues and actions among the names that the page has, and all other names by asking the server. */
import { t } from "@lingui/core/macro";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer, api } from "@/api/client";
import { useCluster, useInCluster, useIsSeveral, useLive } from "@/api/cluster";
import { mayAudit } from "@/api/session";
import type { LiveData, Session } from "@/api/types";
import type { IconName } from "@/components/icon";
import { shownMoment } from "@/lib/moment";
import type { Page } from "./pages";

/** The target of an entry, in the router's form. */
export interface Target {
  to: string;
  params?: Record<string, string>;
  search?: Record<string, string>;
}

export interface Entry {
  id: string;
  icon: IconName;
  label: string;
  /** Beside the label: what it is, and how it is. */
  note: string;
  /** Words that find it too. */
  words?: string;
  target: Target;
}

export interface EntryGroup {
  title: string;
  entries: Entry[];
}

const MAX_OF_KIND = 6;
/** The server searches from here on: one letter finds everything. */
const MIN_SEARCHED = 2;

/** The first of what the server finds, of each kind. */
function findQuery(cluster: string, search: string, users: boolean, flows: boolean) {
  return queryOptions({
    queryKey: ["find", cluster, search, users, flows] as const,
    queryFn: async ({ signal }) => {
      const query = { cluster, search, limit: MAX_OF_KIND };
      const [workloads, found, nodes, people] = await Promise.all([
        answer(api.GET("/api/v1/workloads/", { params: { query }, signal })),
        flows ? answer(api.GET("/api/v1/job-flows/", { params: { query }, signal })) : null,
        answer(api.GET("/api/v1/nodes/", { params: { query }, signal })),
        users
          ? answer(api.GET("/api/v1/users/", { params: { query: { search, limit: MAX_OF_KIND } }, signal }))
          : null,
      ]);
      return {
        workloads: workloads.results,
        flows: found?.results ?? [],
        nodes: nodes.results,
        users: people?.results ?? [],
      };
    },
    staleTime: 5_000,
  });
}

/** Each word of the text is somewhere in the entry. */
export function matches({ label, note, words = "" }: Entry, text: string): boolean {
  const known = `${label} ${note} ${words}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => known.includes(word));
}

export function pageEntries(pages: readonly Page[]): Entry[] {
  return pages.map(({ to, label, icon, key }) => ({
    id: `page ${to}`,
    icon,
    label,
    note: `g ${key}`,
    target: { to },
  }));
}

/** The reader's tasks: pages by the words that people search for. */
function actionEntries(): Entry[] {
  const entry = (label: string, icon: IconName, to: string, search: Record<string, string>): Entry => ({
    id: `action ${label}`,
    icon,
    label,
    note: "",
    target: { to, search },
  });
  return [
    entry(t`Show waiting workloads`, "workloads", "/workloads", { state: "Pending" }),
    entry(t`Show failed workloads`, "workloads", "/workloads", { state: "Failed" }),
    entry(t`Release held workloads`, "play", "/workloads", { state: "OnHold" }),
    entry(t`Show free GPUs`, "gpus", "/gpus", { state: "free" }),
    entry(t`Show unhealthy GPUs`, "alert", "/gpus", { state: "unhealthy" }),
    entry(t`Who preempted whom`, "decisions", "/decisions", { action: "Preempt" }),
    entry(t`Idle GPUs by user`, "reports", "/reports", { report: "idle", by: "user" }),
    entry(t`GPU hours by user`, "reports", "/reports", { report: "usage", by: "user" }),
  ];
}

export function queueEntries(data: Pick<LiveData, "cluster_queues" | "cohorts"> | null): Entry[] {
  if (data === null) return [];
  const queues = Object.entries(data.cluster_queues).map(([name, { pending, inadmissible, cohort }]) => ({
    id: `queue ${name}`,
    icon: "queues" as const,
    label: name,
    note: t`ClusterQueue, ${pending + inadmissible} waiting`,
    words: `${cohort} quota`,
    target: { to: "/queues/$name", params: { name } },
  }));
  const cohorts = Object.keys(data.cohorts).map((name) => ({
    id: `cohort ${name}`,
    icon: "flavors" as const,
    label: name,
    note: t`Cohort`,
    target: { to: "/cohorts/$name", params: { name } },
  }));
  return [...queues, ...cohorts];
}

const MIN_UUID = 4;

/** Devices by a part of their uuid. */
export function deviceEntries(devices: LiveData["devices"] | undefined, text: string): Entry[] {
  if (devices === undefined || text.length < MIN_UUID) return [];
  return Object.entries(devices)
    .filter(([uuid]) => uuid.toLowerCase().includes(text.toLowerCase()))
    .slice(0, MAX_OF_KIND)
    .map(([uuid, { node, index }]) => ({
      id: `device ${uuid}`,
      icon: "gpus",
      label: uuid,
      note: t`device ${index} of ${node}`,
      target: { to: "/gpus", search: { node, device: uuid } },
    }));
}

/** The words of "drain gpu-node-03" that are not a name of an action. */
export function nameIn(text: string): string {
  return text.replace(/^\s*(drain|cordon|uncordon|hold|cancel|release|who holds)\s+/i, "").trim();
}

export interface Found {
  groups: EntryGroup[];
  searching: boolean;
}

export function useFound(session: Session, pages: readonly Page[], text: string): Found {
  const cluster = useCluster();
  const inCluster = useInCluster();
  const data = useLive((live) => live.data);
  const name = nameIn(text);
  const several = useIsSeveral();
  const isNow = shownMoment() === null; // users and flows are not known of the past
  const searched = useQuery({
    ...findQuery(cluster, name, isNow && mayAudit(session), isNow && !several),
    enabled: name.length >= MIN_SEARCHED,
  });
  const remote = name.length >= MIN_SEARCHED ? searched.data : undefined;
  const local = (entries: Entry[], wanted: string) =>
    wanted === "" ? [] : entries.filter((entry) => matches(entry, wanted)).slice(0, MAX_OF_KIND);
  const groups: EntryGroup[] = [
    {
      title: t`Pages`,
      entries: text === "" ? pageEntries(pages) : local(pageEntries(pages), text.trim()),
    },
    {
      title: t`Workloads`,
      entries: (remote?.workloads ?? []).map((row) => ({
        id: `workload ${row.cluster} ${row.namespace}/${row.name}`,
        icon: "workloads",
        label: `${row.namespace}/${row.name}`,
        note: row.state,
        target: {
          to: "/workloads/$namespace/$name",
          params: { namespace: row.namespace, name: row.name },
          ...inCluster(row),
        },
      })),
    },
    {
      title: t`Flows`,
      entries: (remote?.flows ?? []).map(({ namespace, name: flow, phase }) => ({
        id: `flow ${namespace}/${flow}`,
        icon: "flows",
        label: `${namespace}/${flow}`,
        note: phase,
        target: { to: "/flows/$namespace/$name", params: { namespace, name: flow } },
      })),
    },
    { title: t`Queues`, entries: local(queueEntries(data), name) },
    {
      title: t`Nodes`,
      entries: (remote?.nodes ?? []).map((row) => ({
        id: `node ${row.cluster} ${row.name}`,
        icon: "nodes",
        label: row.name,
        note: t`cordon, drain, pods, GPUs`,
        target: { to: "/nodes/$name", params: { name: row.name }, ...inCluster(row) },
      })),
    },
    { title: t`GPUs`, entries: deviceEntries(data?.devices, name) },
    {
      title: t`Users`,
      entries: (remote?.users ?? []).map(({ username }) => ({
        id: `user ${username}`,
        icon: "user",
        label: username,
        note: t`workloads of the user`,
        target: { to: "/workloads", search: { submitted_by: username } },
      })),
    },
    { title: t`Actions`, entries: text === "" ? actionEntries() : local(actionEntries(), text.trim()) },
  ];
  return { groups: groups.filter(({ entries }) => entries.length > 0), searching: searched.isFetching };
}
