import { FlavorsPage } from "@/features/flavors/flavors-page";

export function FlavorsRoute() {
  return <FlavorsPage />;
}
