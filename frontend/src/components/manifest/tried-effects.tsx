/** The effects of an action on other workloads, as the studio found them: which start, and which stop for them. */
import { plural, t } from "@lingui/core/macro";
import { Group, List, Loader, Text } from "@mantine/core";
import { WorkloadNames } from "@/components/object-links";

interface Affected {
  count: number;
  workloads: readonly { workload: string }[];
}

export interface Tried {
  effects: { starts: Affected; preempted: Affected };
  evictions: { workloads: readonly { workload: string; starts_again: boolean }[] };
}

export interface TriedEffectsProps {
  /** The last answer; the first one comes before all cycles have been tried. */
  tried: Tried | undefined;
  pending: boolean;
  /** Why there is no answer; empty where there is one. */
  problem: string;
  /** Whether the action drains: only then a workload cannot start again in its old place. */
  drains?: boolean;
}

export function TriedEffects({ tried, pending, problem, drains = false }: TriedEffectsProps) {
  if (problem !== "") {
    return (
      <Text size="xs" mt={4} c="var(--kw-muted)">
        {t`Effects on other workloads are not known: ${problem}`}
      </Text>
    );
  }
  return (
    <>
      {tried !== undefined && <TriedLines part={tried} drains={drains} />}
      {pending && (
        <Group gap="xs" mt={4} wrap="nowrap">
          <Loader size={12} />
          <Text size="xs" c="var(--kw-muted)">
            {t`Running the next scheduling cycles on a copy of the cluster …`}
          </Text>
        </Group>
      )}
    </>
  );
}

function TriedLines({ part, drains }: { part: Tried; drains: boolean }) {
  const { starts, preempted } = part.effects;
  const again = part.evictions.workloads.filter((lost) => lost.starts_again).map(({ workload }) => workload);
  const others = starts.workloads.map(({ workload }) => workload).filter((key) => !again.includes(key));
  const othersCount = Math.max(starts.count - again.length, others.length);
  const isQuiet = again.length + othersCount + preempted.count === 0;
  return (
    <List size="sm" spacing={2}>
      {again.length > 0 && (
        <List.Item>
          <WorkloadNames
            text={
              drains
                ? plural(again.length, {
                    one: "# of them starts again elsewhere at once",
                    other: "# of them start again elsewhere at once",
                  })
                : plural(again.length, {
                    one: "# of them starts again at once",
                    other: "# of them start again at once",
                  })
            }
            count={again.length}
            workloads={again}
          />
        </List.Item>
      )}
      {othersCount > 0 && (
        <List.Item>
          <WorkloadNames
            text={plural(othersCount, {
              one: "# waiting workload starts",
              other: "# waiting workloads start",
            })}
            count={othersCount}
            workloads={others}
          />
        </List.Item>
      )}
      {preempted.count > 0 && (
        <List.Item>
          <WorkloadNames
            text={plural(preempted.count, {
              one: "# workload is preempted",
              other: "# workloads are preempted",
            })}
            count={preempted.count}
            workloads={preempted.workloads.map(({ workload }) => workload)}
          />
        </List.Item>
      )}
      {isQuiet && <List.Item>{t`No waiting workload starts because of it.`}</List.Item>}
    </List>
  );
}
