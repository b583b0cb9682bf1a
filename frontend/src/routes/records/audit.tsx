import { getRouteApi } from "@tanstack/react-router";
import { AuditPage } from "@/features/audit/audit-page";
import { parseAuditFilters } from "@/lib/url/audit-filters";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/audit");

export function AuditRoute() {
  const filters = parseAuditFilters({ ...route.useSearch() });
  const navigate = route.useNavigate();
  return (
    <AuditPage
      filters={filters}
      onFilter={(search) =>
        void navigate({ search, replace: isTyping(filters, search, ["search", "username", "kind"]) })
      }
    />
  );
}
