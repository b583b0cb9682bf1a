import { CyclesPage } from "@/features/cluster/cycles-page";

export function CyclesRoute() {
  return <CyclesPage />;
}
