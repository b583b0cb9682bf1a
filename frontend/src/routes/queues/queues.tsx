import { getRouteApi } from "@tanstack/react-router";
import { NewObjectButton } from "@/features/objects/object-buttons";
import { QueuesPage } from "@/features/queues/queues-page";

const route = getRouteApi("/app/queues");

export function QueuesRoute() {
  const { search = "" } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <QueuesPage
      search={search}
      actions={<NewObjectButton kinds={["ClusterQueue", "Cohort", "LocalQueue"]} />}
      onSearch={(text) => void navigate({ search: text === "" ? {} : { search: text }, replace: true })}
    />
  );
}
