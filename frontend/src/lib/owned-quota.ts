/** The own quota of a ClusterQueue for a resource, in base units: its cohort's policy gives it, else it is nominal. */
export function ownedQuota({ nominal, deserved }: { nominal: number; deserved: number | null }): number {
  return deserved ?? nominal;
}
