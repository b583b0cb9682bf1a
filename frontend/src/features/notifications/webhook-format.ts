/** The forms of a webhook's body, by the chat service that reads them. */
import { t } from "@lingui/core/macro";

export const WEBHOOK_FORMATS = ["json", "slack", "teams", "feishu", "dingtalk"] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

const HOSTS: readonly (readonly [RegExp, WebhookFormat])[] = [
  [/(^|\.)slack\.com$/, "slack"],
  [/(^|\.)(office\.com|logic\.azure\.com|powerplatform\.com)$/, "teams"],
  [/(^|\.)(feishu\.cn|larksuite\.com)$/, "feishu"],
  [/(^|\.)dingtalk\.com$/, "dingtalk"],
];

export function formatLabels(): Record<WebhookFormat, string> {
  return {
    json: t`JSON with a text`,
    slack: "Slack",
    teams: "Microsoft Teams",
    feishu: t`Feishu`,
    dingtalk: t`DingTalk`,
  };
}

/** The format of the chat service at an address; JSON for any other address, also for one that is not complete yet. */
export function formatOf(address: string): WebhookFormat {
  const host = URL.canParse(address) ? new URL(address).hostname : "";
  return HOSTS.find(([pattern]) => pattern.test(host))?.[1] ?? "json";
}
