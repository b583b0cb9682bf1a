/** Cordoning, draining and uncordoning nodes and devices: for cluster admins. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "@/api/client";

/** A node by its name, or a device by its uuid. */
export type CordonTarget = { node: string } | { device: string };

/** Cordoned: takes nothing new. Draining: cordoned, and what runs there is evicted. */
export type CordonChange = { cordoned: boolean } | { draining: boolean };

export function useCordon(cluster: string, target: CordonTarget) {
  const queries = useQueryClient();
  const query = { cluster };
  return useMutation({
    mutationFn: async (body: CordonChange): Promise<void> => {
      if ("node" in target) {
        const params = { path: { name: target.node }, query };
        await answer(api.PATCH("/api/v1/nodes/{name}/", { params, body }));
      } else {
        const params = { path: { uuid: target.device }, query };
        await answer(api.PATCH("/api/v1/devices/{uuid}/", { params, body }));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["nodes", cluster] }),
  });
}
