/** The changes of an edit, field by field. */

export interface Change {
  field: string;
  before?: string;
  after?: string;
}

type Fields = Record<string, unknown> | null;

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Nested fields are joined with dots; what one side does not have is left out there. */
export function changesOf(before: Fields, after: Fields, path = ""): Change[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort();
  return names.flatMap((name) => {
    const field = path === "" ? name : `${path}.${name}`;
    const [old, now] = [before?.[name], after?.[name]];
    if (isFields(old) && isFields(now)) return changesOf(old, now, field);
    return [
      {
        field,
        ...(old === undefined ? {} : { before: JSON.stringify(old) }),
        ...(now === undefined ? {} : { after: JSON.stringify(now) }),
      },
    ];
  });
}
