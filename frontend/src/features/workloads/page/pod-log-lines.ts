/** A log as it comes in pieces: whole lines, and the beginning of the next; of a long one the last lines only. */
export interface LogText {
  lines: string[];
  rest: string;
  /** How many lines were left out at the beginning. */
  dropped: number;
}

export const EMPTY_LOG: LogText = { lines: [], rest: "", dropped: 0 };
export const MAX_LOG_LINES = 2000;

export function withPiece(log: LogText, piece: string): LogText {
  const found = (log.rest + piece).split("\n");
  const rest = found.pop() ?? "";
  const lines = [...log.lines, ...found];
  const excess = Math.max(0, lines.length - MAX_LOG_LINES);
  return { lines: lines.slice(excess), rest, dropped: log.dropped + excess };
}
