/** Files that replace modules bear a name of their own: vite.config.ts shares the modules of all others. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test("only files named *.mocked.test.tsx replace modules", () => {
  const found = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((name) => /\.test\.tsx?$/.test(name))
    .filter((name) =>
      /\bvi\.(do)?mock\(|\bvi\.resetModules\(/i.test(readFileSync(join("src", name), "utf8")),
    );
  expect(found.filter((name) => !name.endsWith(".mocked.test.tsx"))).toEqual([]);
  expect(found).not.toEqual([]);
});
