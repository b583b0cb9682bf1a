/** An error: its message, the fields that it names, and the next step. */
import { Trans } from "@lingui/react/macro";
import { Alert, Button, Code, Group, List, Text } from "@mantine/core";
import { Icon } from "./icon";

export interface ErrorDetail {
  /** A field's path, with its document in front if there are several. */
  where: string;
  text: string;
}

export interface ErrorStateProps {
  title: string;
  message: string;
  details?: ErrorDetail[];
  onRetry?: (() => void) | undefined;
}

const MAX_DETAILS = 20;

export function ErrorState({ title, message, details = [], onRetry }: ErrorStateProps) {
  const left = details.length - MAX_DETAILS;
  return (
    <Alert role="alert" color="red" variant="light" icon={<Icon name="alert" />} title={title} maw="60rem">
      <Text size="sm">{message}</Text>
      {details.length > 0 && (
        <List size="sm" mt="xs" spacing={4} listStyleType="none" withPadding={false}>
          {details.slice(0, MAX_DETAILS).map((detail) => (
            <List.Item key={`${detail.where} ${detail.text}`}>
              <Code>{detail.where}</Code> {detail.text}
            </List.Item>
          ))}
        </List>
      )}
      {left > 0 && (
        <Text size="sm" mt="xs">
          <Trans>and {left} more.</Trans>
        </Text>
      )}
      {onRetry !== undefined && (
        <Group mt="sm">
          <Button
            size="xs"
            color="red"
            variant="light"
            leftSection={<Icon name="refresh" size={14} />}
            onClick={onRetry}
          >
            <Trans>Try again</Trans>
          </Button>
        </Group>
      )}
    </Alert>
  );
}
