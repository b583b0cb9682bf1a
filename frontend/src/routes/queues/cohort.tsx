import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { CohortPage } from "@/features/queues/cohort-page";

const route = getRouteApi("/app/cohorts/$name");

export function CohortRoute() {
  const { name } = route.useParams();
  return <CohortPage key={name} name={name} history={<QueueHistory scope="cohort" name={name} />} />;
}
