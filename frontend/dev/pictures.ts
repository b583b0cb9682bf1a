/**
 * Pictures of every page, on the stand-in for the server: `node dev/pictures.ts [OUT_DIR]`. A full cluster in light and dark at
 * 420, 1440 and 2560 px; an empty one, and a server that fails, at 1440 px in light. What the browser complains of ends the run with 1.
 * SIZES, SCHEMES and WIDTHS (with commas) take fewer.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { launch, type Scheme, shoot } from "./shoot.ts";

const MOCK = fileURLToPath(new URL("mock-server.ts", import.meta.url));
const PORT = Number(process.env.PORT ?? 8766);
/** How long a page may draw; a question that fails is asked three times before the page says so. */
const SETTLE_MS = { full: 2_000, empty: 2_000, failing: 6_000 };
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
  "/audit",
  "/notifications",
  "/nowhere",
];
const OBJECTS = [
  "/workloads/recommender/train-whisper-6",
  "/queues/research-vision",
  "/cohorts/research",
  "/local-queues/vision/main",
  "/nodes/gpu-node-02",
  "/flavors/v100-32gb",
  "/topologies/datacenter",
];

const SETS: Record<string, { paths: string[]; schemes: Scheme[]; widths: number[] }> = {
  full: { paths: [...LISTS, ...OBJECTS], schemes: ["light", "dark"], widths: [420, 1440, 2560] },
  empty: { paths: LISTS, schemes: ["light"], widths: [1440] },
  failing: { paths: [...LISTS, ...OBJECTS], schemes: ["light"], widths: [1440] },
};

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
for (const size of listOf("SIZES") ?? Object.keys(SETS)) {
  const set = SETS[size];
  if (set === undefined) throw new Error(`no pictures of ${size}: one of ${Object.keys(SETS).join(", ")}`);
  const mock = await startMock(size);
  faults.push(
    ...(await shoot(browser, {
      base: `http://127.0.0.1:${PORT}`,
      out: `${out}/${size}`,
      paths: listOf("PATHS") ?? set.paths,
      schemes: (listOf("SCHEMES") as Scheme[] | undefined) ?? set.schemes,
      widths: listOf("WIDTHS")?.map(Number) ?? set.widths,
      settle: Number(process.env.SETTLE_MS ?? SETTLE_MS[size as keyof typeof SETTLE_MS]),
      full: process.env.FULL === "1",
      errorsExpected: size === "failing",
    })),
  );
  mock.kill();
}
await browser.close();
for (const fault of faults) console.error(fault);
console.log(`Pictures are in ${out}.`);
process.exit(faults.length === 0 ? 0 : 1);
