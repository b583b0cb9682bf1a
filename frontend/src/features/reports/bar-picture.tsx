/** The largest rows of a report as bars: a picture of its own, which can be taken along as SVG. */
import { Trans } from "@lingui/react/macro";
import { Button, Group, ScrollArea } from "@mantine/core";
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
      {/* Rather scrolled sideways than too small to read. */}
      <ScrollArea type="auto" offsetScrollbars="x">
        <svg
          ref={picture}
          xmlns="http://www.w3.org/2000/svg"
          viewBox={`0 0 ${WIDTH} ${height}`}
          width="100%"
          style={{ minWidth: 640, maxWidth: "68.75rem", display: "block" }}
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
      </ScrollArea>
      <Group gap="xs" mt="xs">
        {(["svg", "png"] as const).map((type) => (
          <Button
            key={type}
            variant="subtle"
            size="compact-xs"
            onClick={() => picture.current !== null && void download(picture.current, title, type)}
          >
            <Trans>Download image ({type.toUpperCase()})</Trans>
          </Button>
        ))}
      </Group>
    </>
  );
}

/** The points of a PNG on each of the picture's own, for screens and paper that show more. */
const SHARPNESS = 2;

async function download(picture: SVGSVGElement, title: string, format: "svg" | "png"): Promise<void> {
  const svg = standalone(picture);
  const file = format === "svg" ? svg : await painted(svg, picture.viewBox.baseVal);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** On white: a file does not know the reader's colour scheme. */
function standalone(picture: SVGSVGElement): Blob {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("style", "background: #fff; color: #1a1f2b");
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
}

async function painted(svg: Blob, { width, height }: { width: number; height: number }): Promise<Blob> {
  const image = new Image();
  // The content policy takes images from data, not from blobs.
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await svg.text())}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * SHARPNESS;
  canvas.height = height * SHARPNESS;
  const paper = canvas.getContext("2d");
  if (paper === null) throw new Error("this browser draws no pictures");
  paper.fillStyle = "#fff";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(image, 0, 0, canvas.width, canvas.height);
  return await new Promise((resolve, reject) => {
    canvas.toBlob(
      (made) => (made === null ? reject(new Error("no picture was made")) : resolve(made)),
      "image/png",
    );
  });
}
