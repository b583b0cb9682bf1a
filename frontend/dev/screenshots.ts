/**
 * Takes pictures of the pages: `node dev/screenshots.ts URL OUT_DIR [PATH ...]`, light and dark, wide and narrow.
 * Log in beforehand by KUEUEWEB_USER and KUEUEWEB_PASSWORD where the server asks for it. Console errors end the run with 1.
 */
import { mkdirSync } from "node:fs";
import { type Browser, chromium, type Page } from "playwright-core";

const [base = "http://127.0.0.1:5173", out = "/tmp/screenshots", ...wanted] = process.argv.slice(2);
const paths = wanted.length > 0 ? wanted : ["/", "/workloads", "/queues", "/gpus"];
const WIDTHS = (process.env.WIDTHS ?? "1440,420").split(",").map(Number);
const SCHEMES = (process.env.SCHEMES ?? "light,dark").split(",") as ("light" | "dark")[];
const SETTLE_MS = Number(process.env.SETTLE_MS ?? 2_500);
let faults = 0;

async function logIn(page: Page): Promise<void> {
  const { KUEUEWEB_USER: user, KUEUEWEB_PASSWORD: password } = process.env;
  if (user === undefined || password === undefined) return;
  await page.goto(`${base}/login`);
  await page.getByLabel("User name").fill(user);
  await page.locator("input[name=password]").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL((url) => url.pathname !== "/login");
}

async function shoot(browser: Browser, colorScheme: "light" | "dark", width: number): Promise<void> {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    faults += 1;
    console.error(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => {
    faults += 1;
    console.error(`${page.url()}: ${error.message}`);
  });
  await logIn(page);
  for (const path of paths) {
    await page.goto(base + path);
    await page.waitForTimeout(SETTLE_MS);
    const name = path.replace(/[^a-z0-9]+/gi, "-").replace(/^-|-$/g, "") || "overview";
    await page.screenshot({
      path: `${out}/${name}-${colorScheme}-${width}.png`,
      fullPage: process.env.FULL === "1",
    });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (wide > 0) console.warn(`${path} at ${width}px is ${wide}px too wide`);
  }
  await context.close();
}

mkdirSync(out, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
  ],
});
for (const scheme of SCHEMES) for (const width of WIDTHS) await shoot(browser, scheme, width);
await browser.close();
process.exit(faults === 0 ? 0 : 1);
