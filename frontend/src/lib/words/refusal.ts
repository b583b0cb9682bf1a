/** A refused request's located faults, as lines for people. */

export interface LocatedFault {
  document?: number;
  path: string;
  value?: unknown;
  rule: string;
  remedy: string;
}

export interface FaultLine {
  where: string;
  text: string;
}

/** `where` names the document too as soon as there are several. */
export function faultLines(faults: readonly LocatedFault[]): FaultLine[] {
  const several = faults.some((fault) => (fault.document ?? 0) > 0);
  return faults.map((fault) => ({
    where: `${several ? `document ${(fault.document ?? 0) + 1}: ` : ""}${fault.path || "the whole document"}`,
    text: [fault.rule, fault.remedy].filter((part) => part !== "").join(" – "),
  }));
}
