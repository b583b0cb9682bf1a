/** Closing nodes and cards to new pods, emptying them, and opening them again: for cluster admins. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "./client";

/** A node by its name, or a card by its uuid. */
export type ClosingTarget = { node: string } | { card: string };

/** Cordoned: takes nothing new. Draining: cordoned, and what runs there is evicted. */
export type Closing = { cordoned: boolean } | { draining: true };

export function useClosing(cluster: string, target: ClosingTarget) {
  const queries = useQueryClient();
  const query = { cluster };
  return useMutation({
    mutationFn: async (body: Closing): Promise<void> => {
      if ("node" in target) {
        const params = { path: { name: target.node }, query };
        await answer(api.PATCH("/api/v1/nodes/{name}/", { params, body }));
      } else {
        const params = { path: { uuid: target.card }, query };
        await answer(api.PATCH("/api/v1/devices/{uuid}/", { params, body }));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["nodes", cluster] }),
  });
}
