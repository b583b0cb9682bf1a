/** Windows in which nodes are kept free, and the effect that a reservation would have. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/api/client";
import type { components } from "@/api/schema.gen";

export type ReservationWindow = components["schemas"]["ReservationWindow"];
export type ReservationDraft = components["schemas"]["ReservationRequestRequest"];
export type ReservationPreview = components["schemas"]["ReservationPreview"];

const RENEW_MS = 15_000;

/** The windows between two times, in ms since the epoch. */
export function calendarQuery(cluster: string, since: number, until: number) {
  const query = { cluster, since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  return queryOptions({
    // Renewed with all that is shown of configuration: an edit of a reservation moves windows.
    queryKey: ["objects", cluster, "reservation-calendar", since, until] as const,
    queryFn: ({ signal }) => answer(api.GET("/api/v1/reservation-calendar/", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: RENEW_MS,
  });
}

/** The workloads that a reservation would evict or keep waiting. Nothing is stored. */
export function reservationPreviewQuery(cluster: string, draft: ReservationDraft) {
  return queryOptions({
    queryKey: ["reservation-preview", cluster, draft] as const,
    queryFn: ({ signal }) =>
      answer(
        api.POST("/api/v1/reservation-calendar/preview/", {
          params: { query: { cluster } },
          body: draft,
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 0,
  });
}
