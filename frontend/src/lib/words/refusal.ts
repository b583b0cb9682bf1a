/** A refused request's located faults, as lines for people. */

import { t } from "@lingui/core/macro";

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

function whereOf({ document = 0, path }: LocatedFault, several: boolean): string {
  const where = path || t`the whole document`;
  return several ? t`document ${document + 1}: ${where}` : where;
}

/** `where` names the document too as soon as there are several. */
export function faultLines(faults: readonly LocatedFault[]): FaultLine[] {
  const several = faults.some((fault) => (fault.document ?? 0) > 0);
  return faults.map((fault) => ({
    where: whereOf(fault, several),
    text: [fault.rule, fault.remedy].filter((part) => part !== "").join(" – "),
  }));
}
