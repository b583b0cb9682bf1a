/** Flows of jobs that start after each other. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { after, answer, api } from "@/api/client";
import type { components } from "@/api/schema.gen";

export type JobFlow = components["schemas"]["JobFlow"];
export type FlowJob = components["schemas"]["FlowJob"];

const PAGE_SIZE = 100;
const RENEW_MS = 5_000;

/** All flows, by namespace and name; with a text, those that have it in their name. */
export function jobFlowsQuery(cluster: string, search: string | undefined) {
  return infiniteQueryOptions({
    queryKey: ["job-flows", cluster, "list", search ?? ""] as const,
    queryFn: ({ pageParam, signal }) => {
      const found = search === undefined ? {} : { search };
      const params = { query: { cluster, ...found, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/job-flows/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

/** One flow; null if there is none of this name. */
export function jobFlowQuery(cluster: string, { namespace, name }: { namespace: string; name: string }) {
  const params = { query: { cluster, namespace, name } };
  return queryOptions({
    queryKey: ["job-flows", cluster, "one", namespace, name] as const,
    queryFn: async ({ signal }): Promise<JobFlow | null> => {
      const found = await answer(api.GET("/api/v1/job-flows/", { params, signal }));
      return found.results[0] ?? null;
    },
    refetchInterval: RENEW_MS,
  });
}
