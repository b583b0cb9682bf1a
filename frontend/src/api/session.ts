/** The user at the screen, their rights, and the command lines that they let in. */
import { type QueryClient, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "./client";
import { forgetPast, isPast } from "./past/queries";
import type { Session } from "./types";

export const sessionKey = ["session"] as const;

export function sessionQuery() {
  return queryOptions({
    queryKey: sessionKey,
    queryFn: async ({ signal, client }) => {
      const session = await answer(api.GET("/api/v1/session/", { signal }));
      return isPast(client) ? readingOnly(session) : session;
    },
    staleTime: 60_000,
  });
}

/** Nothing of the past can be changed: the session has the rights to read alone, so that no page offers a change. */
function readingOnly(session: Session): Session {
  const user = session.user && { ...session.user, is_cluster_admin: false };
  return { ...session, user, roles: session.roles.map((binding) => ({ ...binding, role: "viewer" })) };
}

/** Forgets the answers for one user before the next one logs in. */
function forgetOthers(queries: QueryClient): void {
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
  forgetPast();
}

export function useLogin() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: { username: string; password: string }) =>
      answer(api.POST("/api/v1/auth/login/", { body })),
    onSuccess: (session) => {
      forgetOthers(queries);
      queries.setQueryData(sessionKey, session);
    },
  });
}

export function useLogout() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => answer(api.POST("/api/v1/auth/logout/")),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: sessionKey });
      forgetOthers(queries);
    },
  });
}

/** Whether another scheduler decides in the cluster, so that only the cluster itself changes what is shown of it. */
export function isMirrored(session: Session, cluster: string): boolean {
  const mode = session.clusters.find(({ name }) => name === cluster)?.mode;
  return mode === "observe" || mode === "shadow";
}

/** Cluster admins edit quotas and queues. */
export function isClusterAdmin(session: Session): boolean {
  return session.user?.is_cluster_admin ?? false;
}

/** Whether the user may change queues and cohorts somewhere: all of them, or those below a cohort. */
export function mayEditQueues(session: Session): boolean {
  return isClusterAdmin(session) || session.roles.some(({ role }) => role === "queue-admin");
}

/** Whether the user may read who did what. */
export function mayAudit(session: Session): boolean {
  return isClusterAdmin(session) || session.roles.some(({ role }) => role === "auditor");
}

const SUBMITTING = ["submitter", "admin"];

/** Whether the user may submit to, cancel and hold in a namespace. */
export function maySubmit(session: Session, namespace: string): boolean {
  if (isClusterAdmin(session)) return true;
  return session.roles.some(
    (binding) =>
      SUBMITTING.includes(binding.role) && (binding.namespace === null || binding.namespace === namespace),
  );
}

/** Whether there is any namespace that the user may submit to. */
export function maySubmitSomewhere(session: Session): boolean {
  return isClusterAdmin(session) || session.roles.some(({ role }) => SUBMITTING.includes(role));
}

/** The command line that waits with this code. */
export function deviceQuery(code: string) {
  const params = { path: { user_code: code } };
  return queryOptions({
    queryKey: ["device", code] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/auth/device/{user_code}/", { params, signal })),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useDeviceAnswer(code: string) {
  const params = { path: { user_code: code } };
  return useMutation({
    mutationFn: async (allow: boolean) => {
      await answer(api.POST("/api/v1/auth/device/{user_code}/", { params, body: { allow } }));
      return allow;
    },
  });
}
