/** One quota: what is used of the nominal amount, what is borrowed on top, and what others may still take of it. */
import { Text, Tooltip } from "@mantine/core";
import type { LiveQuota } from "@/api/types";
import { Meter } from "@/components/meter";
import { formatAmountOf, formatAmountShort } from "@/lib/quantity";
import classes from "./queues.module.css";
import { describeQuota, quotaSegments } from "./quota";

export function QuotaBar({ quota, height = 8 }: { quota: LiveQuota; height?: number }) {
  const { own, borrowed, lendable, scale } = quotaSegments(quota);
  return (
    <Meter
      height={height}
      label={describeQuota(quota)}
      total={scale}
      segments={[
        { value: own, color: "var(--kw-used)", label: "used" },
        { value: borrowed, color: "var(--kw-borrowed)", label: "borrowed" },
        ...(borrowed === 0
          ? [{ value: lendable, color: "var(--kw-lendable)", label: "idle, may be lent", striped: true }]
          : []),
      ]}
      marks={
        scale > quota.nominal && quota.nominal > 0 ? [{ at: quota.nominal, label: "nominal quota" }] : []
      }
    />
  );
}

/** The bar with its names and numbers, for lists. */
export function QuotaCell({ quota }: { quota: LiveQuota }) {
  const { flavor, resource, nominal, used, borrowed } = quota;
  return (
    <Tooltip
      label={describeQuota(quota)}
      multiline
      maw={320}
      openDelay={300}
      style={{ whiteSpace: "pre-line" }}
    >
      <div className={classes.quota}>
        <div className={classes.quotaHead}>
          <span className={classes.quotaName}>
            {resource.split("/").at(-1)} <i>{flavor}</i>
          </span>
          <span className="kw-number">{formatAmountOf(resource, used, nominal)}</span>
        </div>
        <QuotaBar quota={quota} />
        {borrowed > 0 && (
          <Text fz={11} c="var(--kw-borrowed)" fw={600} className="kw-number">
            +{formatAmountShort(resource, borrowed)} borrowed
          </Text>
        )}
      </div>
    </Tooltip>
  );
}
