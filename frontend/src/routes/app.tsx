import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate } from "@tanstack/react-router";
import { ClusterProvider } from "@/api/cluster";
import { sessionQuery } from "@/api/session";
import { Shell } from "@/features/shell/shell";

const route = getRouteApi("/app");

export function AppRoute() {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const { cluster } = route.useSearch();
  if (!session.authenticated) return <Navigate to="/login" />;
  const shown = cluster ?? session.clusters[0]?.name ?? "default";
  return (
    <ClusterProvider key={shown} cluster={shown}>
      <Shell session={session} />
    </ClusterProvider>
  );
}
