/** Dialogs, drawers and menus that open on a page, and their texts. */
import type { Page } from "playwright-core";

export interface Scene {
  name: string;
  path: string;
  steps: (page: Page) => Promise<void>;
  /** An answer of the server that is an error is what the scene is about. */
  errorsExpected?: boolean;
}

const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true }).first();

const click = (name: string | RegExp) => (page: Page) => button(page, name).click();

/** Opens the editor of a queue and lowers the first quota in its form. */
async function editQuota(page: Page): Promise<void> {
  await click("Edit")(page);
  const quota = page
    .getByRole("dialog")
    .getByRole("textbox", { name: /nominal/i })
    .first();
  await quota.fill("12");
  await page.getByText("Effects now").waitFor();
}

async function selectThree(page: Page): Promise<void> {
  const boxes = page.getByRole("checkbox", { name: "Select this row" });
  for (const place of [0, 1, 2]) await boxes.nth(place).click();
}

async function newObject(page: Page, kind: string): Promise<void> {
  await click("New")(page);
  await page.getByRole("menuitem", { name: kind, exact: true }).click();
}

const QUEUE = "/queues/research-vision";
const NODE_OF_LARGE_CARDS = "/gpus?node=gpu-node-02";

/** Opens a card, by its name in a screen reader. */
const openDevice = (index: number) => (page: Page) =>
  page.getByRole("button", { name: new RegExp(`^\\w+ ${index} of gpu-node-02`) }).click();

export const SCENES: readonly Scene[] = [
  { name: "editor", path: QUEUE, steps: click("Edit") },
  { name: "editor-effects", path: QUEUE, steps: editQuota },
  {
    name: "editor-conflict",
    path: QUEUE,
    steps: async (page) => {
      await editQuota(page);
      await click("Save")(page);
      await page.getByText("The object has changed meanwhile").waitFor();
    },
    errorsExpected: true,
  },
  { name: "editor-delete", path: QUEUE, steps: click("Delete") },
  { name: "editor-new-queue", path: "/queues", steps: (page) => newObject(page, "ClusterQueue") },
  { name: "editor-new-flavor", path: "/flavors", steps: click("New ResourceFlavor") },
  { name: "yaml", path: "/flavors/v100-32gb", steps: click("YAML") },
  { name: "columns", path: "/workloads", steps: click("Columns") },
  { name: "views", path: "/workloads", steps: click("Views") },
  { name: "label-filter", path: "/workloads", steps: click("Label") },
  { name: "time-filter", path: "/workloads", steps: click(/^Time: /) },
  { name: "submit", path: "/workloads", steps: click("Submit") },
  { name: "bulk", path: "/workloads", steps: selectThree },
  {
    name: "bulk-cancel",
    path: "/workloads",
    steps: async (page) => {
      await selectThree(page);
      await page.getByRole("toolbar").getByRole("button", { name: "Cancel" }).click();
    },
  },
  {
    name: "beside",
    path: "/workloads?state=Pending",
    steps: async (page) => {
      await page.getByRole("row").nth(2).getByRole("cell").last().click();
      await page
        .getByRole("dialog")
        .or(page.getByRole("heading", { level: 2 }))
        .first()
        .waitFor();
    },
  },
  { name: "groups", path: "/workloads?group=cluster_queue", steps: async () => {} },
  {
    name: "priority",
    path: "/workloads/recommender/sweep-whisper-6",
    steps: click("Change priority"),
  },
  {
    name: "device",
    path: NODE_OF_LARGE_CARDS,
    steps: openDevice(1),
  },
  {
    name: "device-mig",
    path: NODE_OF_LARGE_CARDS,
    steps: openDevice(0),
  },
  { name: "drain", path: "/nodes/gpu-node-02", steps: click("Drain") },
  { name: "user-menu", path: "/audit", steps: click(/^User: /) },
  {
    name: "find",
    path: "/decisions",
    steps: async (page) => {
      await click("Find anything")(page);
      await page.getByRole("dialog").getByRole("textbox").fill("vision");
      await page.getByRole("option").first().waitFor();
    },
  },
  {
    name: "shortcuts",
    path: "/decisions",
    steps: (page) => page.keyboard.press("?"),
  },
];
