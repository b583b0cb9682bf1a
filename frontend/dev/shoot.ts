/** Pictures of pages, and what the browser complains of meanwhile. */
import { mkdirSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";

export type Scheme = "light" | "dark";

export interface Shooting {
  base: string;
  out: string;
  paths: readonly string[];
  schemes: readonly Scheme[];
  widths: readonly number[];
  /** How long a page may draw, in ms. */
  settle: number;
  /** The whole page instead of what a window of 900 px shows. */
  full: boolean;
  /** Of whoever looks, where the server asks for it. */
  account?: { user: string; password: string };
  /** Answers of the server that are errors are what the pictures are about. */
  errorsExpected?: boolean;
}

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
  const { base, out, paths, settle, full, account, errorsExpected = false } = shooting;
  const faults: string[] = [];
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error" && !errorsExpected) faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error.message}`));
  if (account !== undefined) await logIn(page, base, account);
  for (const path of paths) {
    await page.goto(base + path);
    await page.waitForTimeout(settle);
    const name = path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "overview";
    await page.screenshot({ path: `${out}/${name}-${scheme}-${width}.png`, fullPage: full });
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (excess > 0) faults.push(`${path} at ${width} px is ${excess} px too wide`);
  }
  await context.close();
  return faults;
}

async function logIn(page: Page, base: string, { user, password }: { user: string; password: string }) {
  await page.goto(`${base}/login`);
  await page.getByLabel("User name").fill(user);
  await page.locator("input[name=password]").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL((url) => url.pathname !== "/login");
}
