import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { NotificationsPage } from "./notifications-page";

const SESSION = {
  body: { authenticated: true, clusters: ["east", "west"].map((name) => ({ name, mode: "schedule" })) },
};
const told = (id: number, cluster: string) => ({
  id,
  cluster,
  event: "DeviceFailed",
  title: `A GPU of ${cluster} has failed`,
  message: "",
  path: "/nodes",
  at: "2026-01-01T00:00:00Z",
  read_at: null,
  ended_at: null,
  deliveries: [],
});
const rule = (id: number, cluster: string) => ({
  id,
  cluster,
  event: "DeviceFailed",
  minutes: null,
  cluster_queue: "",
  channels: [],
  webhook_url: "",
  enabled: true,
});

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("shows what was told in which cluster, and changes it there", async () => {
  const list = (results: unknown[]) => ({ body: { results, next: null } });
  const calls = serve([
    [/session/, SESSION],
    [/^GET .*\/status\//, { body: { unread: 2, mail_address: "", mail_is_configured: false } }],
    [/^GET .*\/cluster-queues\//, list([])],
    [/^GET .*\/notifications\//, list([told(2, "west"), told(1, "east")])],
    [/^GET .*\/notification-rules\//, list([rule(1, "east"), rule(2, "west")])],
    [/^POST .*\/read\//, { status: 204, body: "" }],
    [/^DELETE .*\/notification-rules\//, { status: 204, body: "" }],
  ]);
  await renderPart(
    <ClusterProvider cluster="*">
      <NotificationsPage />
    </ClusterProvider>,
  );
  const row = (await screen.findByText("A GPU of west has failed")).closest("tr") as HTMLElement;
  expect(within(row).getByText("west")).toBeTruthy();
  expect(await screen.findByText("west: on this page")).toBeTruthy();

  const user = userEvent.setup();
  const [, second] = screen.getAllByRole("button", { name: /Delete the rule/ });
  await user.click(second as HTMLElement);
  expect(calls.find(({ method }) => method === "DELETE")?.address).toContain("/2/?cluster=west");

  await user.click(screen.getByRole("button", { name: "Mark all as read" }));
  const reads = () => calls.filter(({ method, address }) => method === "POST" && address.includes("/read/"));
  await waitFor(() =>
    expect(reads().map(({ address }) => address.split("?")[1])).toEqual(["cluster=east", "cluster=west"]),
  );
});
