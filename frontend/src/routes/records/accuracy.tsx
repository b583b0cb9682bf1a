import { AccuracyPage } from "@/features/studio/accuracy-page";

export function AccuracyRoute() {
  return <AccuracyPage />;
}
