/** The icons, drawn on a grid of 24 with strokes in the colour of the text. */

const PATHS = {
  overview: "M4 13a8 8 0 0 1 16 0M12 13l4-4M4 17h16",
  workloads: "M4 6h10M4 12h16M4 18h7M17 4v4M14 16v4",
  queues: "M5 4h14v4H5zM9 8v4M15 8v8M6 12h6v4H6zM12 16h6v4h-6z",
  gpus: "M7 7h10v10H7zM10 10h4v4h-4zM9 3v4M15 3v4M9 17v4M15 17v4M3 9h4M3 15h4M17 9h4M17 15h4",
  nodes: "M4 4h16v6H4zM4 14h16v6H4zM7.5 7h.1M7.5 17h.1M11 7h6M11 17h6",
  flavors: "M12 3l9 5l-9 5l-9-5zM3 12l9 5l9-5M3 16l9 5l9-5",
  flows: "M3 4h6v5H3zM15 15h6v5h-6zM6 9v8.5h9",
  decisions: "M12 3v18M12 6H5l-2 3l2 3h7M12 11h7l2 3l-2 3h-7M8 21h8",
  audit: "M6 3h9l4 4v14H6zM15 3v4h4M9 12h7M9 16h5",
  question: "M8 9a4 4 0 1 1 6 3.5c-1.5 .8-2 1.5-2 3M12 19v.1",
  reports: "M4 20h16M6 16v-5h3v5M11 16V6h3v10M16 16v-7h3v7",
  table: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 5v14",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M19 5l-1.4 1.4M6.4 17.6L5 19",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4A8.5 8.5 0 1 0 20 14.5z",
  auto: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 3v18M15 5v14M18 7.5v9",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M15.5 15.5L20 20",
  close: "M6 6l12 12M18 6L6 18",
  right: "M9 5l7 7l-7 7",
  down: "M5 9l7 7l7-7",
  up: "M5 15l7-7l7 7",
  check: "M4 12.5l5.5 5.5L20 7",
  alert: "M12 3.5l9.5 17h-19zM12 10v5M12 17.7v.1",
  info: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 11v6M12 7.6v.1",
  refresh: "M20 11a8 8 0 0 0-14.5-3.5L4 9M4 4v5h5M4 13a8 8 0 0 0 14.5 3.5L20 15M20 20v-5h-5",
  user: "M12 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8M4.5 20.5a7.5 7.5 0 0 1 15 0",
  logout: "M10 4H5v16h5M14 8l4 4l-4 4M9 12h9",
  plus: "M12 5v14M5 12h14",
  pause: "M8 5v14M16 5v14",
  play: "M7 4.5l12 7.5l-12 7.5z",
  priority: "M12 20V5M6 11l6-6l6 6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  clock: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 7v5.5l3.5 2",
  bookmark: "M6 4h12v16l-6-4.5L6 20z",
  filter: "M4 5h16l-6.5 8v6l-3-2v-4z",
  language: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 5-5 13 0 18",
  keyboard: "M3 6h18v12H3zM7 10h.1M12 10h.1M17 10h.1M8 14h8",
  edit: "M4 20l1-5L16 4l4 4L9 19zM13.5 6.5l4 4",
  stop: "M6 6h12v12H6z",
  more: "M12 5v.1M12 12v.1M12 19v.1",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  users:
    "M9 5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7M2.5 20a6.5 6.5 0 0 1 13 0M16 5.3a3.5 3.5 0 0 1 0 6.4M18 14a6.5 6.5 0 0 1 3.5 6",
  back: "M20 12H5M11 6l-6 6l6 6",
} as const;

export type IconName = keyof typeof PATHS;

/** A decoration: its meaning stands in the text or the label beside it. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.75}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      style={{ flex: "none" }}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
