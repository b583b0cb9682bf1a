import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useMatches, useRouter } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { ClusterProvider, PastClusterProvider } from "@/api/cluster";
import { PastMoment } from "@/api/past/past";
import { sessionQuery } from "@/api/session";
import { LookBack } from "@/features/past/look-back";
import { MomentBanner, PresentBanner } from "@/features/past/moment-banner";
import { Shell } from "@/features/shell/shell";
import { isSeveral } from "@/lib/url/clusters";

const route = getRouteApi("/app");

export function AppRoute() {
  const { data: session } = useSuspenseQuery(sessionQuery());
  const { cluster, at } = route.useSearch();
  const router = useRouter();
  const looksBack = useMatches({ select: (matches) => matches.at(-1)?.staticData.looksBack ?? false });
  // The session ended while a page was open: load the route again, and it leads to the login.
  useEffect(() => {
    if (!session.authenticated) void router.invalidate();
  }, [session.authenticated, router]);
  if (!session.authenticated) return null;
  const shown = cluster ?? session.clusters[0]?.name ?? "default";
  const one = looksBack && !isSeveral(shown);
  const banner =
    at === undefined ? null : one ? <MomentBanner cluster={shown} at={at} /> : <PresentBanner at={at} />;
  const moment = one ? <LookBack cluster={shown} at={at} /> : null;
  const isPast = one && at !== undefined;
  return (
    <Moment cluster={shown} at={isPast ? at : undefined}>
      <Shell session={session} moment={moment} momentBanner={banner} isPast={isPast} />
    </Moment>
  );
}

/** The present of a cluster by its live stream, or a moment of its past. */
function Moment({ cluster, at, children }: { cluster: string; at: string | undefined; children: ReactNode }) {
  if (at === undefined) {
    return (
      <ClusterProvider key={cluster} cluster={cluster}>
        {children}
      </ClusterProvider>
    );
  }
  return (
    <PastMoment key={`${cluster} ${at}`} cluster={cluster} at={at}>
      <PastClusterProvider cluster={cluster} at={at}>
        {children}
      </PastClusterProvider>
    </PastMoment>
  );
}
