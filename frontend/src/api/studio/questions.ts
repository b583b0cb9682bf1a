/** Questions to the studio: plans that are tried on a copy of the cluster. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
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

/** Asks what a plan would do. */
export function useAskWhatIf(cluster: string) {
  return useMutation({
    mutationFn: (plan: string) =>
      answer(
        api.POST("/api/v1/studio/questions/", {
          params: { query: { cluster } },
          body: { kind: "what-if", plan, name: "" },
        }),
      ),
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
