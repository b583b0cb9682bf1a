/** A new rule: about what, after how long, in which queue, and how it tells. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Checkbox, NumberInput, Radio, Select, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/client";
import { useTarget } from "@/api/cluster";
import { notificationStatusQuery, useAddRule } from "@/api/notifications";
import { namesQuery } from "@/api/queues";
import { ClusterChoice } from "@/components/clusters/cluster-choice";
import { ErrorState } from "@/components/error-state";
import {
  concernsQueue,
  eventLook,
  NOTIFICATION_EVENTS,
  type NotificationEvent,
  percentLabel,
  usualMinutes,
  usualPercent,
} from "@/lib/words/notification-event";
import { faultLines } from "@/lib/words/refusal";
import { formatLabels, formatOf, WEBHOOK_FORMATS, type WebhookFormat } from "./webhook-format";

/** A number, or an input that is empty for now, which stands for the usual number. */
type Amount = number | "";

const amountOf = (value: number | string): Amount => (typeof value === "number" ? value : "");

export function RuleForm() {
  const target = useTarget();
  const { cluster } = target;
  const status = useQuery(notificationStatusQuery(cluster)).data;
  const queues = useQuery(namesQuery(cluster, "cluster-queues"));
  const adding = useAddRule(cluster);
  const [event, setEvent] = useState<NotificationEvent>("WorkloadFailed");
  const [minutes, setMinutes] = useState<Amount | null>(null);
  const [percent, setPercent] = useState<Amount | null>(null);
  const [format, setFormat] = useState<WebhookFormat>("json");
  const [queue, setQueue] = useState<string | null>(null);
  const [webhook, setWebhook] = useState("");
  const [mail, setMail] = useState(false);
  const choose = (next: NotificationEvent) => {
    setEvent(next);
    setMinutes(usualMinutes(next));
    setPercent(usualPercent(next));
    if (!concernsQueue(next)) setQueue(null);
  };
  // A queue is one cluster's.
  const chooseCluster = (name: string) => {
    target.choose(name);
    setQueue(null);
  };
  const add = () =>
    adding.mutate({
      event,
      minutes: minutes === "" ? usualMinutes(event) : minutes,
      threshold: percent === "" ? usualPercent(event) : percent,
      cluster_queue: queue ?? "",
      channels: [...(webhook === "" ? [] : (["webhook"] as const)), ...(mail ? (["mail"] as const) : [])],
      webhook_url: webhook,
      webhook_format: format,
    });
  return (
    <form
      onSubmit={(submitted) => {
        submitted.preventDefault();
        add();
      }}
    >
      <Stack gap="sm">
        <Radio.Group
          label={t`Notify me when`}
          value={event}
          onChange={(value) => choose(NOTIFICATION_EVENTS.find((each) => each === value) ?? event)}
        >
          <Stack gap={8} mt={8}>
            {NOTIFICATION_EVENTS.map((each) => (
              <Radio key={each} value={each} label={eventLook(each).label} />
            ))}
          </Stack>
        </Radio.Group>
        {percent !== null && (
          <NumberInput
            label={percentLabel(event)}
            min={1}
            max={1000}
            allowDecimal={false}
            value={percent}
            onChange={(value) => setPercent(amountOf(value))}
          />
        )}
        {minutes !== null && (
          <NumberInput
            label={t`After minutes`}
            min={1}
            allowDecimal={false}
            value={minutes}
            onChange={(value) => setMinutes(amountOf(value))}
          />
        )}
        <ClusterChoice {...target} choose={chooseCluster} />
        {concernsQueue(event) && (
          <Select
            label={t`In ClusterQueue`}
            placeholder={t`every queue`}
            data={queues.data ?? []}
            value={queue}
            clearable
            searchable
            onChange={setQueue}
          />
        )}
        <TextInput
          label={t`Also call a webhook`}
          placeholder="https://…"
          type="url"
          value={webhook}
          onChange={(typed) => {
            setWebhook(typed.currentTarget.value);
            setFormat(formatOf(typed.currentTarget.value));
          }}
        />
        {webhook !== "" && (
          <Select
            label={t`Format of the webhook`}
            data={WEBHOOK_FORMATS.map((value) => ({ value, label: formatLabels()[value] }))}
            value={format}
            allowDeselect={false}
            onChange={(value) => setFormat(WEBHOOK_FORMATS.find((each) => each === value) ?? format)}
          />
        )}
        <Checkbox
          label={t`Also send a mail`}
          description={mailWords(status)}
          disabled={status === undefined || !status.mail_is_configured || status.mail_address === ""}
          checked={mail}
          onChange={(checked) => setMail(checked.currentTarget.checked)}
        />
        {adding.error !== null && (
          <ErrorState
            title={t`The rule was not added`}
            message={adding.error.message}
            details={faultLines(adding.error instanceof ApiError ? adding.error.errors : [])}
          />
        )}
        <Text size="xs" c="var(--kw-muted)">
          <Trans>Events always appear on this page. Each event is sent once.</Trans>
        </Text>
        <Button type="submit" loading={adding.isPending}>
          <Trans>Add the rule</Trans>
        </Button>
      </Stack>
    </form>
  );
}

/** The address of a mail, or why none can be sent. */
export function mailWords(status: { mail_is_configured: boolean; mail_address: string } | undefined): string {
  if (status === undefined) return "";
  if (!status.mail_is_configured)
    return t`This installation cannot send mail: its operator must set EMAIL_HOST.`;
  if (status.mail_address === "") return t`Your account has no mail address. A cluster admin can add one.`;
  return t`To ${status.mail_address}`;
}
