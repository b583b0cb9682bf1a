/** The cluster of a row, in a table of several clusters: its links lead into that cluster. */
import { createContext, type ReactNode, useContext } from "react";

const RowClusterContext = createContext<string | undefined>(undefined);

export function RowCluster({ cluster, children }: { cluster: string | undefined; children: ReactNode }) {
  if (cluster === undefined) return children;
  return <RowClusterContext value={cluster}>{children}</RowClusterContext>;
}

/** The search that a link of this row gets: none while one cluster is on screen, which links keep anyway. */
export function useRowCluster(): { search?: { cluster: string } } {
  const cluster = useContext(RowClusterContext);
  return cluster === undefined ? {} : { search: { cluster } };
}
