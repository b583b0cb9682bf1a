import { getRouteApi, useRouter } from "@tanstack/react-router";
import { LoginPage } from "@/features/session/login-page";

const route = getRouteApi("/login");

export function LoginRoute() {
  const { next } = route.useSearch();
  const router = useRouter();
  // Only back into this application: an absolute address in ?next= would lead elsewhere.
  const target = next?.startsWith("/") && !next.startsWith("//") ? next : "/";
  return <LoginPage onLogin={() => router.history.push(target)} />;
}
