/** Command lines that ask to be logged in as whoever is at the screen. */
import { queryOptions, useMutation } from "@tanstack/react-query";
import { answer, api } from "./client";

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
