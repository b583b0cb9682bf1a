import { getRouteApi } from "@tanstack/react-router";
import { useIsSeveral } from "@/api/cluster";
import { GpusOfClusters } from "@/features/gpus/gpus-of-clusters";
import { GpusPage } from "@/features/gpus/gpus-page";
import { GpuHistory } from "@/features/history/gpu-history";
import { type GpuFilters, parseGpuFilters } from "@/lib/url/gpu-filters";
import { parseTimeRange } from "@/lib/url/time-range";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/gpus");

/** The nodes of one cluster with their devices, or a list of the devices of several. */
export function GpusRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const onFilter = (search: GpuFilters) =>
    void navigate({
      search: { ...search, ...parseTimeRange(filters) },
      replace: isTyping(parseGpuFilters({ ...filters }), search, ["node"]),
    });
  if (useIsSeveral()) return <GpusOfClusters filters={filters} onFilter={onFilter} />;
  return <GpusPage history={<GpuHistory />} filters={filters} onFilter={onFilter} />;
}
