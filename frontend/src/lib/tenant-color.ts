/** One colour per tenant (namespace), the same on every page, in every session. */

const HUES = 24;
/** Muted, for slices whose holder is not ours to see. */
export const FOREIGN_TENANT_COLOR = "var(--kw-foreign)";

/** A well-spread 32-bit hash of the text (FNV-1a with a final mix). */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) {
    value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}

/** A CSS colour; lightness and chroma come from the theme, so that it reads on light and on dark. */
export function tenantColor(namespace: string | null): string {
  if (namespace === null) return FOREIGN_TENANT_COLOR;
  const slot = hash(namespace) % (HUES * 2);
  const hue = (slot % HUES) * (360 / HUES);
  const lightness = slot < HUES ? "var(--kw-tenant-lightness)" : "var(--kw-tenant-lightness-2)";
  return `oklch(${lightness} var(--kw-tenant-chroma) ${hue})`;
}
