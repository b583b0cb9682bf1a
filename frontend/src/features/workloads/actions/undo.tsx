/** Says that an action is done, with a button that takes it back where another action does. */
import type { WorkloadAction } from "@/api/workloads";
import { tellWithUndo } from "@/components/dialog/undo-notification";
import { type ActionKind, actionWords } from "./action-words";

/**
 * The action that takes it back. Another priority has none: the class before may be a PriorityClass, or there was none,
 * and only a WorkloadPriorityClass can be chosen.
 */
export function undoOf(kind: ActionKind): WorkloadAction | undefined {
  if (kind === "hold") return { kind: "release" };
  if (kind === "release") return { kind: "hold" };
  return undefined;
}

export function tellDone(
  kind: ActionKind,
  message: string,
  opposite: WorkloadAction | undefined,
  onUndo: (opposite: WorkloadAction) => Promise<unknown>,
): void {
  tellWithUndo(
    actionWords()[kind].done,
    message,
    opposite === undefined ? undefined : () => onUndo(opposite),
  );
}
