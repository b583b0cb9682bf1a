/**
 * One colour per tenant (namespace), the same on every page: each takes the hue that its name hashes to, or, where another
 * tenant has it, the next one that is free, so that no two tenants look alike while there are colours left.
 */

/**
 * Degrees in OKLCH, far apart from the hues of states: red (about 25) is broken, amber (about 80) warns, teal (about 165) is
 * free or well.
 */
const HUE_DEGREES = [108, 122, 136, 195, 215, 235, 255, 275, 295, 312, 328, 345];
const HUES = HUE_DEGREES.length;
/** Coprime to HUES, and far enough that the next free hue looks different. */
const STEP = 5;
const VARIANTS = [
  "var(--kw-tenant-lightness) var(--kw-tenant-chroma)",
  "var(--kw-tenant-lightness-2) var(--kw-tenant-chroma)",
  "var(--kw-tenant-lightness) calc(var(--kw-tenant-chroma) * 0.45)",
];
/** Muted, for slices whose holder is not known to us. */
export const FOREIGN_TENANT_COLOR = "var(--kw-foreign)";

const slots = new Map<string, number>();
const taken = new Set<number>();

/** A well-spread 32-bit hash of the text (FNV-1a with a final mix). */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const character of text) {
    value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}

function takeSlot(namespace: string): number {
  const first = hash(namespace) % HUES;
  for (let variant = 0; variant < VARIANTS.length; variant += 1) {
    for (let step = 0; step < HUES; step += 1) {
      const slot = variant * HUES + ((first + step * STEP) % HUES);
      if (taken.has(slot)) continue;
      taken.add(slot);
      return slot;
    }
  }
  return hash(namespace) % (HUES * VARIANTS.length);
}

/** A CSS colour; lightness and chroma come from the theme, so that it reads on light and on dark. */
export function tenantColor(namespace: string | null): string {
  if (!namespace) return FOREIGN_TENANT_COLOR;
  let slot = slots.get(namespace);
  if (slot === undefined) {
    slot = takeSlot(namespace);
    slots.set(namespace, slot);
  }
  return `oklch(${VARIANTS[Math.floor(slot / HUES)]} ${HUE_DEGREES[slot % HUES]})`;
}
