/** The same page of each of these clusters. */
import { Group } from "@mantine/core";
import { ButtonLink } from "@/components/link";

export function ClusterLinks({ names }: { names: readonly string[] }) {
  return (
    <Group gap="xs" mt="xs" justify="center">
      {names.map((name) => (
        <ButtonLink key={name} to="." search={{ cluster: name }} variant="light" size="xs">
          {name}
        </ButtonLink>
      ))}
    </Group>
  );
}
