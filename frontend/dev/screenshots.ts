/**
 * Takes pictures of a running server: `node dev/screenshots.ts URL OUT_DIR [PATH ...]`, light and dark, wide and narrow.
 * It logs in with KUEUEWEB_USER and KUEUEWEB_PASSWORD. Errors in the browser's console end the run with 1.
 */
import { launch, type Scheme, shoot } from "./shoot.ts";

const [base = "http://127.0.0.1:5173", out = "/tmp/screenshots", ...wanted] = process.argv.slice(2);
const { KUEUEWEB_USER: user, KUEUEWEB_PASSWORD: password } = process.env;
const browser = await launch();
const faults = await shoot(browser, {
  base,
  out,
  paths: wanted.length > 0 ? wanted : ["/", "/workloads", "/queues", "/gpus"],
  schemes: (process.env.SCHEMES ?? "light,dark").split(",") as Scheme[],
  widths: (process.env.WIDTHS ?? "1440,420").split(",").map(Number),
  settle: Number(process.env.SETTLE_MS ?? 2_500),
  full: process.env.FULL === "1",
  ...(user === undefined || password === undefined ? {} : { account: { user, password } }),
});
await browser.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
