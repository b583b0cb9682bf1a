/** The clusters of a page, in the URL's form and in the API's: one name, several, or all. */

/** All in which the reader has a role. */
export const ALL_CLUSTERS = "*";

const SEPARATOR = ",";

export function isSeveral(cluster: string): boolean {
  return cluster === ALL_CLUSTERS || cluster.includes(SEPARATOR);
}

/** The clusters of these that are meant. */
export function chosenClusters(cluster: string, known: readonly string[]): string[] {
  if (cluster === ALL_CLUSTERS) return [...known];
  const names = cluster.split(SEPARATOR);
  return known.filter((name) => names.includes(name));
}

/** How a choice is written; choosing none of them takes the choice back. */
export function writeClusters(chosen: readonly string[], known: readonly string[]): string {
  const names = known.filter((name) => chosen.includes(name));
  return names.length === 0 || names.length === known.length ? ALL_CLUSTERS : names.join(SEPARATOR);
}
