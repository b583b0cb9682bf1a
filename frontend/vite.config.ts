import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import { lingui } from "@lingui/vite-plugin";
import react from "@vitejs/plugin-react";
import { Visitor } from "rolldown/utils";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Where the development server finds the API: a running kueueweb, or `npm run dev:mock`. */
const backend = process.env.KUEUEWEB_BACKEND ?? "http://127.0.0.1:8000";

/** Fonts and pictures are compressed already. */
const COMPRESSIBLE = /\.(js|css|html|svg|json)$/;

/** Writes each asset again as gzip and brotli: the server sends what the browser takes, and compresses nothing itself. */
function compressedTwins(folder: string): Plugin {
  return {
    name: "compressed-twins",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!COMPRESSIBLE.test(name)) continue;
        const path = join(folder, name);
        const content = readFileSync(path);
        for (const [suffix, packed] of [
          ["gz", gzipSync(content, { level: 9 })],
          ["br", brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })],
        ] as const) {
          if (packed.length < content.length) writeFileSync(`${path}.${suffix}`, packed);
        }
      }
    },
  };
}

/**
 * English texts, which stand in the code of their pages, are taken apart here instead of in each reader's browser: that
 * spares the first script the 7 kB of the parser.
 */
function compiledTexts(): Plugin {
  return {
    name: "compiled-texts",
    apply: "build",
    enforce: "post",
    transform: {
      filter: { code: /\bmessage:/, id: /\/src\// },
      handler(code) {
        const edits: { start: number; end: number; text: string }[] = [];
        new Visitor({
          ObjectExpression({ properties }) {
            const value = (name: string) =>
              properties.flatMap((each) =>
                each.type === "Property" &&
                each.key.type === "Identifier" &&
                each.key.name === name &&
                each.value.type === "Literal" &&
                typeof each.value.value === "string"
                  ? [{ start: each.value.start, end: each.value.end, text: each.value.value }]
                  : [],
              )[0];
            const message = value("message");
            if (message === undefined || value("id") === undefined) return;
            edits.push({ ...message, text: JSON.stringify(compileMessage(message.text)) });
          },
        }).visit(this.parse(code));
        if (edits.length === 0) return null;
        return { code: replaced(code, edits), map: null };
      },
    },
  };
}

/** The last first: what stands before an edit keeps its place. */
function replaced(code: string, edits: { start: number; end: number; text: string }[]): string {
  return edits
    .toSorted((a, b) => b.start - a.start)
    .reduce((text, edit) => text.slice(0, edit.start) + edit.text + text.slice(edit.end), code);
}

export default defineConfig(({ command }) => ({
  base: command === "build" ? "/static/" : "/",
  // Scripts find each other wherever the server has them (BASE_PATH); it writes the page's own links itself.
  experimental: {
    renderBuiltUrl: (_name, { hostType }) => (hostType === "html" ? undefined : { relative: true }),
  },
  plugins: [
    // English stays in the code of each page; a catalogue holds every other language.
    lingui({
      macroTransform: { macro: { descriptorFields: "message" } },
      failOnCompileError: true,
    }),
    react(),
    compiledTexts(),
    compressedTwins(fileURLToPath(new URL("./dist", import.meta.url))),
  ],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    // Not in `.vite/`: collectstatic skips folders that begin with a dot.
    manifest: "manifest.json",
    // The first that know CSS light-dark(), which cannot be translated without breaking the choice of a theme.
    target: ["chrome123", "edge123", "firefox121", "safari17.5"],
    sourcemap: false,
  },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      "/api": { target: backend },
      "/kubernetes": { target: backend },
      // The server lets in sockets of its own pages only.
      "/ws": { target: backend, ws: true, changeOrigin: true, rewriteWsOrigin: true },
    },
  },
  test: {
    projects: [
      // What draws nothing needs no document, which takes longer to make than these tests to run.
      {
        extends: true,
        test: {
          name: "logic",
          environment: "node",
          include: ["src/**/*.test.ts", "dev/**/*.test.ts"],
          setupFiles: ["./src/test-language.ts"],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "page",
          environment: "jsdom",
          include: ["src/**/*.test.tsx"],
          exclude: ["src/**/*.mocked.test.tsx"],
          setupFiles: ["./src/test-language.ts", "./src/test-setup.ts"],
          // Modules and the document are made once for all files: they took two thirds of the time.
          isolate: false,
          // On a busy machine of two cores a page of many fields takes five seconds to click through.
          testTimeout: 30_000,
        },
      },
      // `vi.mock` changes a module for all files that share it, so these files share none.
      {
        extends: true,
        test: {
          name: "mocked",
          environment: "jsdom",
          include: ["src/**/*.mocked.test.tsx"],
          setupFiles: ["./src/test-language.ts", "./src/test-setup.ts"],
          testTimeout: 30_000,
        },
      },
    ],
  },
}));
