/** The frame of every page: navigation, cluster, freshness, theme and user. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, AppShell, Burger, Group, ScrollArea, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useMatches, useRouter } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useMemo } from "react";
import { useClusterNames, useIsSeveral, useLive } from "@/api/cluster";
import type { Session } from "@/api/types";
import { Icon } from "@/components/icon";
import { ClusterChips } from "./cluster-chips";
import { ClusterSwitcher } from "./cluster-switcher";
import { LiveIndicator, StaleBanner } from "./live-indicator";
import { ModeBadge } from "./mode-badge";
import { NotificationBell } from "./notification-bell";
import { OneCluster } from "./one-cluster";
import { pagesOf } from "./pages";
import classes from "./shell.module.css";
import { useShortcuts } from "./shortcuts";
import { ThemeSwitch } from "./theme-switch";
import { UserMenu } from "./user-menu";

const FindDialog = lazy(async () => ({ default: (await import("./find-dialog")).FindDialog }));
const Tour = lazy(async () => ({ default: (await import("./tour/tour")).Tour }));
const ShortcutsHelp = lazy(async () => ({ default: (await import("./shortcuts-help")).ShortcutsHelp }));

export interface ShellProps {
  session: Session;
  /** Chooses the moment that is shown. */
  moment: ReactNode;
  /** Says that it is one of the past. */
  momentBanner: ReactNode;
  isPast: boolean;
}

export function Shell({ session, moment, momentBanner, isPast }: ShellProps) {
  const [opened, menu] = useDisclosure(false);
  const [helpOpened, help] = useDisclosure(false);
  const [findOpened, find] = useDisclosure(false);
  const [tourOpened, tour] = useDisclosure(false);
  const shown = useClusterNames();
  const shadowed = session.clusters.some(({ name, mode }) => shown.includes(name) && mode === "shadow");
  const router = useRouter();
  const several = useIsSeveral();
  const spans = useMatches({ select: (matches) => matches.at(-1)?.staticData.spansClusters ?? false });
  const wide = useMatches({ select: (matches) => matches.at(-1)?.staticData.takesWidth ?? false });
  const stale = useLive((live) => live.staleSince !== null);
  const pages = useMemo(() => pagesOf(session, shadowed), [session, shadowed]);
  useShortcuts({ pages, toggleHelp: help.toggle, toggleFind: find.toggle });
  // Another page closes the menu.
  useEffect(() => router.subscribe("onResolved", menu.close), [router, menu.close]);

  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={{ base: "sm", sm: "lg" }}
    >
      <a href="#content" className="kw-skip">
        <Trans>Skip to content</Trans>
      </a>
      <AppShell.Header className={classes.header}>
        <Group h="100%" px={{ base: "sm", sm: "md" }} justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={menu.toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t`Navigation`}
            />
            <Link to="/" className={classes.brand} aria-label={t`kueueweb: overview`}>
              <BrandMark />
              <span>kueueweb</span>
            </Link>
            <ClusterSwitcher clusters={session.clusters} />
            <ModeBadge clusters={session.clusters} />
          </Group>
          <Group gap={4} wrap="nowrap">
            {moment}
            {!several && !isPast && <LiveIndicator />}
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              visibleFrom="xs"
              aria-label={t`Find anything`}
              title={t`Find anything (Ctrl-K)`}
              onClick={find.open}
            >
              <Icon name="search" />
            </ActionIcon>
            <NotificationBell />
            <ThemeSwitch />
            <UserMenu session={session} onShortcuts={help.open} onTour={tour.open} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.navbar}>
        <ScrollArea>
          {/* The header of a phone has no room for it. */}
          <UnstyledButton
            className={classes.page}
            hiddenFrom="xs"
            w="100%"
            onClick={() => {
              menu.close();
              find.open();
            }}
          >
            <Icon name="search" />
            <Text span inherit>
              <Trans>Find</Trans>
            </Text>
          </UnstyledButton>
          <nav aria-label={t`Pages`}>
            {pages
              .filter(({ outsideMenu }) => outsideMenu !== true)
              .map((page) => (
                <Link
                  key={page.to}
                  to={page.to}
                  className={classes.page}
                  activeProps={{ "data-active": true, "aria-current": "page" }}
                  activeOptions={{ exact: page.to === "/", includeSearch: false }}
                >
                  <Icon name={page.icon} />
                  <Text span inherit>
                    {page.label}
                  </Text>
                </Link>
              ))}
          </nav>
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className={classes.main} data-live-stale={stale || undefined}>
        <StaleBanner />
        {momentBanner}
        {several && spans && <ClusterChips clusters={session.clusters} />}
        <div className={wide ? undefined : classes.readable}>
          {several && !spans ? <OneCluster clusters={session.clusters} /> : <Outlet />}
        </div>
      </AppShell.Main>
      {helpOpened && (
        <Suspense>
          <ShortcutsHelp pages={pages} onClose={help.close} />
        </Suspense>
      )}
      {tourOpened && (
        <Suspense>
          <Tour cluster={several ? shown[0] : undefined} onLeave={tour.close} />
        </Suspense>
      )}
      {findOpened && (
        <Suspense>
          <FindDialog session={session} pages={pages} onClose={find.close} />
        </Suspense>
      )}
    </AppShell>
  );
}

function BrandMark() {
  return (
    <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#3b5bdb" />
      <rect x="7" y="8" width="18" height="4" rx="1.5" fill="#fff" />
      <rect x="7" y="14" width="11" height="4" rx="1.5" fill="#91a7ff" />
      <rect x="20" y="14" width="5" height="4" rx="1.5" fill="#63e6be" />
      <rect x="7" y="20" width="6" height="4" rx="1.5" fill="#63e6be" />
      <rect x="15" y="20" width="10" height="4" rx="1.5" fill="#fff" opacity=".45" />
    </svg>
  );
}
