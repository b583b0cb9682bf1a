/** Who did what, when and from where; for cluster admins and auditors. */
import { Button, Group, Select, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { auditExport, auditQuery } from "@/api/audit";
import { useCluster } from "@/api/cluster";
import type { AuditRecord } from "@/api/types";
import { DataTable } from "@/components/data-table";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Icon } from "@/components/icon";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import { AUDIT_VERBS, type AuditFilters, parseAuditFilters } from "@/lib/audit-filters";
import { AUDIT_COLUMNS, VERB_LOOKS } from "./audit-columns";
import { AuditDetail } from "./audit-detail";

export interface AuditPageProps {
  filters: AuditFilters;
  onFilter: (filters: AuditFilters) => void;
}

export function AuditPage({ filters, onFilter }: AuditPageProps) {
  return (
    <>
      <PageHeader title="Audit" />
      <FilterBar filters={filters} onFilter={onFilter} />
      <AuditTable filters={filters} />
    </>
  );
}

function FilterBar({ filters, onFilter }: AuditPageProps) {
  const cluster = useCluster();
  const set = (change: Record<string, string | null>) =>
    onFilter(parseAuditFilters({ ...filters, ...change }));
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        type="search"
        aria-label="Search objects by name"
        placeholder="Search objects  ( / )"
        size="xs"
        w={220}
        leftSection={<Icon name="search" size={14} />}
        value={filters.search ?? ""}
        onChange={(event) => set({ search: event.currentTarget.value })}
      />
      <TextInput
        aria-label="User"
        placeholder="User"
        size="xs"
        w={140}
        value={filters.username ?? ""}
        onChange={(event) => set({ username: event.currentTarget.value })}
      />
      <Select
        aria-label="What was done"
        placeholder="What"
        size="xs"
        w={140}
        clearable
        data={AUDIT_VERBS.map((verb) => ({ value: verb, label: VERB_LOOKS[verb].label }))}
        value={filters.verb ?? null}
        onChange={(verb) => set({ verb })}
      />
      <TextInput
        aria-label="Kind"
        placeholder="Kind"
        size="xs"
        w={140}
        value={filters.kind ?? ""}
        onChange={(event) => set({ kind: event.currentTarget.value })}
      />
      {Object.keys(filters).length > 0 && (
        <Button
          variant="subtle"
          size="xs"
          leftSection={<Icon name="close" size={13} />}
          onClick={() => onFilter({})}
        >
          Clear
        </Button>
      )}
      <Group gap={4} ml="auto">
        <Button component="a" variant="subtle" size="xs" href={auditExport(cluster, filters, "csv")} download>
          Export CSV
        </Button>
        <Button
          component="a"
          variant="subtle"
          size="xs"
          href={auditExport(cluster, filters, "jsonl")}
          download
        >
          Export JSON
        </Button>
      </Group>
    </Group>
  );
}

const RENEW_MS = 10_000;

function AuditTable({ filters }: { filters: AuditFilters }) {
  const [opened, setOpened] = useState<AuditRecord | null>(null);
  const list = useInfiniteQuery({
    ...auditQuery(useCluster(), filters),
    // Whoever has scrolled into the past reads; the top renews itself.
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) > 1 ? false : RENEW_MS),
  });
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.results) ?? [], [list.data]);
  const { fetchNextPage } = list;
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage]);
  if (list.error !== null && rows.length === 0) {
    return (
      <ErrorState
        title="The audit cannot be shown"
        message={list.error.message}
        onRetry={() => void list.refetch()}
      />
    );
  }
  return (
    <Panel flush>
      <DataTable
        label="Audit"
        columns={AUDIT_COLUMNS}
        rows={rows}
        rowKey={(row) => String(row.id)}
        loading={list.isPending}
        onOpen={setOpened}
        onEnd={list.hasNextPage ? more : undefined}
        loadingMore={list.isFetchingNextPage}
        height="max(420px, calc(100dvh - 180px))"
        empty={
          <EmptyState icon="clock" title="No record matches">
            Every change, login and refused attempt is recorded here with who did it and from where.
          </EmptyState>
        }
      />
      <AuditDetail record={opened} onClose={() => setOpened(null)} />
    </Panel>
  );
}
