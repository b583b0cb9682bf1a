/** Time series that the server keeps. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { boundsOf, type TimeRange } from "@/lib/url/time-range";
import { answer, api } from "./client";
import type { components, paths } from "./schema.gen";

export type History = components["schemas"]["History"];
export type Metric = History["series"][number]["metric"];
export type HistoryScope = NonNullable<
  NonNullable<paths["/api/v1/history/"]["get"]["parameters"]["query"]>["scope"]
>;

export interface HistorySelection {
  scope: HistoryScope;
  /** Empty for the cluster. */
  name?: string;
  metrics: readonly Metric[];
  range: TimeRange;
}

const SHORTEST_REFRESH_MS = 15_000;
const LONGEST_REFRESH_MS = 300_000;

/** The series of one page in one answer, on one grid; read again as often as a step of it is new. */
export function historyQuery(cluster: string, { scope, name, metrics, range }: HistorySelection) {
  return queryOptions({
    queryKey: ["history", cluster, scope, name ?? "", metrics, range] as const,
    queryFn: ({ signal }) => {
      const bounds = boundsOf(range, Date.now());
      const query = { cluster, scope, ...bounds, metric: [...metrics], ...(name ? { name: [name] } : {}) };
      return answer(api.GET("/api/v1/history/", { params: { query }, signal }));
    },
    refetchInterval: (query) =>
      range.until === undefined &&
      Math.min(LONGEST_REFRESH_MS, Math.max(SHORTEST_REFRESH_MS, (query.state.data?.step ?? 0) * 1000)),
    placeholderData: keepPreviousData,
  });
}
