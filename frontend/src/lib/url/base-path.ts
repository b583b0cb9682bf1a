/** The path below which the server has all its pages, such as `/kueueweb`; empty at the root of its host. */
export const basePath =
  globalThis.document?.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? "";
