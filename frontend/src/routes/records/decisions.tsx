import { getRouteApi } from "@tanstack/react-router";
import { DecisionsPage } from "@/features/decisions/decisions-page";
import { parseDecisionFilters } from "@/lib/url/decision-filters";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/decisions");

export function DecisionsRoute() {
  const filters = parseDecisionFilters({ ...route.useSearch() });
  const navigate = route.useNavigate();
  return (
    <DecisionsPage
      filters={filters}
      onFilter={(search) => void navigate({ search, replace: isTyping(filters, search, ["search"]) })}
    />
  );
}
