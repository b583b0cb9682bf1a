/** An object as YAML, to read and to copy: loaded when it is opened. */
import { t } from "@lingui/core/macro";
import { ActionIcon, Code, CopyButton, Group, Skeleton, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type QueryKey, type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/panel";
import { QueryError } from "@/components/query-error";
import { yamlTokens } from "./yaml-colors";
import classes from "./yaml-panel.module.css";

export function YamlPanel<Key extends QueryKey>({
  query,
  opened: first = false,
}: {
  query: UseQueryOptions<string, Error, string, Key>;
  /** Whether it is open from the start. */
  opened?: boolean;
}) {
  const [opened, { toggle }] = useDisclosure(first);
  const yaml = useQuery({ ...query, enabled: opened });
  return (
    <Panel>
      <Group justify="space-between">
        <UnstyledButton onClick={toggle} aria-expanded={opened}>
          <Group gap="xs">
            <Icon name={opened ? "down" : "right"} size={14} />
            <Text fw={620} fz={14}>
              YAML
            </Text>
          </Group>
        </UnstyledButton>
        {yaml.data !== undefined && (
          <CopyButton value={yaml.data}>
            {({ copied, copy }) => (
              <ActionIcon
                variant="subtle"
                color={copied ? "teal" : "gray"}
                onClick={copy}
                aria-label={t`Copy the YAML`}
              >
                <Icon name={copied ? "check" : "copy"} size={16} />
              </ActionIcon>
            )}
          </CopyButton>
        )}
      </Group>
      {opened && yaml.isPending && <Skeleton height={200} mt="sm" />}
      {opened && yaml.error !== null && <QueryError title={t`The YAML cannot be shown`} query={yaml} />}
      {opened && yaml.data !== undefined && (
        <Code block mt="sm" className={classes.text}>
          <Colored text={yaml.data} />
        </Code>
      )}
    </Panel>
  );
}

/** Longer texts stay in one colour: each token is an element of the page. */
const MAX_COLORED = 100_000;

function Colored({ text }: { text: string }) {
  const lines = useMemo(
    () => (text.length > MAX_COLORED ? undefined : text.split("\n").map(yamlTokens)),
    [text],
  );
  if (lines === undefined) return text;
  return lines.map((tokens, number) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity, and the text is replaced as a whole
    <span key={number}>
      {tokens.map(({ text: piece, part }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        <span key={place} className={classes[part]}>
          {piece}
        </span>
      ))}
      {number < lines.length - 1 && "\n"}
    </span>
  ));
}
