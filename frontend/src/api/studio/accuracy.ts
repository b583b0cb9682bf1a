/** How true the estimates of starts were. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/api/client";
import type { components } from "@/api/schema.gen";

export type EstimateAccuracy = components["schemas"]["EstimateAccuracy"];
export type Accuracy = Omit<EstimateAccuracy["stages"][number], "stage_seconds">;

export function accuracyQuery(cluster: string, hours: number) {
  return queryOptions({
    queryKey: ["studio", "accuracy", cluster, hours] as const,
    queryFn: ({ signal }) =>
      answer<EstimateAccuracy>(
        api.GET("/api/v1/studio/accuracy/", { params: { query: { cluster, hours } }, signal }),
      ),
    refetchInterval: 60_000,
  });
}
