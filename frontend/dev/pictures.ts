/**
 * Pictures of every page, on the stand-in for the server: `node dev/pictures.ts [OUT_DIR]`. A full cluster in light and dark at
 * 420, 1440 and 2560 px, and at 3840 px in light; what opens on its pages; the same in Chinese; an empty cluster; a server that
 * fails, one that refuses every reader, and a live stream that ends. What the browser complains of ends the run with 1.
 * SETS, PATHS, SCENES, SCHEMES and WIDTHS (with commas) take fewer.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { SCENES } from "./scenes.ts";
import { launch, type Scheme, shoot } from "./shoot.ts";

const MOCK = fileURLToPath(new URL("mock-server.ts", import.meta.url));
const PORT = Number(process.env.PORT ?? 8766);
/** How long a page may draw; a question that fails is asked three times before the page says so. */
const SETTLE_MS = 2_000;
const FAILING_SETTLE_MS = 6_000;
const [out = fileURLToPath(new URL("../pictures", import.meta.url))] = process.argv.slice(2);

const LISTS = [
  "/",
  "/workloads",
  "/queues",
  "/gpus",
  "/nodes",
  "/flavors",
  "/decisions",
  "/reports",
  "/reports?report=usage",
  "/?cluster=default",
  "/cluster",
  "/audit",
  "/users",
  "/users?tab=accounts",
  "/notifications",
  "/nowhere",
];
const OBJECTS = [
  "/workloads/recommender/sweep-whisper-6",
  "/queues/research-vision",
  "/cohorts/research",
  "/local-queues/vision/main",
  "/nodes/gpu-node-02",
  "/flavors/v100-32gb",
  "/topologies/datacenter",
];

interface PictureSet {
  /** The size of the stand-in's cluster. */
  size: string;
  paths: string[];
  scenes?: typeof SCENES;
  schemes: Scheme[];
  widths: number[];
  settle?: number;
  language?: string;
  errorsExpected?: boolean;
  liveEndsAfter?: number;
}

const ALL = [...LISTS, ...OBJECTS];

const SETS: Record<string, PictureSet> = {
  full: { size: "full", paths: ALL, scenes: SCENES, schemes: ["light", "dark"], widths: [420, 1440, 2560] },
  widest: { size: "full", paths: ALL, scenes: SCENES, schemes: ["light"], widths: [3840] },
  chinese: { size: "full", paths: ALL, schemes: ["light"], widths: [420, 1440], language: "zh-CN" },
  empty: { size: "empty", paths: LISTS, schemes: ["light"], widths: [420, 1440] },
  failing: failing("failing"),
  refusing: failing("refusing"),
  silent: { ...failing("small"), settle: 4_000, liveEndsAfter: 1_500 },
};

function failing(size: string): PictureSet {
  const settle = FAILING_SETTLE_MS;
  return { size, paths: ALL, schemes: ["light"], widths: [1440], settle, errorsExpected: true };
}

function listOf(name: string): string[] | undefined {
  return process.env[name]?.split(",");
}

async function startMock(size: string): Promise<ChildProcess> {
  const mock = spawn(process.execPath, [MOCK, size, String(PORT)], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    mock.stdout.once("data", () => resolve());
    mock.once("exit", () => reject(new Error(`the stand-in ended; is port ${PORT} taken?`)));
  });
  return mock;
}

const browser = await launch();
const faults: string[] = [];
for (const name of listOf("SETS") ?? Object.keys(SETS)) {
  const set = SETS[name];
  if (set === undefined) throw new Error(`no pictures of ${name}: one of ${Object.keys(SETS).join(", ")}`);
  const { size, paths, scenes = [], schemes, widths, settle = SETTLE_MS, ...how } = set;
  const wanted = listOf("SCENES");
  const mock = await startMock(size);
  faults.push(
    ...(await shoot(browser, {
      ...how,
      base: `http://127.0.0.1:${PORT}`,
      out: `${out}/${name}`,
      paths: listOf("PATHS") ?? paths,
      scenes: scenes.filter((scene) => wanted === undefined || wanted.includes(scene.name)),
      schemes: (listOf("SCHEMES") as Scheme[] | undefined) ?? schemes,
      widths: listOf("WIDTHS")?.map(Number) ?? widths,
      settle: Number(process.env.SETTLE_MS ?? settle),
      full: process.env.FULL === "1",
    })),
  );
  mock.kill();
}
await browser.close();
for (const fault of faults) console.error(fault);
console.log(`Pictures are in ${out}.`);
process.exit(faults.length === 0 ? 0 : 1);
