/** Pictures of pages, and what the browser complains of meanwhile. */
import { mkdirSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";
import type { Scene } from "./scenes.ts";

export type Scheme = "light" | "dark";

export interface Shooting {
  base: string;
  out: string;
  paths: readonly string[];
  /** Scenes that open on pages, taken after the pages themselves. */
  scenes?: readonly Scene[];
  /** The language of the browser, and so of the pages. */
  language?: string;
  schemes: readonly Scheme[];
  widths: readonly number[];
  /** How long a page may draw, in ms. */
  settle: number;
  /** The whole page instead of what a window shows. */
  full: boolean;
  /** The reader's account, where the server asks for one. */
  account?: { user: string; password: string };
  /** Answers of the server that are errors are what the pictures are about. */
  errorsExpected?: boolean;
  /** When each page loses its live stream, in ms after it began; it does not come back. */
  liveEndsAfter?: number;
}

/** Windows as high as screens of their width are. */
const HEIGHTS = [
  [1440, 900],
  [2560, 1440],
] as const;
const HIGHEST = 2_160;
/** How long a step may take, and what it opened may draw. */
const SCENE_MS = 8_000;
const SCENE_SETTLE_MS = 800;

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
    ],
  });
}

/** Takes them all; what was wrong, a line each: errors of scripts and of the server, and pages wider than the window. */
export async function shoot(browser: Browser, shooting: Shooting): Promise<string[]> {
  mkdirSync(shooting.out, { recursive: true });
  const faults: string[] = [];
  for (const scheme of shooting.schemes)
    for (const width of shooting.widths) faults.push(...(await shootAs(browser, shooting, scheme, width)));
  return faults;
}

async function shootAs(
  browser: Browser,
  shooting: Shooting,
  scheme: Scheme,
  width: number,
): Promise<string[]> {
  const { base, out, paths, scenes = [], settle, full, account } = shooting;
  let errorsExpected = shooting.errorsExpected ?? false;
  const faults: string[] = [];
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height: HEIGHTS.find(([widest]) => width <= widest)?.[1] ?? HIGHEST },
    locale: shooting.language ?? "en",
  });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" && !errorsExpected) faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
  const open = shooting.liveEndsAfter === undefined ? goto : await cutLive(page, shooting.liveEndsAfter);
  const take = async (name: string) => {
    await page.screenshot({ path: `${out}/${name}-${scheme}-${width}.png`, fullPage: full });
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (excess > 0) faults.push(`${name} at ${width} px is ${excess} px too wide`);
  };
  if (account !== undefined) await logIn(page, base, account);
  for (const path of paths) {
    await open(page, base + path);
    await page.waitForTimeout(settle);
    await take(path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "overview");
  }
  page.setDefaultTimeout(SCENE_MS);
  for (const { name, path, steps, ...scene } of scenes) {
    errorsExpected = shooting.errorsExpected ?? scene.errorsExpected ?? false;
    await open(page, base + path);
    try {
      await steps(page);
    } catch (error) {
      faults.push(`${name} at ${width} px: ${error}`);
    }
    await page.waitForTimeout(SCENE_SETTLE_MS);
    await take(`scene-${name}`);
  }
  await context.close();
  return faults;
}

async function goto(page: Page, address: string): Promise<void> {
  await page.goto(address);
}

/** Lets each page that is opened have one live stream, and ends it. */
async function cutLive(page: Page, afterMs: number): Promise<typeof goto> {
  let isFirst = true;
  await page.routeWebSocket(/\/ws\/live\//, (socket) => {
    if (!isFirst) return void socket.close();
    isFirst = false;
    socket.connectToServer();
    setTimeout(() => void socket.close().catch(() => undefined), afterMs);
  });
  return async (_, address) => {
    isFirst = true;
    await page.goto(address);
  };
}

async function logIn(page: Page, base: string, { user, password }: { user: string; password: string }) {
  await page.goto(`${base}/login`);
  await page.getByLabel("User name").fill(user);
  await page.locator("input[name=password]").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL((url) => url.pathname !== "/login");
}
