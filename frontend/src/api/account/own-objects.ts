/** Writes to named objects that belong to the user. */
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";

/** A change of objects; their list is read again, however the change ends. */
export function useOwnChange<Input>(key: QueryKey, change: (input: Input) => Promise<unknown>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => queries.invalidateQueries({ queryKey: key }),
  });
}

/** The header of a write that is refused if the object has changed since it was read. */
export const ifUnchanged = ({ generation }: { generation: number }) => ({ "If-Match": `"${generation}"` });
