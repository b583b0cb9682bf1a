import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { EmptyState } from "@/components/empty-state";
import { TextLink } from "@/components/link";
import { PageHeader } from "@/components/page-header";
import { Panel } from "@/components/panel";

export function RouteNotFound() {
  return (
    <>
      <PageHeader title={t`Page not found`} />
      <Panel>
        <EmptyState
          icon="search"
          title={t`No page exists at this address`}
          action={
            <TextLink to="/">
              <Trans>Go to the overview</Trans>
            </TextLink>
          }
        >
          <Trans>The address may be misspelled, or the page was removed.</Trans>
        </EmptyState>
      </Panel>
    </>
  );
}
