import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useEffect } from "react";
import { ClusterProvider } from "@/api/cluster";
import { sessionQuery } from "@/api/session";
import { Shell } from "@/features/shell/shell";

const route = getRouteApi("/app");

export function AppRoute() {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const { cluster } = route.useSearch();
  const router = useRouter();
  // The session ended while a page was open: load the route again, and it leads to the login.
  useEffect(() => {
    if (!session.authenticated) void router.invalidate();
  }, [session.authenticated, router]);
  if (!session.authenticated) return null;
  const shown = cluster ?? session.clusters[0]?.name ?? "default";
  return (
    <ClusterProvider key={shown} cluster={shown}>
      <Shell session={session} />
    </ClusterProvider>
  );
}
