import { getRouteApi } from "@tanstack/react-router";
import { DevicePage } from "@/features/device/device-page";

const route = getRouteApi("/app/device");

export function DeviceRoute() {
  const { code } = route.useSearch();
  const navigate = route.useNavigate();
  return <DevicePage code={code ?? ""} onCode={(typed) => void navigate({ search: { code: typed } })} />;
}
