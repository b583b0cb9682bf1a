/** Renders a part of a page with what pages stand on: theme, query cache and router; the network is the test's. */
import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRouter,
  type RouterHistory,
  RouterProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import { theme } from "@/lib/theme";

export interface Answer {
  status?: number;
  body: unknown;
  etag?: string;
}

export interface Call {
  method: string;
  address: string;
  body: unknown;
  ifMatch: string | null;
}

/** Answers requests by the first pattern that matches "METHOD address"; an unexpected request fails the test. */
export function serve(answers: [RegExp, Answer][]): Call[] {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const { method } = request;
    const address = request.url.replace(window.location.origin, "");
    const text = await request.text();
    const isJson = request.headers.get("Content-Type") === "application/json";
    calls.push({
      method,
      address,
      body: text === "" ? null : isJson ? JSON.parse(text) : text,
      ifMatch: request.headers.get("If-Match"),
    });
    const found = answers.find(([pattern]) => pattern.test(`${method} ${address}`));
    if (found === undefined) throw new Error(`unexpected request: ${method} ${address}`);
    const { status = 200, body, etag } = found[1];
    const headers = { "Content-Type": "application/json", ...(etag === undefined ? {} : { ETag: etag }) };
    return new Response(JSON.stringify(body), { status, headers });
  });
  return calls;
}

export interface Rendered {
  history: RouterHistory;
  queries: QueryClient;
}

export async function renderPart(part: ReactNode): Promise<Rendered> {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const history = createMemoryHistory({ initialEntries: ["/"] });
  const router = createRouter({
    routeTree: createRootRoute({ component: () => part, notFoundComponent: () => part }),
    history,
  });
  await router.load();
  render(
    <I18nProvider i18n={i18n}>
      <MantineProvider theme={theme} env="test">
        <QueryClientProvider client={queries}>
          {/* The test's router has one route; the application's type knows them all. */}
          <RouterProvider router={router as never} />
        </QueryClientProvider>
      </MantineProvider>
    </I18nProvider>,
  );
  return { history, queries };
}

/** The text in an editor of manifests, whether its script is there or a plain field stands for it. */
export function textIn(editor: HTMLElement): string {
  return editor instanceof HTMLTextAreaElement ? editor.value : (editor.textContent ?? "");
}
