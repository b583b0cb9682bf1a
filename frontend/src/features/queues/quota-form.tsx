/** Quotas as a form; the server's faults stand at their fields. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useEffect, useRef, useState } from "react";
import { ApiError } from "@/api/client";
import { useCluster } from "@/api/cluster";
import { useEditClusterQueue } from "@/api/queues";
import type { ClusterQueue } from "@/api/types";
import { ErrorState } from "@/components/error-state";
import { faultLines } from "@/lib/words/refusal";
import classes from "./queues.module.css";
import { following } from "./quota";
import {
  changesToSend,
  conflicts,
  type FieldDifference,
  fieldKey,
  invalidQuantities,
  QUOTA_FIELDS,
  quotaFieldWords,
  quotaLabel,
  sortFaults,
  withField,
} from "./quota-edit";

const stopPolicies = (): { value: ClusterQueue["stop_policy"]; label: string }[] => [
  { value: "None", label: t`None: it admits` },
  { value: "Hold", label: t`Hold: it admits nothing new` },
  { value: "HoldAndDrain", label: t`HoldAndDrain: and what it admitted is evicted` },
];

class ChangedMeanwhile extends Error {}

export function QuotaForm({ queue, onDone }: { queue: ClusterQueue; onDone: () => void }) {
  /** As it was when the form was opened: what somebody else changes meanwhile is not ours to take back. */
  const [opened] = useState(queue);
  const [seen, setSeen] = useState(queue);
  const [groups, setGroups] = useState(queue.resource_groups);
  const [stopPolicy, setStopPolicy] = useState(queue.stop_policy);
  const [fairWeight, setFairWeight] = useState(queue.fair_weight);
  const [taken, setTaken] = useState<FieldDifference[]>([]);
  const edit = useEditClusterQueue(useCluster(), queue.name);
  const refused = edit.error instanceof ApiError ? edit.error.errors : [];
  const { fields, others } = sortFaults(refused);
  const faults = new Map([...fields, ...invalidQuantities(groups)]);

  const form = useRef<HTMLFormElement>(null);
  // The fault may stand far above the button that was pressed.
  useEffect(() => {
    if (edit.error !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [edit.error]);

  const save = () =>
    edit.mutate(
      (now) => {
        const mine = {
          resource_groups: groups,
          stop_policy: stopPolicy,
          fair_weight: fairWeight === "" ? "1" : fairWeight,
        };
        const found = conflicts(opened, mine, now, seen);
        setTaken(found);
        setSeen(now); // whoever saves again has read the other values
        if (found.length > 0) throw new ChangedMeanwhile();
        return changesToSend(opened, mine, now);
      },
      {
        onSuccess: (warnings) => {
          for (const message of warnings)
            notifications.show({ color: "yellow", title: t`Saved, but`, message });
          notifications.show({
            color: "teal",
            title: t`Quotas saved`,
            message: t`${queue.name}: the scheduler follows.`,
          });
          onDone();
        },
      },
    );

  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (invalidQuantities(groups).size === 0) save();
      }}
    >
      <Stack>
        <Group align="flex-start">
          <Select
            label={t`Stop policy`}
            data={stopPolicies()}
            value={stopPolicy}
            allowDeselect={false}
            onChange={(policy) => policy !== null && setStopPolicy(policy as ClusterQueue["stop_policy"])}
            w={320}
            maw="100%"
          />
          <TextInput
            label={t`Fair weight`}
            description={t`Empty: 1`}
            inputWrapperOrder={["label", "input", "description", "error"]}
            value={fairWeight}
            onChange={(event) => setFairWeight(event.currentTarget.value)}
            w={120}
          />
        </Group>
        <div className={classes.scroll}>
          <Table fz="sm" verticalSpacing={6} horizontalSpacing="sm" layout="auto">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>
                  <Trans>Flavor and resource</Trans>
                </Table.Th>
                {QUOTA_FIELDS.map((field) => (
                  <Table.Th key={field} miw={130}>
                    {quotaFieldWords()[field]}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {groups.flatMap((group, g) =>
                group.flavors.flatMap((flavor, f) =>
                  flavor.resources.map((resource, r) => (
                    <Table.Tr key={`${flavor.name} ${resource.name}`} style={{ verticalAlign: "top" }}>
                      <Table.Td>
                        {resource.name}
                        <Text fz="xs" c="var(--kw-muted)">
                          {flavor.name}
                        </Text>
                      </Table.Td>
                      {QUOTA_FIELDS.map((field) => (
                        <Table.Td key={field}>
                          <TextInput
                            size="xs"
                            aria-label={quotaLabel(field, resource.name, flavor.name)}
                            placeholder={field === "nominal_quota" ? "" : t`none`}
                            value={resource[field] ?? ""}
                            disabled={
                              field === "nominal_quota" &&
                              following(queue, flavor.name, resource.name) !== null
                            }
                            error={faults.get(fieldKey(g, f, r, field))}
                            onChange={(event) =>
                              setGroups(withField(groups, [g, f, r], field, event.currentTarget.value.trim()))
                            }
                          />
                        </Table.Td>
                      ))}
                    </Table.Tr>
                  )),
                ),
              )}
            </Table.Tbody>
          </Table>
        </div>
        {edit.error instanceof ChangedMeanwhile && (
          <ErrorState
            title={t`Somebody changed the same fields meanwhile`}
            message={t`Nothing was saved. These are the values now; save again to replace them with yours.`}
            details={taken.map(({ label, value }) => ({ where: label, text: value }))}
          />
        )}
        {edit.error !== null && !(edit.error instanceof ChangedMeanwhile) && (
          <ErrorState
            title={t`Nothing was changed`}
            message={edit.error.message}
            details={faultLines(others)}
          />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            <Trans>Back</Trans>
          </Button>
          <Button type="submit" loading={edit.isPending}>
            <Trans>Save</Trans>
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
