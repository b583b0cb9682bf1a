/** One row of the tree: a cohort, or a ClusterQueue. */
import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { ActionIcon, Text } from "@mantine/core";
import { memo } from "react";
import { waiting } from "@/api/live/live-data";
import type { LiveCohort } from "@/api/types";
import { BadgeDot } from "@/components/badge-dot";
import { Meter } from "@/components/figures/meter";
import { Icon } from "@/components/icon";
import { TextLink } from "@/components/link";
import { MiddleEllipsis } from "@/components/middle-ellipsis";
import { ClusterQueueLink, CohortLink } from "@/components/object-links";
import { formatAmountOf, formatAmountShort, formatCount } from "@/lib/quantity";
import classes from "../queues.module.css";
import { formatWeightedShare, sortQuotas } from "../quota";
import { QuotaCell, QuotaLine } from "../quota-bar";
import { type CohortRow, type QueueRow, quotaKey, type TreeRow } from "./cohort-tree";

const INDENT = 18;
const MAX_QUOTAS = 6;

export const TreeRowView = memo(
  function TreeRowView({ row, onToggle }: { row: TreeRow; onToggle: (name: string) => void }) {
    return row.kind === "cohort" ? <CohortView row={row} onToggle={onToggle} /> : <QueueView row={row} />;
  },
  (before, after) => before.onToggle === after.onToggle && sameRow(before.row, after.row),
);

/** Rows are made again with each frame; what they hold is replaced only when it changed. */
function sameRow(a: TreeRow, b: TreeRow): boolean {
  const keys = Object.keys(a) as (keyof TreeRow)[];
  return a.kind === b.kind && keys.every((key) => a[key] === b[key]);
}

function CohortView({ row, onToggle }: { row: CohortRow; onToggle: (name: string) => void }) {
  const label = row.open ? t`Close cohort ${row.name}` : t`Open cohort ${row.name}`;
  return (
    <div className={classes.row} data-cohort>
      <div className={classes.name} style={{ paddingLeft: row.depth * INDENT }}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={label}
          aria-expanded={row.open}
          onClick={() => onToggle(row.name)}
        >
          <Icon name={row.open ? "down" : "right"} size={14} />
        </ActionIcon>
        <div>
          <CohortLink name={row.name} fw={650} />
          <Text fz={11.5} c="var(--kw-muted)">
            {row.cohort === null ? (
              <Plural
                value={row.queues}
                one="cohort of # queue, not declared"
                other="cohort of # queues, not declared"
              />
            ) : (
              <Plural value={row.queues} one="cohort of # queue" other="cohort of # queues" />
            )}
          </Text>
        </div>
      </div>
      <Count label={t`Pending`} value={row.pending} />
      <Count label={t`Admitted`} value={row.admitted} />
      <Share share={row.cohort?.weighted_share ?? null} />
      <div className={classes.quotas}>
        {row.cohort !== null && <CohortQuotas cohort={row.cohort} borrowed={row.borrowed} />}
      </div>
    </div>
  );
}

function CohortQuotas({ cohort, borrowed }: { cohort: LiveCohort; borrowed: CohortRow["borrowed"] }) {
  const quotas = sortQuotas(cohort.usage);
  const more = quotas.length - MAX_QUOTAS;
  return (
    <>
      {quotas.slice(0, MAX_QUOTAS).map(({ flavor, resource, subtree_quota: total, used }) => {
        const amounts = formatAmountOf(resource, used, total);
        const lent = Math.min(used, borrowed.get(quotaKey({ flavor, resource })) ?? 0);
        const lentText = t`${formatAmountShort(resource, lent)} of it borrowed by queues`;
        return (
          <div key={`${flavor} ${resource}`} className={classes.quota}>
            <QuotaLine name={resource.split("/").at(-1) ?? resource} value={amounts} />
            <Meter
              label={t`${resource} of ${flavor} in the whole cohort: ${amounts}, ${lentText}`}
              total={total}
              segments={[
                { value: used - lent, color: "var(--kw-used)", label: amounts },
                { value: lent, color: "var(--kw-borrowed)", label: lentText },
              ]}
            />
            <QuotaLine
              small
              name={flavor}
              value={lent > 0 ? t`${formatAmountShort(resource, lent)} lent` : ""}
            />
          </div>
        );
      })}
      {more > 0 && (
        <Text fz="xs" c="var(--kw-muted)">
          <Trans>and {more} more</Trans>
        </Text>
      )}
    </>
  );
}

function QueueView({ row }: { row: QueueRow }) {
  const { name, queue } = row;
  const quotas = sortQuotas(queue.usage);
  const more = quotas.length - MAX_QUOTAS;
  return (
    <div className={classes.row}>
      <div className={classes.name} style={{ paddingLeft: row.depth * INDENT + 28 }}>
        <ClusterQueueLink name={name} fw={550}>
          <MiddleEllipsis text={name} />
        </ClusterQueueLink>
        {!queue.active && <BadgeDot label={t`Not active`} color="orange" hint={queue.message} />}
      </div>
      <Count label={t`Pending`} value={waiting(queue)} inadmissible={queue.inadmissible} />
      <Count label={t`Admitted`} value={queue.admitted} />
      <Share share={queue.weighted_share} />
      <div className={classes.quotas}>
        {quotas.slice(0, MAX_QUOTAS).map((quota) => (
          <QuotaCell key={`${quota.flavor} ${quota.resource}`} quota={quota} />
        ))}
        {more > 0 && (
          <TextLink to="/queues/$name" params={{ name }} fz="xs">
            <Trans>and {more} more</Trans>
          </TextLink>
        )}
      </div>
    </div>
  );
}

function Count({ label, value, inadmissible = 0 }: { label: string; value: number; inadmissible?: number }) {
  return (
    <div className={`${classes.count} kw-number`}>
      <span className={classes.label}>{label}</span>
      {formatCount(value)}
      {inadmissible > 0 && (
        <small>
          <Trans>{formatCount(inadmissible)} inadmissible</Trans>
        </small>
      )}
    </div>
  );
}

function Share({ share }: { share: number | "Infinity" | null }) {
  return (
    <div className={`${classes.count} kw-number`}>
      <span className={classes.label}>
        <Trans>Share</Trans>
      </span>
      {share === null ? "–" : `${formatWeightedShare(share)} ‰`}
    </div>
  );
}
