/** Questions to the studio: plans that are tried on a copy of the cluster. */
import { t } from "@lingui/core/macro";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "@/api/client";
import type { Question } from "@/api/types";

const ASKED_AGAIN_MS = 700;
const LISTED = 50;

export const isOpen = ({ state }: Pick<Question, "state">) => state === "Pending" || state === "Running";

const questionKey = (cluster: string, id: number) => ["studio", cluster, "question", id] as const;

/** One question, read until it has ended. */
export function questionQuery(cluster: string, id: number) {
  return queryOptions({
    queryKey: questionKey(cluster, id),
    queryFn: ({ signal }) => {
      const params = { path: { question_id: id }, query: { cluster } };
      return answer(api.GET("/api/v1/studio/questions/{question_id}/", { params, signal }));
    },
    refetchInterval: ({ state }) => (state.data && isOpen(state.data) ? ASKED_AGAIN_MS : false),
  });
}

/** The plans that the reader saved, and saved plans of other users that the reader may open. */
export function savedPlansQuery(cluster: string) {
  return queryOptions({
    queryKey: ["studio", cluster, "saved"] as const,
    queryFn: async ({ signal }) => {
      const params = { query: { cluster, saved: true, limit: LISTED } };
      return (await answer(api.GET("/api/v1/studio/questions/", { params, signal }))).results;
    },
  });
}

const askWhatIf = (cluster: string, plan: string, hours: number, signal?: AbortSignal) =>
  answer(
    api.POST("/api/v1/studio/questions/", {
      params: { query: { cluster } },
      body: { kind: "what-if", plan, name: "", hours },
      ...(signal === undefined ? {} : { signal }),
    }),
  );

/** Asks what a plan would do, at once and in so many hours. */
export function useAskWhatIf(cluster: string) {
  return useMutation({
    mutationFn: ({ plan, hours }: { plan: string; hours: number }) => askWhatIf(cluster, plan, hours),
  });
}

/** The most workloads of one plan: the server's bound. */
const MAX_TRIED = 1000;

/** The part of a plan that stands for an action. */
export interface TriedPlan {
  nodes?: readonly Record<string, string>[];
  end?: readonly string[];
  requeue?: readonly string[];
  priorities?: readonly { workload: string; class: string }[];
}

/** Tries an action as long as its dialog is open: the last answer, or why there is none. Null asks nothing. */
export function useTrial(cluster: string, plan: TriedPlan | null) {
  const isTooLong = Object.values(plan ?? {}).some((items) => items.length > MAX_TRIED);
  const isAsked = plan !== null && !isTooLong;
  // JSON is YAML.
  const asked = useQuery({ ...trialQuery(cluster, JSON.stringify(plan)), enabled: isAsked });
  const id = asked.data?.id;
  const question = useQuery({ ...questionQuery(cluster, id ?? 0), enabled: id !== undefined });
  const { data } = question;
  const failed = data?.state === "Failed" ? data.message : "";
  const tooMany = isTooLong ? t`more than ${MAX_TRIED} workloads cannot be tried at once.` : "";
  return {
    tried: data?.what_if?.whole ?? data?.what_if?.first,
    pending: isAsked && (data === undefined || isOpen(data)),
    problem: tooMany || (asked.error ?? question.error)?.message || failed,
  };
}

/** Asks what an action would do, once for each time that its dialog opens. */
function trialQuery(cluster: string, plan: string) {
  return queryOptions({
    queryKey: ["studio", cluster, "trial", plan] as const,
    queryFn: ({ signal }) => askWhatIf(cluster, plan, 0, signal),
    gcTime: 0,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

const applyPlan = (cluster: string, id: number, query: { dry_run?: boolean }, signal?: AbortSignal) =>
  answer(
    api.POST("/api/v1/studio/questions/{question_id}/apply/", {
      params: { path: { question_id: id }, query: { cluster, ...query } },
      ...(signal === undefined ? {} : { signal }),
    }),
  );

/** The changes that applying a plan would make now, or why it is refused; checked each time that its dialog opens. */
export function planCheckQuery(cluster: string, id: number) {
  return queryOptions({
    queryKey: ["studio", cluster, "check", id] as const,
    queryFn: ({ signal }) => applyPlan(cluster, id, { dry_run: true }, signal),
    gcTime: 0,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Makes the changes of a plan. */
export function useApplyPlan(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => applyPlan(cluster, id, {}),
    // Checks of plans are left out: an applied one is refused.
    onSuccess: () => queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[2] !== "check" }),
  });
}

/** Saves a plan by a name; an empty one lets it go. */
export function useSavePlan(cluster: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, name }: { id: number; name: string }) =>
      answer(
        api.PATCH("/api/v1/studio/questions/{question_id}/", {
          params: { path: { question_id: id }, query: { cluster } },
          body: { name },
        }),
      ),
    onSuccess: (saved) => {
      queries.setQueryData(questionKey(cluster, saved.id), saved);
      return queries.invalidateQueries({ queryKey: ["studio", cluster, "saved"] });
    },
  });
}
