import { getRouteApi } from "@tanstack/react-router";
import { WorkloadsPage } from "@/features/workloads/list/workloads-page";
import { isTyping } from "@/lib/url/typing";
import {
  parseOpened,
  parseWorkloadFilters,
  parseWorkloadView,
  type WorkloadSearch,
} from "@/lib/url/workload-filters";

const route = getRouteApi("/app/workloads");

export function WorkloadsRoute() {
  const search: WorkloadSearch = route.useSearch();
  const navigate = route.useNavigate();
  const filters = parseWorkloadFilters({ ...search });
  const view = parseWorkloadView({ ...search });
  const go = (next: WorkloadSearch) =>
    void navigate({ search: next, replace: isTyping(search, next, ["search", "widths"]) });
  return (
    <WorkloadsPage
      filters={filters}
      view={view}
      opened={parseOpened({ ...search }).open}
      onOpened={(open) => go({ ...filters, ...view, ...(open === undefined ? {} : { open }) })}
      onFilter={(changed) => go({ ...changed, ...view })}
      onView={(changed) => go({ ...filters, ...changed })}
      onDrill={(changed, inside) => go({ ...changed, ...inside })}
    />
  );
}
