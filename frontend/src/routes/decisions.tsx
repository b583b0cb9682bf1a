import { getRouteApi } from "@tanstack/react-router";
import { DecisionsPage } from "@/features/decisions/decisions-page";

const route = getRouteApi("/app/decisions");

export function DecisionsRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return <DecisionsPage filters={filters} onFilter={(search) => void navigate({ search, replace: true })} />;
}
