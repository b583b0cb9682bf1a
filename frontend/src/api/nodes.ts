/** Nodes: whether each can take pods. What its cards hold comes by the live stream. */
import { queryOptions } from "@tanstack/react-query";
import { endpoint, request } from "./client";
import type { Node, Page } from "./types";

const PAGE_SIZE = 1000;

/** All nodes, page by page. */
export function nodesQuery(cluster: string) {
  return queryOptions({
    queryKey: ["nodes", cluster] as const,
    queryFn: async ({ signal }) => {
      const nodes: Node[] = [];
      let after: string | null = null;
      do {
        const page: Page<Node> = await request<Page<Node>>(
          endpoint("nodes/", { cluster, after, limit: PAGE_SIZE }),
          {
            signal,
          },
        );
        nodes.push(...page.results);
        after = page.next;
      } while (after !== null);
      return nodes;
    },
    refetchInterval: 15_000,
  });
}
