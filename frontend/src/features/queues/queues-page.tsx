/** The queues: their quotas, who borrows from whom, and where workloads wait. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Skeleton, TextInput } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import { useLive } from "@/api/cluster";
import type { LiveData } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { Icon } from "@/components/icon";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";
import classes from "./queues.module.css";
import { type TreeRow, treeRows } from "./tree/cohort-tree";
import { TreeRowView } from "./tree/tree-row";

export interface QueuesPageProps {
  search: string;
  onSearch: (text: string) => void;
}

/** `actions`: the buttons by which queues and cohorts are made. */
export function QueuesPage({ search, onSearch, actions }: QueuesPageProps & { actions: ReactNode }) {
  const data = useLive((live) => live.data);
  return (
    <>
      <PageHeader title={t`Queues`} facts={<Legend />} actions={actions} />
      {data === null ? <Skeleton height={400} /> : <Tree data={data} search={search} onSearch={onSearch} />}
    </>
  );
}

function Tree({ data, search, onSearch }: QueuesPageProps & { data: LiveData }) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const { cluster_queues, cohorts } = data;
  const rows = useMemo(
    () => treeRows({ cluster_queues, cohorts }, closed, search),
    [cluster_queues, cohorts, closed, search],
  );
  const toggle = useCallback(
    (name: string) =>
      setClosed((before) => {
        const after = new Set(before);
        if (!after.delete(name)) after.add(name);
        return after;
      }),
    [],
  );
  const closeAll = () =>
    setClosed(new Set(rows.filter((row) => row.kind === "cohort").map((row) => row.name)));
  return (
    <>
      <Group mb="sm" gap="xs">
        <TextInput
          type="search"
          aria-label={t`Search queues and cohorts`}
          placeholder={t`Search queues and cohorts  ( / )`}
          size="xs"
          w={260}
          leftSection={<Icon name="search" size={14} />}
          value={search}
          onChange={(event) => onSearch(event.currentTarget.value)}
        />
        <Button variant="default" size="xs" onClick={() => setClosed(new Set())}>
          <Trans>Open all</Trans>
        </Button>
        <Button variant="default" size="xs" onClick={closeAll}>
          <Trans>Close all</Trans>
        </Button>
      </Group>
      <Panel flush>
        {rows.length === 0 ? <NoQueues searched={search !== ""} /> : <Rows rows={rows} onToggle={toggle} />}
      </Panel>
    </>
  );
}

const ROW_HEIGHT = 68;

function Rows({ rows, onToggle }: { rows: TreeRow[]; onToggle: (name: string) => void }) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
    scrollMargin: frame.current?.offsetTop ?? 0,
    getItemKey: (place) => `${rows[place]?.kind} ${rows[place]?.name}`,
  });
  return (
    <div>
      <div className={classes.head} aria-hidden="true">
        <span>
          <Trans>Cohort or ClusterQueue</Trans>
        </span>
        <span className={classes.count}>
          <Trans>Pending</Trans>
        </span>
        <span className={classes.count}>
          <Trans>Admitted</Trans>
        </span>
        <span className={classes.count} title={t`Dominant resource share, divided by the fair weight`}>
          <Trans>Share</Trans>
        </span>
        <span>
          <Trans>Quota: used of nominal</Trans>
        </span>
      </div>
      <div ref={frame} style={{ height: virtual.getTotalSize(), position: "relative" }} data-live>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          return (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              style={{
                position: "absolute",
                insetInline: 0,
                transform: `translateY(${item.start - virtual.options.scrollMargin}px)`,
              }}
            >
              <TreeRowView row={row} onToggle={onToggle} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function NoQueues({ searched }: { searched: boolean }) {
  return searched ? (
    <EmptyState icon="search" title={t`No queue or cohort matches this name`} />
  ) : (
    <EmptyState icon="queues" title={t`No queues yet`}>
      <Trans>
        Click New above, or apply the manifests of ClusterQueues, Cohorts and LocalQueues with kueueweb apply
        -f.
      </Trans>
    </EmptyState>
  );
}

function Legend() {
  const swatches = [
    { label: t`used`, background: "var(--kw-used)" },
    { label: t`borrowed from the cohort`, background: "var(--kw-borrowed)" },
    {
      label: t`idle and lendable`,
      background: "repeating-linear-gradient(135deg, var(--kw-lendable) 0 3px, transparent 3px 6px)",
    },
  ];
  return (
    <div className={classes.legend}>
      {swatches.map(({ label, background }) => (
        <span key={label}>
          <i className={classes.swatch} style={{ background }} />
          {label}
        </span>
      ))}
    </div>
  );
}
