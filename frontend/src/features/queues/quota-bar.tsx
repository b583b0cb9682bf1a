/** One quota: what is used of the owned amount, what is borrowed on top, and what others may still take of it. */
import { t } from "@lingui/core/macro";
import { Tooltip } from "@mantine/core";
import type { ReactElement } from "react";
import type { LiveQuota } from "@/api/types";
import { Meter } from "@/components/figures/meter";
import { ownedQuota } from "@/lib/owned-quota";
import { formatAmountOf, formatAmountShort } from "@/lib/quantity";
import classes from "./queues.module.css";
import { describeQuota, quotaSegments } from "./quota";

export function QuotaBar({ quota, height = 8 }: { quota: LiveQuota; height?: number }) {
  const { own, borrowed, lendable, scale } = quotaSegments(quota);
  const owned = ownedQuota(quota);
  return (
    <Meter
      height={height}
      label={describeQuota(quota)}
      total={scale}
      segments={[
        { value: own, color: "var(--kw-used)", label: "used" },
        { value: borrowed, color: "var(--kw-borrowed)", label: "borrowed" },
        ...(borrowed === 0
          ? [{ value: lendable, color: "var(--kw-lendable)", label: t`idle and lendable`, striped: true }]
          : []),
      ]}
      marks={
        scale > owned && owned > 0
          ? [{ at: owned, label: quota.deserved === null ? t`nominal quota` : t`deserved quota` }]
          : []
      }
    />
  );
}

/** Explains the quota that its child draws. */
export function QuotaTooltip({ quota, children }: { quota: LiveQuota; children: ReactElement }) {
  return (
    <Tooltip
      label={describeQuota(quota)}
      multiline
      maw={320}
      openDelay={300}
      style={{ whiteSpace: "pre-line" }}
    >
      {children}
    </Tooltip>
  );
}

/** The bar with its names and numbers, for lists. */
export function QuotaCell({ quota }: { quota: LiveQuota }) {
  const { flavor, resource, used, borrowed } = quota;
  return (
    <QuotaTooltip quota={quota}>
      <div className={classes.quota}>
        <QuotaLine
          name={resource.split("/").at(-1) ?? resource}
          value={formatAmountOf(resource, used, ownedQuota(quota))}
        />
        <QuotaBar quota={quota} />
        <QuotaLine
          small
          name={flavor}
          value={borrowed > 0 ? t`+${formatAmountShort(resource, borrowed)} borrowed` : ""}
        />
      </div>
    </QuotaTooltip>
  );
}

export function QuotaLine({ name, value, small = false }: { name: string; value: string; small?: boolean }) {
  return (
    <div className={small ? classes.quotaFoot : classes.quotaHead}>
      <span className={classes.quotaName}>{name}</span>
      <span className="kw-number">{value}</span>
    </div>
  );
}
