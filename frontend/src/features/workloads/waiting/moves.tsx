/** The fewest moves of running pods that would let a waiting workload start. Advice only; nothing is moved. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, List, Loader, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCluster } from "@/api/cluster";
import { movesQuery } from "@/api/devices";
import type { MoveAdvice } from "@/api/types";
import type { WorkloadReference } from "@/api/workloads";

export function Moves(reference: WorkloadReference) {
  const [asked, setAsked] = useState(false);
  const plan = useQuery({ ...movesQuery(useCluster(), reference), enabled: asked });
  return (
    <div style={{ gridColumn: 2, marginTop: 6 }}>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => (asked ? void plan.refetch() : setAsked(true))}
        loading={plan.isFetching}
      >
        <Trans>Could it start if other pods moved?</Trans>
      </Button>
      {plan.isLoading && <Loader size="xs" ml="sm" />}
      {plan.error !== null && (
        <Text fz="sm" mt={6} role="alert">
          <Trans>Currently unknown: {plan.error.message}</Trans>
        </Text>
      )}
      {plan.data !== undefined && <Plan plan={plan.data} />}
    </div>
  );
}

/** The target of a move; the same node may have other devices for it. */
function target(current: { node: string }, proposed: { node: string }): string {
  return current.node === proposed.node ? t`${proposed.node} (other devices)` : proposed.node;
}

function Plan({ plan }: { plan: MoveAdvice }) {
  const moves = plan.moves;
  return (
    <div role="status">
      <Text fz="sm" mt={6}>
        {plan.message}
      </Text>
      {moves.length > 0 && (
        <List fz="sm" mt={4} type="ordered">
          {moves.map(({ workload, current, proposed }) => (
            <List.Item key={`${workload} ${current.pod_set} ${current.replica} ${current.devices.join()}`}>
              {workload === "" ? (
                <Trans>
                  A pod of another tenant: from {current.node} to {target(current, proposed)}
                </Trans>
              ) : (
                <Trans>
                  <b>{workload}</b>, pod {current.pod_set}-{current.replica}: from {current.node} to{" "}
                  {target(current, proposed)}
                </Trans>
              )}
            </List.Item>
          ))}
        </List>
      )}
    </div>
  );
}
