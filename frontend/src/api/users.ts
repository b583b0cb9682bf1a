/** Users, their roles, groups and tokens. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { after, answer, api } from "./client";
import type { NewRoleBinding, UserChange } from "./types";

const PAGE_SIZE = 200;
const key = ["users"] as const;

/** Everybody, machines too, by name. */
export function usersQuery(search: string) {
  return infiniteQueryOptions({
    queryKey: [...key, "list", search] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...after(pageParam), limit: PAGE_SIZE, ...(search === "" ? {} : { search }) };
      return answer(api.GET("/api/v1/users/", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    retry: false,
  });
}

/** The users with their roles in the clusters, and the users with a role in every cluster. */
export function roleBindingsQuery(cluster: string) {
  return infiniteQueryOptions({
    queryKey: [...key, "roles", cluster] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { cluster, ...after(pageParam), limit: PAGE_SIZE };
      return answer(api.GET("/api/v1/role-bindings/", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

export function userTokensQuery(name: string) {
  return queryOptions({
    queryKey: [...key, "tokens", name] as const,
    queryFn: ({ signal }) => {
      const params = { path: { name }, query: { limit: 1000 } };
      return answer(api.GET("/api/v1/users/{name}/tokens/", { params, signal }));
    },
  });
}

/** Something that changes who may what; the lists are read again after it. */
function useChange<Input>(change: (input: Input) => Promise<unknown>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: key }),
  });
}

export function useBindRole(cluster: string) {
  return useChange((body: NewRoleBinding) => {
    const name = `binding-${crypto.randomUUID().slice(0, 13)}`;
    return api.PUT("/api/v1/role-bindings/{name}/", { params: { path: { name }, query: { cluster } }, body });
  });
}

export function useUnbindRole() {
  return useChange(({ cluster, name }: { cluster: string; name: string }) =>
    api.DELETE("/api/v1/role-bindings/{name}/", { params: { path: { name }, query: { cluster } } }),
  );
}

export function useAddUser() {
  return useChange((body: { username: string; password: string; email: string }) =>
    api.POST("/api/v1/users/", { body }),
  );
}

export function useChangeUser(name: string) {
  return useChange((body: UserChange) =>
    api.PATCH("/api/v1/users/{name}/", { params: { path: { name } }, body }),
  );
}

export function useRevokeToken(name: string) {
  return useChange((id: string) =>
    api.DELETE("/api/v1/users/{name}/tokens/{token_id}/", { params: { path: { name, token_id: id } } }),
  );
}

export function useAddMachine() {
  return useChange((body: { name: string; description: string }) =>
    api.POST("/api/v1/service-accounts/", { body }),
  );
}
