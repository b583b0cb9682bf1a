import { getRouteApi } from "@tanstack/react-router";
import { useIsSeveral } from "@/api/cluster";
import { GpuHistory } from "@/features/history/gpu-history";
import { NodesPage } from "@/features/nodes/nodes-page";
import { parseNodeFilters } from "@/lib/url/node-filters";
import { parseTimeRange } from "@/lib/url/time-range";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/nodes");

export function NodesRoute() {
  const search = route.useSearch();
  const filters = parseNodeFilters({ ...search });
  const navigate = route.useNavigate();
  const isSeveral = useIsSeveral();
  return (
    <NodesPage
      filters={filters}
      history={isSeveral ? null : <GpuHistory />}
      onFilter={(chosen) =>
        void navigate({
          search: { ...chosen, ...parseTimeRange(search) },
          replace: isTyping(filters, chosen, ["search", "label"]),
        })
      }
    />
  );
}
