import { getRouteApi } from "@tanstack/react-router";
import { ReportsPage } from "@/features/reports/reports-page";
import { parseReportFilters } from "@/lib/url/report-filters";

const route = getRouteApi("/app/reports");

export function ReportsRoute() {
  const filters = parseReportFilters({ ...route.useSearch() });
  const navigate = route.useNavigate();
  return <ReportsPage filters={filters} onFilter={(search) => void navigate({ search })} />;
}
