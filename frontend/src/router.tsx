/** Every URL of the front end. */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
  retainSearchParams,
} from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { parseCalendarPeriod } from "@/lib/calendar-period";
import { parseMoment } from "@/lib/moment";
import { parseAuditFilters } from "@/lib/url/audit-filters";
import { basePath } from "@/lib/url/base-path";
import { parseChartRange } from "@/lib/url/chart-range";
import { ALL_CLUSTERS } from "@/lib/url/clusters";
import { parseDecisionFilters } from "@/lib/url/decision-filters";
import { parseFlowFilters } from "@/lib/url/flow-filters";
import { parseGpuFilters } from "@/lib/url/gpu-filters";
import { parseNodeFilters } from "@/lib/url/node-filters";
import { parseReportFilters } from "@/lib/url/report-filters";
import { parseOpened, parseWorkloadFilters, parseWorkloadView } from "@/lib/url/workload-filters";
import { RootRoute } from "@/routes/root";
import { RouteError } from "@/routes/route-error";
import { RouteNotFound } from "@/routes/route-not-found";

interface RootSearch {
  cluster?: string;
  /** The moment of the past that is shown. */
  at?: string;
}

const rootRoute = createRootRouteWithContext<{ queries: QueryClient }>()({
  validateSearch: (search: Record<string, unknown>): RootSearch => ({
    ...(typeof search.cluster === "string" && search.cluster !== "" ? { cluster: search.cluster } : {}),
    ...parseMoment(search),
  }),
  search: { middlewares: [retainSearchParams(["cluster", "at"])] },
  component: RootRoute,
  notFoundComponent: RouteNotFound,
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: (search: Record<string, unknown>): { next?: string; refused?: string } => ({
    ...(typeof search.next === "string" ? { next: search.next } : {}),
    ...(typeof search.refused === "string" ? { refused: search.refused } : {}),
  }),
  component: lazyRouteComponent(() => import("@/routes/login"), "LoginRoute"),
});

const appRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "app",
  beforeLoad: async ({ context, location }) => {
    const session = await context.queries.ensureQueryData(sessionQuery());
    if (!session.authenticated) throw redirect({ to: "/login", search: { next: location.href } });
  },
  component: lazyRouteComponent(() => import("@/routes/app"), "AppRoute"),
  errorComponent: RouteError,
});

const overviewRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/",
  validateSearch: parseChartRange,
  staticData: { looksBack: true, spansClusters: true, takesWidth: true },
  // A user of several clusters who names none begins with all of them.
  beforeLoad: async ({ context, search }) => {
    const { clusters } = await context.queries.ensureQueryData(sessionQuery());
    if (search.cluster === undefined && clusters.length > 1) {
      throw redirect({ to: "/", search: { ...search, cluster: ALL_CLUSTERS }, replace: true });
    }
  },
  component: lazyRouteComponent(() => import("@/routes/overview"), "OverviewRoute"),
});

const workloadsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/workloads",
  staticData: { looksBack: true, spansClusters: true, takesWidth: true },
  validateSearch: (search: Record<string, unknown>) => ({
    ...parseWorkloadFilters(search),
    ...parseWorkloadView(search),
    ...parseOpened(search),
  }),
  component: lazyRouteComponent(() => import("@/routes/workloads"), "WorkloadsRoute"),
});

const workloadRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/workloads/$namespace/$name",
  staticData: { looksBack: true },
  component: lazyRouteComponent(() => import("@/routes/workload"), "WorkloadRoute"),
});

const queuesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/queues",
  staticData: { looksBack: true, spansClusters: true, takesWidth: true },
  validateSearch: (search: Record<string, unknown>): { search?: string } =>
    typeof search.search === "string" && search.search !== "" ? { search: search.search } : {},
  component: lazyRouteComponent(() => import("@/routes/queues/queues"), "QueuesRoute"),
});

const clusterQueueRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/queues/$name",
  staticData: { looksBack: true, takesWidth: true },
  validateSearch: parseChartRange,
  component: lazyRouteComponent(() => import("@/routes/queues/cluster-queue"), "ClusterQueueRoute"),
});

const gpusRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/gpus",
  staticData: { looksBack: true, spansClusters: true, takesWidth: true },
  validateSearch: (search: Record<string, unknown>) => ({
    ...parseGpuFilters(search),
    ...parseChartRange(search),
  }),
  component: lazyRouteComponent(() => import("@/routes/hardware/gpus"), "GpusRoute"),
});

const nodesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/nodes",
  staticData: { looksBack: true, spansClusters: true },
  validateSearch: (search: Record<string, unknown>) => ({
    ...parseNodeFilters(search),
    ...parseChartRange(search),
  }),
  component: lazyRouteComponent(() => import("@/routes/hardware/nodes"), "NodesRoute"),
});

const nodeRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/nodes/$name",
  staticData: { looksBack: true },
  component: lazyRouteComponent(() => import("@/routes/hardware/node"), "NodeRoute"),
});

const flavorsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/flavors",
  staticData: { spansClusters: true },
  component: lazyRouteComponent(() => import("@/routes/hardware/flavors"), "FlavorsRoute"),
});

const flowsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/flows",
  validateSearch: parseFlowFilters,
  component: lazyRouteComponent(() => import("@/routes/queues/flows"), "FlowsRoute"),
});

const flowRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/flows/$namespace/$name",
  component: lazyRouteComponent(() => import("@/routes/queues/flow"), "FlowRoute"),
});

const reservationsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/reservations",
  validateSearch: parseCalendarPeriod,
  component: lazyRouteComponent(() => import("@/routes/hardware/reservations"), "ReservationsRoute"),
});

const flavorRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/flavors/$name",
  component: lazyRouteComponent(() => import("@/routes/hardware/flavor"), "FlavorRoute"),
});

const topologyRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/topologies/$name",
  staticData: { takesWidth: true },
  component: lazyRouteComponent(() => import("@/routes/hardware/topology"), "TopologyRoute"),
});

const cohortRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/cohorts/$name",
  staticData: { looksBack: true },
  validateSearch: parseChartRange,
  component: lazyRouteComponent(() => import("@/routes/queues/cohort"), "CohortRoute"),
});

const localQueueRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/local-queues/$namespace/$name",
  staticData: { looksBack: true },
  validateSearch: parseChartRange,
  component: lazyRouteComponent(() => import("@/routes/queues/local-queue"), "LocalQueueRoute"),
});

const decisionsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/decisions",
  staticData: { spansClusters: true, takesWidth: true },
  validateSearch: parseDecisionFilters,
  component: lazyRouteComponent(() => import("@/routes/records/decisions"), "DecisionsRoute"),
});

const shadowRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/shadow",
  staticData: { spansClusters: true },
  component: lazyRouteComponent(() => import("@/routes/records/shadow"), "ShadowRoute"),
});

const clusterRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/cluster",
  component: lazyRouteComponent(() => import("@/routes/records/cluster"), "ClusterRoute"),
});

const accuracyRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/accuracy",
  component: lazyRouteComponent(() => import("@/routes/records/accuracy"), "AccuracyRoute"),
});

const whatIfRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/what-if",
  validateSearch: (search: Record<string, unknown>): { question?: number } =>
    Number.isSafeInteger(Number(search.question)) && Number(search.question) > 0
      ? { question: Number(search.question) }
      : {},
  component: lazyRouteComponent(() => import("@/routes/queues/what-if"), "WhatIfRoute"),
});

const cyclesRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/cycles",
  component: lazyRouteComponent(() => import("@/routes/records/cycles"), "CyclesRoute"),
});

const auditRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/audit",
  staticData: { spansClusters: true },
  validateSearch: parseAuditFilters,
  component: lazyRouteComponent(() => import("@/routes/records/audit"), "AuditRoute"),
});

const reportsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/reports",
  staticData: { spansClusters: true },
  validateSearch: parseReportFilters,
  component: lazyRouteComponent(() => import("@/routes/records/reports"), "ReportsRoute"),
});

const notificationsRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/notifications",
  staticData: { spansClusters: true },
  component: lazyRouteComponent(() => import("@/routes/records/notifications"), "NotificationsRoute"),
});

const usersRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/users",
  staticData: { spansClusters: true },
  validateSearch: (search: Record<string, unknown>): { tab?: "accounts" } =>
    search.tab === "accounts" ? { tab: "accounts" } : {},
  component: lazyRouteComponent(() => import("@/routes/records/users"), "UsersRoute"),
});

const deviceRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "/device",
  validateSearch: (search: Record<string, unknown>): { code?: string } =>
    typeof search.code === "string" && search.code !== "" ? { code: search.code } : {},
  component: lazyRouteComponent(() => import("@/routes/device"), "DeviceRoute"),
});

const notFoundRoute = createRoute({
  getParentRoute: () => appRoute,
  path: "$",
  component: RouteNotFound,
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  appRoute.addChildren([
    overviewRoute,
    workloadsRoute,
    workloadRoute,
    queuesRoute,
    clusterQueueRoute,
    gpusRoute,
    nodesRoute,
    nodeRoute,
    flavorsRoute,
    flowsRoute,
    flowRoute,
    reservationsRoute,
    flavorRoute,
    topologyRoute,
    cohortRoute,
    localQueueRoute,
    decisionsRoute,
    shadowRoute,
    clusterRoute,
    cyclesRoute,
    whatIfRoute,
    accuracyRoute,
    auditRoute,
    reportsRoute,
    notificationsRoute,
    usersRoute,
    deviceRoute,
    notFoundRoute,
  ]),
]);

export function createAppRouter(queries: QueryClient) {
  return createRouter({
    routeTree,
    basepath: basePath || "/",
    context: { queries },
    defaultPreload: "intent",
    scrollRestoration: true,
    // What no page declares is dropped from the URL instead of reaching the API.
    search: { strict: true },
    defaultErrorComponent: RouteError,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
  interface StaticDataRouteOption {
    /** Whether the page may show several clusters; the others ask for one of them. */
    spansClusters?: boolean;
    /** Whether the page has so much beside each other that it takes all of the widest screens. */
    takesWidth?: boolean;
    /** Whether the page can show a moment of the past; the others show the present. */
    looksBack?: boolean;
  }
}
