import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { deliveryWords } from "./notification-columns";
import { mailWords, RuleForm } from "./rule-form";
import { ruleDetails } from "./rules";

test("a rule says after how long, where and how it tells", () => {
  expect(
    ruleDetails({ event: "WorkloadWaits", minutes: 30, cluster_queue: "research", channels: ["webhook"] }),
  ).toBe("after 30 min, in research, on this page, by webhook");
  expect(ruleDetails({ event: "WorkloadFailed", minutes: null, cluster_queue: "", channels: [] })).toBe(
    "on this page",
  );
  expect(ruleDetails({ event: "QuotaUsed", threshold: 90, minutes: 10 })).toBe(
    "at 90 %, after 10 min, on this page",
  );
  expect(ruleDetails({ event: "DevicesIdle", threshold: 5, minutes: 10 })).toBe(
    "below 5 %, after 10 min, on this page",
  );
});

test("a notification says how far it is on its way", () => {
  expect(deliveryWords({ deliveries: [{ channel: "mail", state: "Sent", attempts: 1, error: "" }] })).toBe(
    "mail sent",
  );
});

test("the form says why no mail can be sent", () => {
  expect(mailWords({ mail_is_configured: false, mail_address: "" })).toContain("EMAIL_HOST");
  expect(mailWords({ mail_is_configured: true, mail_address: "" })).toContain("no mail address");
  expect(mailWords({ mail_is_configured: true, mail_address: "a@b.org" })).toBe("To a@b.org");
});

test("a rule is added as it was filled in", async () => {
  const calls = serve([
    [/^GET .*\/status\//, { body: { unread: 0, mail_address: "a@b.org", mail_is_configured: true } }],
    [/^GET .*\/cluster-queues\//, { body: { results: [], next: null } }],
    [/^POST .*\/notification-rules\//, { status: 201, body: {} }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <RuleForm />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.type(screen.getByLabelText("Also call a webhook"), "https://chat.example.org/x");
  await user.click(await screen.findByLabelText("Also send a mail"));
  await user.click(screen.getByRole("button", { name: "Add the rule" }));
  expect(calls.find(({ method }) => method === "POST")?.body).toEqual({
    event: "WorkloadFailed",
    minutes: null,
    threshold: null,
    cluster_queue: "",
    channels: ["webhook", "mail"],
    webhook_url: "https://chat.example.org/x",
    webhook_format: "json",
  });
});

test("a rule about a figure has a threshold, and a chat service's webhook its format", async () => {
  const calls = serve([
    [/^GET .*\/status\//, { body: { unread: 0, mail_address: "", mail_is_configured: false } }],
    [/^GET .*\/cluster-queues\//, { body: { results: [], next: null } }],
    [/^POST .*\/notification-rules\//, { status: 201, body: {} }],
  ]);
  await renderPart(
    <ClusterProvider cluster="default">
      <RuleForm />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.click(screen.getByLabelText("A queue's quota is nearly used up"));
  const threshold = screen.getByLabelText("Used at least, in % of the nominal quota");
  await user.clear(threshold);
  await user.type(threshold, "75");
  await user.type(
    screen.getByLabelText("Also call a webhook"),
    "https://open.feishu.cn/open-apis/bot/v2/hook/x",
  );
  await user.click(screen.getByRole("button", { name: "Add the rule" }));
  expect(calls.find(({ method }) => method === "POST")?.body).toMatchObject({
    event: "QuotaUsed",
    threshold: 75,
    minutes: 10,
    webhook_format: "feishu",
  });
});
