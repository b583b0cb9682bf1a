import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import type { Manifest } from "@/lib/manifest/object";
import { type Answer, renderPart, serve, textIn } from "@/test-render";
import { NewObjectEditor, ObjectEditor } from "./object-editor";

class SilentSocket {
  close(): void {}
}

const queue = (version: string, quota: string, stopPolicy = "None"): Manifest => ({
  apiVersion: "kueue.x-k8s.io/v1beta2",
  kind: "ClusterQueue",
  metadata: { name: "research", uid: "u", resourceVersion: version, generation: Number(version) },
  spec: {
    stopPolicy,
    resourceGroups: [
      {
        coveredResources: ["nvidia.com/total-gpumem"],
        flavors: [{ name: "v100", resources: [{ name: "nvidia.com/total-gpumem", nominalQuota: quota }] }],
      },
    ],
  },
  status: { pendingWorkloads: 1 },
});

const NONE = { count: 0, workloads: [] };
const preview = (manifest: Manifest): Answer => ({
  body: {
    result: { dry_run: true, objects: [], warnings: [], skipped: [] },
    currency: "",
    workloads: [],
    manifests: [manifest],
    effects: {
      complete: true,
      starts: { count: 1, workloads: [{ workload: "team/large", cluster_queue: "research" }] },
      waits: NONE,
      preempted: NONE,
      stopped: NONE,
      quotas: [],
      inactive: [],
    },
    effects_pending: false,
    effects_problem: "",
  },
});
const NAMES = [
  /^GET .*\/api\/v1\/(cohorts|resource-flavors)\//,
  { body: { results: [], next: null } },
] as const;
const SAVED: Answer = { body: { dry_run: false, objects: [], warnings: [], skipped: [] } };

function edit(onClose = vi.fn()) {
  vi.stubGlobal("WebSocket", SilentSocket);
  return renderPart(
    <ClusterProvider cluster="default">
      <ObjectEditor reference={{ kind: "ClusterQueue", name: "research" }} onClose={onClose} />
    </ClusterProvider>,
  );
}

// By label and text: asking for roles computes the style of each of the dialog's hundreds of elements.
const quotaField = () => screen.findByLabelText("Nominal quota of nvidia.com/total-gpumem, flavor v100");
const saveButton = () => screen.getByText("Save").closest("button") as HTMLButtonElement;
const changeTables = () => screen.getAllByLabelText("Changes");
const ready = () =>
  waitFor(() => expect(saveButton().disabled).toBe(false), { timeout: 30_000, interval: 200 });

// A dialog of thirty fields takes jsdom seconds on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

it("says what changes and who would start, and saves only what was read", async () => {
  const calls = serve([
    [/^GET .*manifests\/clusterqueue\/research/, { body: queue("3", "8192") }],
    [...NAMES],
    [/^POST .*preview/, preview(queue("3", "16384"))],
    [/^POST .*manifests/, SAVED],
  ]);
  const onClose = vi.fn();
  await edit(onClose);
  const field = await quotaField();
  expect(screen.getByText("8 GiB")).toBeDefined();
  expect(saveButton().disabled).toBe(true);
  const user = userEvent.setup();
  fireEvent.change(field, { target: { value: "16384" } });
  expect(textIn(screen.getByLabelText(/Manifest/))).toContain('nominalQuota: "16384"');
  await ready();
  expect(within(changeTables()[0] as HTMLElement).getByText("16384 (16 GiB)")).toBeDefined();
  expect(screen.getByRole("status").textContent).toContain("1 workload would start: team/large");
  await user.click(saveButton());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  const sent = calls.find(({ method, address }) => method === "POST" && address.includes("manifests"));
  const body = sent?.body as Manifest;
  expect(body.metadata).toEqual({ name: "research", resourceVersion: "3" });
  expect(body.status).toBeUndefined();
});

it("begins at the quota that it was opened for", async () => {
  serve([[/^GET .*manifests\/clusterqueue\/research/, { body: queue("3", "8192") }], [...NAMES]]);
  vi.stubGlobal("WebSocket", SilentSocket);
  await renderPart(
    <ClusterProvider cluster="default">
      <ObjectEditor
        reference={{ kind: "ClusterQueue", name: "research" }}
        quota={{ flavor: "v100", resource: "nvidia.com/total-gpumem" }}
        onClose={() => {}}
      />
    </ClusterProvider>,
  );
  const field = await quotaField();
  await waitFor(() => expect(document.activeElement).toBe(field));
});

