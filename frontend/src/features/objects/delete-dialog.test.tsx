import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { ClusterProvider } from "@/api/cluster";
import { type Answer, renderPart, serve } from "@/test-render";
import { DeleteDialog } from "./delete-dialog";

class SilentSocket {
  close(): void {}
}

const queue = (version: string): Answer => ({
  body: {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "ClusterQueue",
    metadata: { name: "research", uid: "u", resourceVersion: version },
    spec: {},
  },
});
const trial = (warning: string): Answer => ({
  body: {
    result: {
      dry_run: true,
      objects: [],
      warnings:
        warning === "" ? [] : [{ kind: "ClusterQueue", namespace: "", name: "research", message: warning }],
      skipped: [],
    },
    currency: "",
    workloads: [],
    manifests: [],
    effects: null,
    effects_pending: false,
    effects_problem: "",
  },
});

it("deletes what was read, and asks again where another user has changed it meanwhile", async () => {
  vi.stubGlobal("WebSocket", SilentSocket);
  const object: [RegExp, Answer] = [/^GET .*\/manifests\/clusterqueue\/research\//, queue("7")];
  const outcome: [RegExp, Answer] = [/^POST .*\/preview\//, trial("")];
  const changed: Answer = { status: 412, body: { reason: "PreconditionFailed", message: "x" } };
  const deletion: [RegExp, Answer] = [/^DELETE .*\/cluster-queues\/research\//, changed];
  const calls = serve([object, outcome, deletion]);
  const onClose = vi.fn();
  const reference = { kind: "ClusterQueue", name: "research" } as const;
  renderPart(
    <ClusterProvider cluster="default">
      <DeleteDialog reference={reference} onClose={onClose} onDeleted={vi.fn()} />
    </ClusterProvider>,
  );
  const button = () => screen.getByText("Delete").closest("button") as HTMLButtonElement;
  await waitFor(() => expect(button().disabled).toBe(false));
  object[1] = queue("8");
  outcome[1] = trial("3 workloads hold quota of it");
  await userEvent.click(button());
  await screen.findByText(/This object has changed since you opened it/);
  await screen.findByText(/3 workloads hold quota of it/);
  expect(onClose).not.toHaveBeenCalled();
  deletion[1] = { status: 202, body: {} };
  await userEvent.click(button());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  const sent = calls.filter(({ method }) => method === "DELETE").map(({ ifMatch }) => ifMatch);
  expect(sent).toEqual(['"7"', '"8"']);
});
