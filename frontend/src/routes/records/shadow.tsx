import { ShadowPage } from "@/features/shadow/shadow-page";

export function ShadowRoute() {
  return <ShadowPage />;
}
