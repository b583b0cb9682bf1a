/** Notifications of the user, and the rules that send them. */
import {
  infiniteQueryOptions,
  queryOptions,
  type UseMutationResult,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { after, answer, api } from "./client";
import type { NotificationRule, NotificationRuleInput } from "./types";

const PAGE_SIZE = 100;
const RENEW_MS = 15_000;

const key = ["notifications"] as const;

/** How many are unread, and how the user can be told. */
export function notificationStatusQuery(cluster: string) {
  return queryOptions({
    queryKey: [...key, cluster, "status"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/notifications/status/", { params: { query: { cluster } }, signal })),
    refetchInterval: RENEW_MS,
  });
}

/** All of them, the newest first. */
export function notificationsQuery(cluster: string) {
  return infiniteQueryOptions({
    queryKey: [...key, cluster, "list"] as const,
    queryFn: ({ pageParam, signal }) => {
      const params = { query: { cluster, ...after(pageParam), limit: PAGE_SIZE } };
      return answer(api.GET("/api/v1/notifications/", { params, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

const NEWEST = 5;

/** The newest few, read again whenever `unread` changes. */
export function newestNotificationsQuery(cluster: string, unread: number) {
  return queryOptions({
    queryKey: [...key, cluster, "newest", unread] as const,
    queryFn: async ({ signal }) => {
      const params = { query: { cluster, limit: NEWEST } };
      return (await answer(api.GET("/api/v1/notifications/", { params, signal }))).results;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function notificationRulesQuery(cluster: string) {
  return queryOptions({
    queryKey: [...key, cluster, "rules"] as const,
    queryFn: ({ signal }) =>
      answer(api.GET("/api/v1/notification-rules/", { params: { query: { cluster, limit: 1000 } }, signal })),
  });
}

/** Something that changes what the user is told; lists are read again after it. */
function useChange<Input>(
  change: (input: Input) => Promise<unknown>,
): UseMutationResult<unknown, Error, Input> {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: key }),
  });
}

/** Marks these of the clusters as read; none: all of them. */
export function useMarkRead() {
  return useChange(({ clusters, ids }: { clusters: readonly string[]; ids: number[] }) =>
    Promise.all(
      clusters.map((cluster) =>
        api.POST("/api/v1/notifications/read/", { params: { query: { cluster } }, body: { ids } }),
      ),
    ),
  );
}

export function useAddRule(cluster: string) {
  return useChange((body: NotificationRuleInput) =>
    api.POST("/api/v1/notification-rules/", { params: { query: { cluster } }, body }),
  );
}

const ofRule = ({ cluster, id }: NotificationRule) => ({
  params: { query: { cluster }, path: { rule_id: id } },
});

export function useSwitchRule() {
  return useChange(({ rule, enabled }: { rule: NotificationRule; enabled: boolean }) =>
    api.PATCH("/api/v1/notification-rules/{rule_id}/", { ...ofRule(rule), body: { enabled } }),
  );
}

export function useDeleteRule() {
  return useChange((rule: NotificationRule) =>
    api.DELETE("/api/v1/notification-rules/{rule_id}/", ofRule(rule)),
  );
}

/** Sends something by the channels of the rule. */
export function useTestRule() {
  return useChange((rule: NotificationRule) =>
    api.POST("/api/v1/notification-rules/{rule_id}/test/", ofRule(rule)),
  );
}
