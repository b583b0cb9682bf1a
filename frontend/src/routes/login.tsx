import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { sessionQuery } from "@/api/session";
import { LoginPage } from "@/features/session/login-page";
import { basePath } from "@/lib/url/base-path";

const route = getRouteApi("/login");

export function LoginRoute() {
  const { next, refused } = route.useSearch();
  const router = useRouter();
  const session = useQuery(sessionQuery());
  // Only back into this application: an absolute address in ?next= would lead elsewhere.
  const wanted = next?.startsWith("/") && !next.startsWith("//") ? next : "/";
  // The server names whole paths, the router those below its own.
  const inside = wanted.startsWith(`${basePath}/`) ? wanted.slice(basePath.length) : wanted;
  const target = `${basePath}${inside}`;
  // The admin is not a page of this application: the browser has to load it.
  const leave = () =>
    inside.startsWith("/admin/") ? window.location.assign(target) : router.history.push(target);
  if (session.isPending) return null;
  return (
    <LoginPage
      methods={session.data?.login_methods ?? { password: true, provider: null }}
      refused={refused}
      accounts={session.data?.demo_accounts ?? []}
      target={target}
      onLogin={leave}
    />
  );
}
