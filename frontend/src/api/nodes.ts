/** Nodes: whether each can take pods. What its devices hold comes by the live stream. */
import { queryOptions } from "@tanstack/react-query";
import { after, answer, api } from "./client";
import type { Node, Page } from "./types";

const PAGE_SIZE = 1000;

/** All nodes, page by page. */
export function nodesQuery(cluster: string) {
  return queryOptions({
    queryKey: ["nodes", cluster] as const,
    queryFn: async ({ signal }) => {
      const nodes: Node[] = [];
      let cursor: string | null = null;
      do {
        const params = { query: { cluster, ...after(cursor), limit: PAGE_SIZE } };
        const page: Page<Node> = await answer(api.GET("/api/v1/nodes/", { params, signal }));
        nodes.push(...page.results);
        cursor = page.next;
      } while (cursor !== null);
      return nodes;
    },
    refetchInterval: 15_000,
  });
}
