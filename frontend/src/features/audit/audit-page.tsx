/** The audit, for cluster admins and auditors. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { auditExport, auditQuery } from "@/api/audit";
import { useCluster, useClusterOf } from "@/api/cluster";
import type { AuditRecord } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { ChoiceFilter, FilterRow, TextFilter } from "@/components/table/filters";
import { PagedTable, renewTop } from "@/components/table/paged-table";
import { TimePicker } from "@/components/time/time-picker";
import { AUDIT_VERBS, type AuditFilters, parseAuditFilters } from "@/lib/url/audit-filters";
import { parseTimeRange, withoutTime } from "@/lib/url/time-range";
import { AUDIT_COLUMNS, verbLooks } from "./audit-columns";
import { AuditDetail } from "./audit-detail";

export interface AuditPageProps {
  filters: AuditFilters;
  onFilter: (filters: AuditFilters) => void;
}

export function AuditPage({ filters, onFilter }: AuditPageProps) {
  return (
    <>
      <PageHeader title={t`Audit`} />
      <Filters filters={filters} onFilter={onFilter} />
      <AuditTable filters={filters} />
    </>
  );
}

function Filters({ filters, onFilter }: AuditPageProps) {
  const cluster = useCluster();
  const set = (change: Record<string, string | null>) =>
    onFilter(parseAuditFilters({ ...filters, ...change }));
  return (
    <FilterRow
      onClear={Object.keys(filters).length > 0 ? () => onFilter({}) : undefined}
      aside={(["csv", "jsonl"] as const).map((format) => (
        <Button
          key={format}
          component="a"
          variant="subtle"
          size="xs"
          href={auditExport(cluster, filters, format)}
          download
        >
          <Trans>Export {format.toUpperCase()}</Trans>
        </Button>
      ))}
    >
      <TextFilter
        search
        label={t`Search objects by name`}
        placeholder={t`Search objects`}
        value={filters.search}
        onChange={(search) => set({ search })}
      />
      <TextFilter label={t`User name`} value={filters.username} onChange={(username) => set({ username })} />
      <ChoiceFilter
        label={t`Action taken`}
        choices={AUDIT_VERBS.map((verb) => ({ value: verb, label: verbLooks()[verb].label }))}
        value={filters.verb}
        onChange={(verb) => set({ verb })}
      />
      <TextFilter label={t`Kind`} value={filters.kind} onChange={(kind) => set({ kind })} />
      {filters.request_id !== undefined && (
        <TextFilter
          label={t`Request id`}
          value={filters.request_id}
          onChange={(request_id) => set({ request_id })}
        />
      )}
      <TimePicker
        range={parseTimeRange(filters)}
        onChange={(range) => onFilter({ ...withoutTime(filters), ...range })}
      />
    </FilterRow>
  );
}

const RENEW_MS = 10_000;

/** Logins, users and groups belong to no cluster. */
const clusterOfRow = ({ cluster }: AuditRecord) => cluster || "–";

function AuditTable({ filters }: { filters: AuditFilters }) {
  const [opened, setOpened] = useState<AuditRecord | null>(null);
  const list = useInfiniteQuery({
    ...auditQuery(useCluster(), filters),
    refetchInterval: renewTop(RENEW_MS),
  });
  return (
    <>
      <PagedTable
        label={t`The audit`}
        list={list}
        columns={AUDIT_COLUMNS}
        rowKey={(row) => String(row.id)}
        onOpen={setOpened}
        clusterOf={useClusterOf(clusterOfRow)}
        empty={
          <EmptyState icon="clock" title={t`No record matches`}>
            <Trans>
              Every change, login and refused attempt is recorded here, with the user and the address.
            </Trans>
          </EmptyState>
        }
      />
      <AuditDetail record={opened} onClose={() => setOpened(null)} />
    </>
  );
}
