import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";

export function RouteNotFound() {
  return (
    <EmptyState
      icon="search"
      title="There is no such page"
      action={<TextLink to="/">To the overview</TextLink>}
    >
      The address may be mistyped, or what it showed is gone.
    </EmptyState>
  );
}
