import { getRouteApi } from "@tanstack/react-router";
import { DecisionsPage } from "@/features/decisions/decisions-page";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/decisions");

export function DecisionsRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <DecisionsPage
      filters={filters}
      onFilter={(search) => void navigate({ search, replace: isTyping(filters, search, ["search"]) })}
    />
  );
}
