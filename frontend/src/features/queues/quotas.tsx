/** The quotas of a ClusterQueue, the fullest first, each with the way to change it. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { ClusterQueue, LiveClusterQueue, LiveQuota } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { FlavorLink } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { ownedQuota } from "@/lib/owned-quota";
import { formatAmountOf, formatAmountShort } from "@/lib/quantity";
import classes from "./queues.module.css";
import { following, formatWeightedShare, sortQuotas } from "./quota";
import { QuotaBar, QuotaTooltip } from "./quota-bar";

/** The button by which the quota of a resource in a flavor is changed; nothing for a reader who may not. */
export type EditQuota = (flavor: string, resource: string) => ReactNode;

export interface QuotasProps {
  queue: ClusterQueue;
  /** Undefined until the live stream tells. */
  live: LiveClusterQueue | undefined;
  editQuota: EditQuota;
}

export function Quotas({ queue, live, editQuota }: QuotasProps) {
  const quotas = sortQuotas(live?.usage ?? queue.usage);
  return (
    <Panel title={t`Quota`} aside={<Share queue={queue} live={live} />} flush>
      {quotas.length === 0 ? (
        <EmptyState icon="queues" title={t`No quota`}>
          <Trans>Without resource groups, this queue admits no workload that requests resources.</Trans>
        </EmptyState>
      ) : (
        <ul className={classes.quotaRows} aria-label={t`Quotas of ${queue.name}`}>
          {quotas.map((quota) => (
            <QuotaRow
              key={`${quota.flavor} ${quota.resource}`}
              quota={quota}
              notes={notesOf(queue, quota)}
              edit={editQuota(quota.flavor, quota.resource)}
            />
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** How much it borrows beside the other queues of its cohort. */
function Share({ queue, live }: Pick<QuotasProps, "queue" | "live">) {
  if (queue.cohort === "") return null;
  const share = live?.weighted_share ?? queue.weighted_share;
  return (
    <Text
      span
      fz="xs"
      c="var(--kw-muted)"
      className="kw-number"
      title={t`Weighted share: borrowed share of what the cohort can lend, divided by the fair weight`}
      data-live
    >
      {share === 0 ? t`borrows nothing` : t`weighted share ${formatWeightedShare(share)} ‰`}
    </Text>
  );
}

interface QuotaRowProps {
  quota: LiveQuota;
  notes: string[];
  edit: ReactNode;
}

function QuotaRow({ quota, notes, edit }: QuotaRowProps) {
  const { flavor, resource, used, borrowed } = quota;
  return (
    <li className={classes.quotaRow}>
      <div className={classes.quotaTitle}>
        <span className={classes.quotaName} title={resource}>
          <b>{resource.split("/").at(-1)}</b> <FlavorLink name={flavor} />
        </span>
        <span className="kw-number" data-live>
          {formatAmountOf(resource, used, ownedQuota(quota))}
        </span>
        {edit}
      </div>
      <QuotaTooltip quota={quota}>
        <div data-live>
          <QuotaBar quota={quota} />
        </div>
      </QuotaTooltip>
      {(borrowed > 0 || notes.length > 0) && (
        <div className={classes.quotaNotes}>
          {borrowed > 0 && (
            <span className={classes.borrowed} data-live>
              {t`+${formatAmountShort(resource, borrowed)} borrowed`}
            </span>
          )}
          {notes.map((note) => (
            <span key={note}>{note}</span>
          ))}
        </div>
      )}
    </li>
  );
}

/** The limits of the quota and its source, where they are not the default. */
function notesOf(queue: ClusterQueue, quota: LiveQuota): string[] {
  const { flavor, resource, borrowing_limit: borrowing, lending_limit: lending } = quota;
  const amount = (value: number) => formatAmountShort(resource, value);
  const computed = following(queue, flavor, resource);
  return [
    ...(quota.deserved === null
      ? []
      : [t`deserves ${amount(quota.deserved)} by the cohort's sharing policy`]),
    ...(borrowing === null ? [] : [t`borrows at most ${amount(borrowing)}`]),
    ...(lending === null ? [] : [t`lends at most ${amount(lending)}`]),
    ...(computed === null ? [] : [computed]),
  ];
}
