/** How much larger all text is than usual, on the widest screens or by the reader's choice: sizes in px follow it. */
export function textScale(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
}
