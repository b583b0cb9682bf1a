import { getRouteApi } from "@tanstack/react-router";
import { ReportsPage } from "@/features/reports/reports-page";

const route = getRouteApi("/app/reports");

export function ReportsRoute() {
  const { report, days, by } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <ReportsPage
      filters={{ ...(report ? { report } : {}), ...(days ? { days } : {}), ...(by ? { by } : {}) }}
      onFilter={(search) => void navigate({ search })}
    />
  );
}
