/** The colours of the tenants, with the memory that each holds; a click shows only their devices. */
import { t } from "@lingui/core/macro";
import { UnstyledButton } from "@mantine/core";
import { useMemo, useState } from "react";
import { formatMib } from "@/lib/quantity";
import { tenantColor } from "@/lib/tenant-color";
import classes from "./gpus.module.css";
import { type DeviceEntry, tenants } from "./summary";

export interface TenantLegendProps {
  entries: DeviceEntry[];
  chosen: string | undefined;
  onChoose: (namespace: string | undefined) => void;
}

const MOST = 16;

export function TenantLegend({ entries, chosen, onChoose }: TenantLegendProps) {
  const [all, setAll] = useState(false);
  const found = useMemo(() => tenants(entries), [entries]);
  if (found.length === 0) return null;
  // The largest are shown, by name: an order by size would jump as slices come and go.
  const shown = (all ? found : found.slice(0, MOST)).toSorted((a, b) =>
    (a.namespace ?? "~").localeCompare(b.namespace ?? "~"),
  );
  return (
    <fieldset className={classes.legend} aria-label={t`Tenants`} data-live>
      {shown.map(({ namespace, memoryMib }) => (
        <UnstyledButton
          key={namespace ?? ""}
          className={classes.tenant}
          disabled={namespace === null}
          aria-pressed={namespace !== null && namespace === chosen}
          onClick={() => onChoose(namespace === null || namespace === chosen ? undefined : namespace)}
        >
          <i style={{ background: tenantColor(namespace) }} />
          {namespace ?? t`in use by others`}
          <span className="kw-number">{formatMib(memoryMib)}</span>
        </UnstyledButton>
      ))}
      {found.length > MOST && (
        <UnstyledButton className={classes.tenant} onClick={() => setAll(!all)}>
          {all ? t`fewer` : t`and ${found.length - MOST} more`}
        </UnstyledButton>
      )}
    </fieldset>
  );
}
