/** The largest rows of a report as bars: a picture of its own, which can be taken along as SVG. */
import { Trans } from "@lingui/react/macro";
import { Button } from "@mantine/core";
import { useRef } from "react";
import type { Bar } from "./cells";

const ROW = 24;
const LABEL = 300;
const WIDTH = 900;
const VALUE = 130;

export interface BarPictureProps {
  title: string;
  bars: readonly Bar[];
  format: (value: number) => string;
}

export function BarPicture({ title, bars, format }: BarPictureProps) {
  const picture = useRef<SVGSVGElement>(null);
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const height = 34 + bars.length * ROW;
  const scale = (value: number) => ((WIDTH - LABEL - VALUE) * Math.max(0, value)) / most;
  return (
    <>
      <svg
        ref={picture}
        xmlns="http://www.w3.org/2000/svg"
        viewBox={`0 0 ${WIDTH} ${height}`}
        width="100%"
        style={{ maxWidth: 1100 }}
        role="img"
        aria-label={`${title}: ${bars.map(({ label, value }) => `${label} ${format(value)}`).join("; ")}`}
        fontFamily="Inter Variable, sans-serif"
        fontSize="12.5"
        fill="currentColor"
      >
        <text x="0" y="16" fontWeight="600">
          {title}
        </text>
        {bars.map(({ label, value }, place) => (
          <g key={label} transform={`translate(0 ${30 + place * ROW})`}>
            <title>{`${label}: ${format(value)}`}</title>
            <text x="0" y="13">
              {label.length > 44 ? `${label.slice(0, 43)}…` : label}
            </text>
            <rect x={LABEL} y="2" width={Math.max(1, scale(value))} height="14" rx="3" fill="#4c6ef5" />
            <text x={LABEL + 8 + scale(value)} y="13">
              {format(value)}
            </text>
          </g>
        ))}
      </svg>
      <Button
        variant="subtle"
        size="compact-xs"
        mt="xs"
        onClick={() => picture.current !== null && download(picture.current, title)}
      >
        <Trans>Download picture (SVG)</Trans>
      </Button>
    </>
  );
}

/** On white: a file does not know the reader's colour scheme. */
function download(picture: SVGSVGElement, title: string): void {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const [, , width = "900", height = "300"] = (picture.getAttribute("viewBox") ?? "").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("style", "background: #fff; color: #1a1f2b");
  const text = new XMLSerializer().serializeToString(copy);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  link.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.svg`;
  link.click();
  URL.revokeObjectURL(link.href);
}