it("shows another user's change with its author, and keeps one's own change", async () => {
  const refused: Answer = {
    status: 409,
    body: {
      reason: "Conflict",
      message: "the object has been modified by alice; its resourceVersion is 4 now",
      errors: [{ document: 0, path: "metadata.resourceVersion", value: "3", rule: "modified", remedy: "" }],
    },
  };
  const reads = [queue("3", "8192"), queue("4", "8192", "Hold")];
  const answers: [RegExp, Answer][] = [
    [/^GET .*manifests\/clusterqueue\/research/, { body: reads[0] }],
    [...NAMES],
    [/^POST .*preview/, preview(queue("3", "16384"))],
    [/^POST .*manifests/, refused],
  ];
  const calls = serve(answers);
  const onClose = vi.fn();
  await edit(onClose);
  const field = await quotaField();
  const user = userEvent.setup();
  fireEvent.change(field, { target: { value: "16384" } });
  await ready();
  answers[0] = [/^GET .*manifests\/clusterqueue\/research/, { body: reads[1] }];
  await user.click(saveButton());
  const alert = await screen.findByText(/The object has changed in the meantime/);
  expect(screen.getByText(/modified by alice/)).toBeDefined();
  expect(within(changeTables()[0] as HTMLElement).getByText("Stop policy")).toBeDefined();
  expect(alert).toBeDefined();
  expect(onClose).not.toHaveBeenCalled();

  answers[3] = [/^POST .*manifests/, SAVED];
  await ready();
  await user.click(saveButton());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  const sent = calls.findLast(({ method, address }) => method === "POST" && address.includes("manifests"));
  const body = sent?.body as Manifest;
  expect(body.metadata.resourceVersion).toBe("4");
  expect(body.spec).toEqual(queue("4", "16384", "Hold").spec);
});

it("creates only what is not there yet, and puts the server's fault at its field", async () => {
  const fault = { document: 0, path: "metadata.name", value: "", rule: "Required value", remedy: "" };
  const answers: [RegExp, Answer][] = [
    [...NAMES],
    [/^POST .*preview/, { status: 400, body: { reason: "Invalid", message: "Refused.", errors: [fault] } }],
    [/^POST .*manifests/, SAVED],
  ];
  const calls = serve(answers);
  vi.stubGlobal("WebSocket", SilentSocket);
  const onClose = vi.fn();
  await renderPart(
    <ClusterProvider cluster="default">
      <NewObjectEditor kind="Cohort" onClose={onClose} />
    </ClusterProvider>,
  );
  const user = userEvent.setup();
  fireEvent.change(await screen.findByLabelText("Fair weight"), { target: { value: "2" } });
  expect(
    await screen.findByText("The change would be refused", undefined, { timeout: 30_000 }),
  ).toBeDefined();
  const name = screen.getByLabelText(/^Name/);
  expect(name.getAttribute("aria-invalid")).toBe("true");
  const made: Manifest = {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "Cohort",
    metadata: { name: "company" },
    spec: { fairSharing: { weight: "2" } },
  };
  answers[1] = [/^POST .*preview/, preview(made)];
  fireEvent.change(name, { target: { value: "company" } });
  await ready();
  await user.click(saveButton());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  const sent = calls.find(({ method, address }) => method === "POST" && address.includes("manifests"));
  expect(sent?.body).toEqual({ ...made, metadata: { name: "company", resourceVersion: "0" } });
});

it("has the server's help beside a field", async () => {
  const weight = { properties: { weight: { description: "The weight in fair sharing." } } };
  const schema = {
    "x-kubernetes-group-version-kind": [{ kind: "ClusterQueue" }],
    properties: { spec: { properties: { fairSharing: weight } } },
  };
  serve([
    [/openapi\/v3$/, { body: { paths: { "apis/kueue.x-k8s.io/v1beta2": {} } } }],
    [/openapi\/v3\/apis\/kueue.x-k8s.io\/v1beta2$/, { body: { components: { schemas: { schema } } } }],
    [/^GET .*manifests\/clusterqueue\/research/, { body: queue("3", "8192") }],
    [...NAMES],
  ]);
  await edit();
  fireEvent.focus(await screen.findByLabelText("Help on Fair weight"));
  expect(await screen.findByText("The weight in fair sharing.")).toBeTruthy();
  expect(screen.queryByLabelText("Help on Stop policy")).toBeNull();
});
