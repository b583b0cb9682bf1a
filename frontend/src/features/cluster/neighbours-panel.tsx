/** Whom the cluster listens to: monitors that say what devices really use, and managers that send it workloads. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Stack, TagsInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { type clusterQuery, useClusterSettings } from "@/api/cluster-settings";
import type { ClusterSettings } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { Panel } from "@/components/panel";
import { faultLines } from "@/lib/words/refusal";

type Cluster = Awaited<ReturnType<NonNullable<ReturnType<typeof clusterQuery>["queryFn"]>>>;

type Lists = Required<Pick<ClusterSettings, "telemetry_urls" | "accepts_workloads_from">>;

const KEYS = ["telemetry_urls", "accepts_workloads_from"] as const;

export function NeighboursPanel({ cluster }: { cluster: Cluster }) {
  const settings = useClusterSettings(cluster.name);
  // What was typed and is not saved, and the settings as they were when that began: they are saved over these alone.
  const [edit, setEdit] = useState<{ of: Cluster; typed: Partial<Lists> } | null>(null);
  const read = edit?.of ?? cluster;
  const value = (key: keyof Lists) => edit?.typed[key] ?? read[key];
  const type = (typed: Partial<Lists>) => setEdit({ of: read, typed: { ...edit?.typed, ...typed } });
  const change: Partial<Lists> = Object.fromEntries(
    KEYS.filter((key) => value(key).join("\n") !== read[key].join("\n")).map((key) => [key, value(key)]),
  );
  const changed = Object.keys(change).length > 0;
  const save = () =>
    settings.mutate(
      { change, etag: read.etag },
      {
        // Another user was quicker: the settings are shown as they are now.
        onError: (error) => {
          if (!(error instanceof ApiError)) setEdit(null);
        },
        onSuccess: () => {
          setEdit(null);
          notifications.show({
            color: "teal",
            title: cluster.name,
            message: t`The cluster's settings were saved`,
          });
        },
      },
    );
  return (
    <Panel title={t`Telemetry and MultiKueue sources`}>
      <form
        onSubmit={(submitted) => {
          submitted.preventDefault();
          save();
        }}
      >
        <Stack gap="sm">
          <TagsInput
            label={t`Telemetry is read from`}
            description={t`Addresses of Prometheus text in the format of HAMi's exporter: one for each node, or one for all. Credentials are shown as *** and are kept unless you replace them.`}
            placeholder="http://10.0.0.7:9394/metrics"
            value={value("telemetry_urls")}
            acceptValueOnBlur
            splitChars={[" "]}
            onChange={(telemetry_urls) => type({ telemetry_urls })}
          />
          <TagsInput
            label={t`Accepts workloads from`}
            description={t`Names of the clusters whose MultiKueue may run workloads here. They use kueueweb's service account.`}
            value={value("accepts_workloads_from")}
            acceptValueOnBlur
            splitChars={[",", " "]}
            onChange={(accepts_workloads_from) => type({ accepts_workloads_from })}
          />
          {settings.error !== null && (
            <ErrorState
              title={t`Nothing was saved`}
              message={settings.error.message}
              details={faultLines(settings.error instanceof ApiError ? settings.error.errors : [])}
            />
          )}
          {changed && (
            <Group gap="xs">
              <Button type="submit" size="xs" loading={settings.isPending}>
                <Trans>Save</Trans>
              </Button>
              <Button
                size="xs"
                variant="default"
                onClick={() => {
                  setEdit(null);
                  settings.reset();
                }}
              >
                <Trans>Discard</Trans>
              </Button>
            </Group>
          )}
        </Stack>
      </form>
    </Panel>
  );
}
