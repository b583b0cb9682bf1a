import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, it } from "vitest";
import type { Manifest } from "@/lib/manifest/object";
import { renderPart } from "@/test-render";
import { ConfigMapForm, ConfigurationForm } from "./scheduler-fields";

const CONFIGURATION: Manifest = {
  apiVersion: "config.kueue.x-k8s.io/v1beta2",
  kind: "Configuration",
  metadata: { name: "default" },
  waitForPodsReady: { timeout: "5m" },
  featureGates: { TASBalancedPlacement: true },
};

let written: Manifest;

function Edited({ manifest, of: Form }: { manifest: Manifest; of: typeof ConfigurationForm }) {
  const [now, set] = useState(manifest);
  const change = (next: Manifest) => {
    written = next;
    set(next);
  };
  return <Form manifest={now} faults={new Map()} isNew={false} onChange={change} />;
}

it("writes numbers as numbers, choices of yes and no as such, and leaves the rest alone", async () => {
  await renderPart(<Edited manifest={CONFIGURATION} of={ConfigurationForm} />);
  await userEvent.type(screen.getByLabelText("Retries before deactivation"), "3");
  await userEvent.click(
    screen.getByLabelText("Admission of other workloads meanwhile", { selector: "input" }),
  );
  await userEvent.click(await screen.findByText("waits until its pods are ready"));
  await userEvent.click(screen.getByLabelText("Fair sharing", { selector: "input" }));
  await userEvent.click(await screen.findByText(/^While the victim's share is larger/));
  expect(written).toEqual({
    ...CONFIGURATION,
    waitForPodsReady: {
      timeout: "5m",
      requeuingStrategy: { backoffLimitCount: 3 },
      blockAdmission: true,
    },
    fairSharing: { preemptionStrategies: ["LessThanInitialShare"] },
  });
});

it("leaves a block out of which a choice was tried and taken back", async () => {
  const { waitForPodsReady: _, ...without } = CONFIGURATION;
  await renderPart(<Edited manifest={without as Manifest} of={ConfigurationForm} />);
  const choice = () => screen.getByLabelText("Admission of other workloads meanwhile", { selector: "input" });
  await userEvent.click(choice());
  await userEvent.click(await screen.findByText("waits until its pods are ready"));
  expect(written.waitForPodsReady).toEqual({ blockAdmission: true });
  await userEvent.click(choice());
  await userEvent.click(await screen.findByText("continues"));
  expect(written).toEqual(without);
});

it("leaves a block on whose only choice is set to what counts anyway", async () => {
  const manifest = { ...CONFIGURATION, waitForPodsReady: { blockAdmission: true } };
  await renderPart(<Edited manifest={manifest} of={ConfigurationForm} />);
  await userEvent.click(
    screen.getByLabelText("Admission of other workloads meanwhile", { selector: "input" }),
  );
  await userEvent.click(await screen.findByText("continues"));
  expect(written.waitForPodsReady).toEqual({ blockAdmission: false });
});

it("shows fair sharing that names no strategies as what it is, and switches all off", async () => {
  const manifest = { ...CONFIGURATION, fairSharing: {} };
  await renderPart(<Edited manifest={manifest} of={ConfigurationForm} />);
  const choice = screen.getByLabelText<HTMLInputElement>("Fair sharing", { selector: "input" });
  expect(choice.value).toBe("Both, the first before the second");
  await userEvent.click(choice);
  await userEvent.click(await screen.findByText("Off: by priority and age"));
  expect(written).toEqual(CONFIGURATION);
});

it("keeps a setting of devices as the text that it is", async () => {
  const text = "nvidia:\n  deviceSplitCount: 4\n\n# note\n";
  const manifest = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "hami" },
    data: { "a.yaml": text },
  };
  await renderPart(<Edited manifest={manifest} of={ConfigMapForm} />);
  await userEvent.type(screen.getByLabelText("a.yaml"), "x");
  expect(written.data).toEqual({ "a.yaml": `${text}x` });
});
