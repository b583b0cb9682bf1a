import { getRouteApi } from "@tanstack/react-router";
import { GpusPage } from "@/features/gpus/gpus-page";
import { GpuHistory } from "@/features/history/gpu-history";
import { isTyping } from "@/lib/url/typing";

const route = getRouteApi("/app/gpus");

export function GpusRoute() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <GpusPage
      history={<GpuHistory />}
      filters={filters}
      onFilter={(search) => void navigate({ search, replace: isTyping(filters, search, ["node"]) })}
    />
  );
}
