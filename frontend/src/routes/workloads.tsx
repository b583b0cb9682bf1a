import { getRouteApi } from "@tanstack/react-router";
import { WorkloadsPage } from "@/features/workloads/list/workloads-page";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/workloads");

export function WorkloadsRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <WorkloadsPage
      filters={filters}
      onFilter={(search) => void navigate({ search, replace: isTyping(filters, search, ["search"]) })}
    />
  );
}
