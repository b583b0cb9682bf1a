import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";

export function RouteNotFound() {
  return (
    <>
      <PageHeader title="Page not found" />
      <Panel>
        <EmptyState
          icon="search"
          title="There is no page at this address"
          action={<TextLink to="/">Go to the overview</TextLink>}
        >
          The address may be misspelled, or the page was removed.
        </EmptyState>
      </Panel>
    </>
  );
}
