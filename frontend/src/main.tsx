import "@fontsource-variable/inter/index.css";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "./global.css";
import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/client";
import { sessionKey } from "@/api/session";
import { keptLanguage, speak } from "@/lib/language";
import { theme } from "@/lib/theme";
import { createAppRouter } from "@/router";

/** The server no longer knows us: ask who we are, and the page leads to the login. */
function noticeLogout(error: Error): void {
  if (error instanceof ApiError && error.isUnauthenticated) {
    void queries.invalidateQueries({ queryKey: sessionKey });
  }
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: noticeLogout }),
  mutationCache: new MutationCache({ onError: noticeLogout }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // A refusal stays one; a server that does not answer may be back in a moment.
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

const router = createAppRouter(queries);
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
const pages = createRoot(root);

/** In another language everything is made again: no text that was put away in the old one stays. */
function render(): void {
  pages.render(
    <StrictMode>
      <I18nProvider key={i18n.locale} i18n={i18n}>
        <MantineProvider theme={theme} defaultColorScheme="auto">
          <QueryClientProvider client={queries}>
            <RouterProvider router={router} />
          </QueryClientProvider>
        </MantineProvider>
      </I18nProvider>
    </StrictMode>,
  );
}

i18n.on("change", render);
// A catalogue that does not come leaves the pages in the language of the source.
speak(keptLanguage()).catch(() => speak("en"));
