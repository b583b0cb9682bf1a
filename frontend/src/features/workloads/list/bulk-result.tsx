/** The result of an action on many workloads, with the names of the unchanged ones, reason by reason. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Code, Group, Modal, Stack, Text } from "@mantine/core";
import { formatCount } from "@/lib/quantity";
import { type ActionKind, actionWords } from "../actions/action-words";
import type { ManyResult, Unchanged } from "./many-workloads";

export interface BulkResultProps {
  kind: ActionKind;
  result: ManyResult;
  onClose: () => void;
}

export function BulkResult({ kind, result, onClose }: BulkResultProps) {
  const { changed, skipped, failed, untried } = result;
  const { label, done } = actionWords()[kind];
  const count = plural(result.asked, { one: "# workload", other: "# workloads" });
  return (
    <Modal opened onClose={onClose} title={label}>
      <Stack>
        <Text size="sm" className="kw-number">
          <Trans>
            {done}: {formatCount(changed)} of {count}
          </Trans>
        </Text>
        <Names title={t`${formatCount(failed.length)} failed`} unchanged={failed} />
        <Names title={t`${formatCount(skipped.length)} skipped`} unchanged={skipped} />
        {untried > 0 && (
          <Text size="sm">
            <Trans>Stopped: {formatCount(untried)} were not processed.</Trans>
          </Text>
        )}
        <Group justify="flex-end">
          <Button onClick={onClose} data-autofocus>
            <Trans>Close</Trans>
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Names({ title, unchanged }: { title: string; unchanged: Unchanged[] }) {
  if (unchanged.length === 0) return null;
  const whys = [...new Set(unchanged.map(({ why }) => why))];
  return (
    <section aria-label={title}>
      <Text size="sm" fw={600} className="kw-number">
        {title}
      </Text>
      {whys.map((why) => (
        <div key={why}>
          <Text size="sm">{why}</Text>
          <Code block mah={160} style={{ overflow: "auto" }} tabIndex={0}>
            {unchanged
              .filter((each) => each.why === why)
              .map(({ namespace, name }) => `${namespace}/${name}`)
              .join("\n")}
          </Code>
        </div>
      ))}
    </section>
  );
}
