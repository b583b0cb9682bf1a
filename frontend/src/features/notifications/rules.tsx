/** The rules of the user: what they are told about, and how. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { ActionIcon, Group, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useCluster, useIsSeveral } from "@/api/cluster";
import { notificationRulesQuery, useDeleteRule, useSwitchRule, useTestRule } from "@/api/notifications";
import type { NotificationRule } from "@/api/types";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { eventLook } from "@/lib/words/notification-event";
import { channelWords } from "./notification-columns";
import { RuleForm } from "./rule-form";

export function Rules() {
  const rules = useQuery(notificationRulesQuery(useCluster()));
  return (
    <Stack gap="md">
      <Panel title={t`Your notification rules`}>
        <QueryError title={t`Your rules cannot be shown`} query={rules} />
        <Stack gap="sm" component="ul" p={0} m={0} style={{ listStyle: "none" }}>
          {rules.data?.results.map((rule) => (
            <Rule key={rule.id} rule={rule} />
          ))}
        </Stack>
        {rules.data?.results.length === 0 && (
          <Text size="sm" c="var(--kw-muted)">
            <Trans>You have no rules yet. Add one below.</Trans>
          </Text>
        )}
      </Panel>
      <Panel title={t`Add a rule`}>
        <RuleForm />
      </Panel>
    </Stack>
  );
}

/** The limits and the channel of a rule: "longer than 30 min, in research, by webhook". */
export function ruleDetails(
  rule: Pick<NotificationRule, "event" | "threshold" | "minutes" | "cluster_queue" | "channels">,
): string {
  const { event, threshold, minutes, cluster_queue: queue, channels } = rule;
  return [
    ...(threshold == null ? [] : [event === "QuotaUsed" ? t`at ${threshold} %` : t`below ${threshold} %`]),
    ...(minutes == null ? [] : [t`after ${minutes} min`]),
    ...(queue === undefined || queue === "" ? [] : [t`in ${queue}`]),
    [t`on this page`, ...(channels ?? []).map((channel) => t`by ${channelWords()[channel] ?? channel}`)].join(
      ", ",
    ),
  ].join(", ");
}

function Rule({ rule }: { rule: NotificationRule }) {
  const several = useIsSeveral();
  const switching = useSwitchRule();
  const deleting = useDeleteRule();
  const testing = useTestRule();
  const { label } = eventLook(rule.event);
  return (
    <Group component="li" justify="space-between" wrap="nowrap" gap="sm">
      <Switch
        label={label}
        description={several ? `${rule.cluster}: ${ruleDetails(rule)}` : ruleDetails(rule)}
        checked={rule.enabled ?? true}
        onChange={(event) => switching.mutate({ rule, enabled: event.currentTarget.checked })}
      />
      <Group gap={2} wrap="nowrap">
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t`Send a test: ${label}`}
          title={t`Send a test`}
          loading={testing.isPending}
          onClick={() => testing.mutate(rule)}
        >
          <Icon name="play" size={15} />
        </ActionIcon>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t`Delete the rule: ${label}`}
          title={t`Delete the rule`}
          loading={deleting.isPending}
          onClick={() => deleting.mutate(rule)}
        >
          <Icon name="close" size={15} />
        </ActionIcon>
      </Group>
    </Group>
  );
}
