import { getRouteApi } from "@tanstack/react-router";
import { NodesPage } from "@/features/nodes/nodes-page";
import { parseNodeFilters } from "@/lib/url/node-filters";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/nodes");

export function NodesRoute() {
  const filters = parseNodeFilters({ ...route.useSearch() });
  const navigate = route.useNavigate();
  return (
    <NodesPage
      filters={filters}
      onFilter={(search) =>
        void navigate({ search, replace: isTyping(filters, search, ["search", "label"]) })
      }
    />
  );
}
