/** The look of everything: colours, type and radii. */
import { t } from "@lingui/core/macro";
import {
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  parseThemeColor,
  type VariantColorsResolver,
} from "@mantine/core";

/** Blue slate instead of neutral grey; 0 is the text, 7 the cards, 8 the page. */
const dark: MantineColorsTuple = [
  "#d3dae6",
  "#aeb9ca",
  "#8794a9",
  "#5e6b81",
  "#333f54",
  "#27324a",
  "#1c2639",
  "#151d2d",
  "#0e1522",
  "#080d17",
];

/** Tinted surfaces that keep their text readable on light and on dark. */
const variantColorResolver: VariantColorsResolver = (input) => {
  const colors = defaultVariantColorsResolver(input);
  // White on Mantine's red 7 has 3.8 to 1.
  if (input.variant === "filled" && input.color === "red") {
    const shade = (place: number) => `var(--mantine-color-red-${place})`;
    return { ...colors, background: shade(9), hover: `color-mix(in srgb, ${shade(9)} 88%, black)` };
  }
  if (input.variant !== "light") return colors;
  const { color } = parseThemeColor({ color: input.color ?? input.theme.primaryColor, theme: input.theme });
  const tint = (percent: number) =>
    `color-mix(in srgb, var(--mantine-color-${color}-6) ${percent}%, transparent)`;
  return {
    ...colors,
    background: tint(14),
    hover: tint(22),
    color: `light-dark(color-mix(in srgb, var(--mantine-color-${color}-9) 70%, black), var(--mantine-color-${color}-3))`,
  };
};

export const theme = createTheme({
  variantColorResolver,
  primaryColor: "indigo",
  primaryShade: 7,
  fontFamily: '"Inter Variable", system-ui, sans-serif',
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  headings: { fontFamily: '"Inter Variable", system-ui, sans-serif', fontWeight: "650" },
  defaultRadius: "md",
  cursorType: "pointer",
  autoContrast: true,
  colors: { dark },
  // As functions: what is said follows the language of the reader.
  components: {
    Modal: { defaultProps: () => ({ closeButtonProps: { "aria-label": t`Close` } }) },
    Drawer: { defaultProps: () => ({ closeButtonProps: { "aria-label": t`Close` } }) },
  },
});
