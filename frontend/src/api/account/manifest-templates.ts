/** The templates of manifests that the user saved; they are in the account, and so in every browser. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "@/api/client";
import type { components } from "@/api/schema.gen";
import { ifUnchanged, useOwnChange } from "./own-objects";

export type ManifestTemplate = components["schemas"]["ManifestTemplate"];

const KEY = ["manifest-templates"] as const;

export function manifestTemplatesQuery() {
  return queryOptions({
    queryKey: KEY,
    queryFn: async ({ signal }) => {
      const params = { query: { limit: 1000 } };
      return (await answer(api.GET("/api/v1/manifest-templates/", { params, signal }))).results;
    },
  });
}

export interface TemplateToSave {
  name: string;
  manifest: string;
  /** The template of that name, as the user sees it; it is replaced unless it has changed since. */
  before: ManifestTemplate | undefined;
}

export function useSaveTemplate() {
  return useOwnChange(KEY, ({ name, manifest, before }: TemplateToSave) =>
    before === undefined
      ? answer(api.POST("/api/v1/manifest-templates/", { body: { name, manifest } }))
      : answer(
          api.PATCH("/api/v1/manifest-templates/{template_id}/", {
            params: { path: { template_id: before.id }, header: ifUnchanged(before) },
            body: { manifest },
          }),
        ),
  );
}

export function useDeleteTemplate() {
  return useOwnChange(KEY, (template: ManifestTemplate) =>
    api.DELETE("/api/v1/manifest-templates/{template_id}/", {
      params: { path: { template_id: template.id }, header: ifUnchanged(template) },
    }),
  );
}
