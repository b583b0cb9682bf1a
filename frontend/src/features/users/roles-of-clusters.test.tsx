import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { renderPart, serve } from "@/test-render";
import { RoleForm } from "./role-form";
import { Roles } from "./roles";

const SESSION = {
  body: { authenticated: true, clusters: ["east", "west"].map((name) => ({ name, mode: "schedule" })) },
};
const binding = (cluster: string, user: string) => ({
  uid: `${user} in ${cluster}`,
  cluster,
  name: `of-${user}`,
  user,
  group: "",
  role: "viewer",
  in_namespace: "",
  cohort: "",
  every_cluster: cluster === "",
});

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
});

it("says in which cluster a role holds, and takes it away there", async () => {
  const results = [binding("", "alice"), binding("east", "bob"), binding("west", "bob")];
  const calls = serve([
    [/session/, SESSION],
    [/^GET .*role-bindings/, { body: { results, next: null } }],
    [/^DELETE .*role-bindings/, { status: 204, body: "" }],
  ]);
  await renderPart(
    <ClusterProvider cluster="*">
      <Roles editable />
    </ClusterProvider>,
  );
  const everywhere = within((await screen.findByText("user alice")).closest("tr") as HTMLElement);
  expect(everywhere.getByText("every cluster")).toBeTruthy();
  const west = within(screen.getByText("west").closest("tr") as HTMLElement);
  const user = userEvent.setup();
  await user.click(west.getByRole("button", { name: "Unbind viewer of user bob" }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: /Unbind/ }));
  expect(calls.find(({ method }) => method === "DELETE")?.address).toContain("/of-bob/?cluster=west");
});

it("binds a role in the cluster that is chosen", async () => {
  const calls = serve([
    [/session/, SESSION],
    [/^PUT .*role-bindings/, { status: 201, body: {} }],
  ]);
  await renderPart(
    <ClusterProvider cluster="*">
      <RoleForm />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  await user.type(await screen.findByLabelText(/User name/), "bob");
  await user.selectOptions(await screen.findByLabelText("In the cluster"), "west");
  await user.click(screen.getByRole("button", { name: "Bind" }));
  expect(calls.find(({ method }) => method === "PUT")?.address).toContain("cluster=west");
});
