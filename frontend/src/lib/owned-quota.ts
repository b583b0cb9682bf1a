/** What a ClusterQueue owns of a resource, in base units: what the sharing policy of its cohort gives it, else its nominal quota. */
export function ownedQuota({ nominal, deserved }: { nominal: number; deserved: number | null }): number {
  return deserved ?? nominal;
}
