/** The fields of each kind, as `kubectl explain` reads them: the server describes them in its OpenAPI. */
import { queryOptions, useQueries, useQuery } from "@tanstack/react-query";
import type { DescribedKinds, FieldSchema, KindDocs } from "@/lib/manifest/field-docs";
import { apiVersionsIn } from "@/lib/manifest/yaml-place";
import { basePath } from "@/lib/url/base-path";
import { send } from "./client";
import { useCluster } from "./cluster";

interface Document {
  components: {
    schemas: Record<
      string,
      FieldSchema & { "x-kubernetes-group-version-kind"?: readonly { kind: string }[] }
    >;
  };
}

/** They change with the server's version only. */
const FOREVER = {
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: Number.POSITIVE_INFINITY,
  retry: false,
} as const;

async function read<Answer>(cluster: string, address: string, signal: AbortSignal): Promise<Answer> {
  const path = `${basePath}/kubernetes/${encodeURIComponent(cluster)}/openapi/v3${address}`;
  return (await send(new Request(`${window.location.origin}${path}`, { signal }))).json() as Promise<Answer>;
}

/** The groups and versions that are described, such as `kueue.x-k8s.io/v1beta2`. */
function versionsQuery(cluster: string) {
  return queryOptions({
    queryKey: ["field-docs", cluster] as const,
    queryFn: async ({ signal }) => {
      const { paths } = await read<{ paths: Record<string, unknown> }>(cluster, "", signal);
      return Object.keys(paths).map((path) => path.replace(/^apis?\//, ""));
    },
    ...FOREVER,
  });
}

function kindDocsQuery(cluster: string, apiVersion: string) {
  const address = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return queryOptions({
    queryKey: ["field-docs", cluster, apiVersion] as const,
    queryFn: async ({ signal }): Promise<KindDocs> => {
      const { components } = await read<Document>(cluster, address, signal);
      return new Map(
        Object.values(components.schemas).flatMap((schema) =>
          (schema["x-kubernetes-group-version-kind"] ?? []).map(({ kind }) => [kind, schema] as const),
        ),
      );
    },
    ...FOREVER,
  });
}

/** The fields of the kinds of these versions, as far as they have been read; a version that is not described has none. */
export function useFieldDocs(apiVersions: readonly string[]): DescribedKinds {
  const cluster = useCluster();
  const versions = useQuery(versionsQuery(cluster)).data ?? [];
  const wanted = apiVersions.filter((version) => versions.includes(version));
  const found = useQueries({ queries: wanted.map((version) => kindDocsQuery(cluster, version)) });
  const kinds = new Map<string, KindDocs>();
  for (const [at, version] of wanted.entries()) {
    const docs = found[at]?.data;
    if (docs !== undefined) kinds.set(version, docs);
  }
  return { versions, kinds };
}

/** The fields of the kinds of the objects in a text. */
export function useFieldDocsOf(text: string): DescribedKinds {
  return useFieldDocs(apiVersionsIn(text));
}
