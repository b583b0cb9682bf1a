import { getRouteApi } from "@tanstack/react-router";
import { FlowsPage } from "@/features/flows/flows-page";

const route = getRouteApi("/app/flows");

export function FlowsRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return <FlowsPage filters={filters} onFilter={(search) => void navigate({ search, replace: true })} />;
}
