/** The largest rows of a report as bars: a picture of its own, which can be taken along as SVG. */
import { Trans } from "@lingui/react/macro";
import { Button, Group, ScrollArea } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useRef } from "react";
import type { Bar } from "./cells";

interface Layout {
  /** The width of the picture, in its own units. */
  width: number;
  /** The height of a row. */
  row: number;
  /** The start of the bars, and their distance below their label. */
  left: number;
  below: number;
  /** Kept free for the values behind the bars. */
  value: number;
  /** The characters of a label that fit. */
  letters: number;
}

const WIDE: Layout = { width: 900, row: 24, left: 300, below: 0, value: 130, letters: 44 };
/** On a phone, each label stands above its bar. */
const NARROW: Layout = { width: 360, row: 42, left: 0, below: 18, value: 110, letters: 52 };

export interface BarPictureProps {
  title: string;
  bars: readonly Bar[];
  format: (value: number) => string;
}

export function BarPicture({ title, bars, format }: BarPictureProps) {
  const picture = useRef<SVGSVGElement>(null);
  const {
    width,
    row,
    left,
    below,
    value: kept,
    letters,
  } = useMediaQuery("(max-width: 560px)") ? NARROW : WIDE;
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const height = 34 + bars.length * row;
  const scale = (value: number) => ((width - left - kept) * Math.max(0, value)) / most;
  return (
    <>
      {/* Rather scrolled sideways than too small to read. */}
      <ScrollArea type="auto" offsetScrollbars="x">
        <svg
          ref={picture}
          xmlns="http://www.w3.org/2000/svg"
          viewBox={`0 0 ${width} ${height}`}
          width="100%"
          style={{ minWidth: width === WIDE.width ? 640 : undefined, maxWidth: "68.75rem", display: "block" }}
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
            <g key={label} transform={`translate(0 ${30 + place * row})`}>
              <title>{`${label}: ${format(value)}`}</title>
              <text x="0" y="13">
                {label.length > letters ? `${label.slice(0, letters - 1)}…` : label}
              </text>
              <rect
                x={left}
                y={below + 2}
                width={Math.max(1, scale(value))}
                height="14"
                rx="3"
                fill="#4c6ef5"
              />
              <text x={left + 8 + scale(value)} y={below + 13}>
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
