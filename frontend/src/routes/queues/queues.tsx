import { getRouteApi } from "@tanstack/react-router";
import { useIsSeveral } from "@/api/cluster";
import { NewObjectButton } from "@/features/objects/object-buttons";
import { QueuesOfClusters } from "@/features/queues/queues-of-clusters";
import { QueuesPage } from "@/features/queues/queues-page";

const route = getRouteApi("/app/queues");

/** The quota tree of one cluster, or a list of the queues of several. */
export function QueuesRoute() {
  const { search = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const onSearch = (text: string) =>
    void navigate({ search: text === "" ? {} : { search: text }, replace: true });
  if (useIsSeveral()) return <QueuesOfClusters search={search} onSearch={onSearch} />;
  return (
    <QueuesPage
      search={search}
      actions={<NewObjectButton kinds={["ClusterQueue", "Cohort", "LocalQueue"]} />}
      onSearch={onSearch}
    />
  );
}
