import { t } from "@lingui/core/macro";
import { Center } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { ErrorState } from "@/components/error-state";

export function RouteError({ error, reset }: ErrorComponentProps) {
  return (
    <Center mih="60dvh" p="md">
      <ErrorState
        title={t`This page cannot be shown`}
        message={error instanceof Error ? error.message : String(error)}
        onRetry={reset}
      />
    </Center>
  );
}
