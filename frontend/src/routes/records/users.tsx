import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { UsersPage } from "@/features/users/users-page";

const route = getRouteApi("/app/users");

export function UsersRoute() {
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const session = useSuspenseQuery(sessionQuery());
  return (
    <UsersPage
      session={session.data}
      tab={tab ?? "roles"}
      onTab={(next) => void navigate({ search: next === "accounts" ? { tab: next } : {} })}
    />
  );
}
